package starlark

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// guideText says how to write cells. It does not depend on the session.
// It is part of each request, so it names what exists and leaves explanations to the messages of errors.
const guideText = `Write Starlark, a small dialect of Python: def, lambda, if, for, while, comprehensions, dicts, lists, sets and
f(*args, **kwargs) work. There are no classes, exceptions, imports, f-strings, generators, or files; use "%s" % x or "{}".format(x).
Global variables and functions stay for later cells. The value of the last expression is shown, and so is what print writes.

Tools are functions: tools.list("src") returns a result. result.text is what the tool says, and result.value its data; both are the same
for a tool without data. result.ok and result.error say whether it failed. result.unwrap() returns the value or fails the cell.
parallel([tools.read.later(p) for p in paths]) runs calls at the same time and returns their results in order; a dict keeps its keys.
tool.doc is the description of a tool.

finish(value) ends the turn with a value. submit_error(value) fails it. continue_as(task, seed) continues in a new, empty context.
history is the conversation, read-only.
json.encode(x, indent=0), json.decode(text, default)
re.search, re.match, re.fullmatch (pattern, text): struct(text, start, end, groups, named) or None; re.findall, re.split, re.sub(pattern, replacement, text), re.escape
text.lines(s), text.grep(pattern, s, ignore_case=False): [struct(number, text)], text.cut(s, n), text.join(parts, sep), text.split, text.trim, text.find, text.format, text.contains
math.ceil, math.floor, math.sqrt, ...; time.now(), time.format(seconds), time.parse(text); random.random(), random.randint(a, b), random.choice(xs), random.shuffle(xs)
struct(a=1), str, repr, len, range, sorted, enumerate, zip, min, max, any, all, type, hasattr, getattr, dir, fail(message)`

// Guide returns the text from which a model learns how to write cells: the language, and the signatures of the tools.
// It is a pure function of the tools: providers cache the prompt, and a change in any byte would make them read all of it again.
// The tools are sorted by name for the same reason.
func Guide(tools []protocol.ToolManifest) string {
	set := New(Config{}).bound(tools)
	var out strings.Builder
	out.WriteString(guideText)
	if len(set.bySurface) > 0 {
		out.WriteString("\n\nTools:")
	}
	for _, name := range slices.Sorted(maps.Keys(set.bySurface)) {
		op := set.bySurface[name]
		fmt.Fprintf(&out, "\n%s%s", name, op.signature())
		if line := firstLine(op.manifest.Description); line != "" {
			out.WriteString("  # " + line)
		}
	}
	return out.String()
}

// bound returns the tools of an interpreter after binding them.
func (in *Interpreter) bound(tools []protocol.ToolManifest) *toolset {
	in.Bind(tools)
	return in.tools
}

// firstLine returns the first line of a description, cut to a readable length.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	if len(line) > 160 {
		line = strings.ToValidUTF8(line[:160], "") + "..."
	}
	return line
}
