package chat

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/markdown"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// line is one line of what an approval shows, with styles. hunk is the index of the
// hunk that it belongs to, counted over all files, or -1. A long line has been
// wrapped, so no part of it is hidden.
type line struct {
	text string
	hunk int
}

// plain returns lines that belong to no hunk, each wrapped to width and indented by
// two columns.
func plain(text string, width int) (out []line) {
	for l := range strings.SplitSeq(ansi.Hardwrap(strings.ReplaceAll(text, "\t", "    "), max(width-2, 18), true), "\n") {
		out = append(out, line{"  " + l, -1})
	}
	return out
}

// leavesSandbox reports whether a command runs outside the sandbox that the other
// commands of the session run in.
func leavesSandbox(d *protocol.Decision, s *protocol.Session) bool {
	if d.Detail == nil || d.Detail.Command == nil || !d.Detail.Command.Outside {
		return false
	}
	mode := s.Config.Approval.Sandbox
	return d.Detail.Why.By == protocol.DecidedByOutside || mode == protocol.SandboxWorkspace || mode == protocol.SandboxReadOnly
}

// headline asks the question of an approval. It says at once that a command leaves the
// sandbox, because a reader must not miss that.
func headline(d *protocol.Decision, s *protocol.Session) string {
	detail := d.Detail
	switch {
	case detail == nil:
		return "Allow this tool call?"
	case leavesSandbox(d, s):
		return "Run outside the sandbox?"
	case detail.Command != nil:
		return "Run this command?"
	case len(detail.Files) == 1:
		f := detail.Files[0]
		return verbs[f.Kind] + " " + termtext.OneLine(f.Path, 200) + "? " + tally(f)
	case len(detail.Files) > 1:
		return fmt.Sprintf("Change %d files?", len(detail.Files))
	case detail.Title != nil:
		return strings.TrimSpace(detail.Title.Verb+" "+detail.Title.Subject) + "?"
	}
	return "Allow this tool call?"
}

// verbs names what a call does to a file.
var verbs = map[protocol.PreviewKind]string{
	protocol.PreviewCreate: "Create", protocol.PreviewChange: "Change", protocol.PreviewDelete: "Delete",
}

// tally returns the number of lines that a call adds and removes, such as "+3 -1".
func tally(f protocol.FilePreview) string {
	if f.Added+f.Removed == 0 {
		return ""
	}
	return good.Render(fmt.Sprint("+", f.Added)) + " " + bad.Render(fmt.Sprint("-", f.Removed))
}

// approvalLines returns what a call will do: its command, the diffs of its files, or
// all of its arguments. marks says which hunks are left out; nil if hunks cannot be
// chosen.
func approvalLines(d *protocol.Decision, s *protocol.Session, marks *hunkMarks, style markdown.Style) (out []line) {
	width := style.Width
	detail := d.Detail
	switch {
	case detail == nil:
		out = append(plain(termtext.Printable(d.Prompt), width), argumentLines(d.Call, width)...)
	case detail.Command != nil:
		out = commandLines(d, s, width)
	case len(detail.Files) > 0:
		out = fileLines(detail.Files, marks, style)
	default:
		out = argumentLines(d.Call, width)
	}
	if detail != nil && len(detail.Hosts) > 0 {
		out = append(out, styled(asking.Render, plain("network: "+termtext.Printable(strings.Join(detail.Hosts, ", ")), width))...)
	}
	return out
}

// styled styles lines.
func styled(style func(...string) string, lines []line) []line {
	for i := range lines {
		lines[i].text = style(lines[i].text)
	}
	return lines
}

// commandLines shows a command as it was written, where it runs, and the arguments
// of the call that are shown nowhere else.
func commandLines(d *protocol.Decision, s *protocol.Session, width int) (out []line) {
	c := d.Detail.Command
	for i, l := range plain(termtext.Printable(c.Command), width-2) {
		mark := "  "
		if i == 0 {
			mark = mine.Render("$ ")
		}
		out = append(out, line{"  " + mark + strong.Render(l.text[2:]), -1})
	}
	facts := []string{where(c.Dir, s.Cwd)}
	if c.Outside && !leavesSandbox(d, s) {
		facts = append(facts, "no sandbox")
	}
	if d.Call != nil {
		if d.Call.Name != "shell" {
			facts = append([]string{termtext.OneLine(d.Call.Name, 60)}, facts...)
		}
		for _, a := range argumentsExcept(d.Call.Args, "command", "workdir", "outside", "hosts") {
			facts = append(facts, a.name+" "+termtext.Readable(a.value))
		}
	}
	return append(out, styled(faint.Render, plain("  "+termtext.Printable(strings.Join(facts, " · ")), width))...)
}

// where names a directory, relative to the workspace if it is in it.
func where(dir, cwd string) string {
	rel, err := filepath.Rel(cwd, dir)
	switch {
	case dir == "" || err == nil && rel == ".":
		return "in the workspace"
	case cwd != "" && err == nil && filepath.IsLocal(rel):
		return "in " + rel
	}
	return "in " + dir
}

// argument is an argument of a call.
type argument struct {
	name  string
	value json.RawMessage
}

// argumentsExcept returns the arguments of a call in the order of their names,
// without those named.
func argumentsExcept(args json.RawMessage, names ...string) (out []argument) {
	var all map[string]json.RawMessage
	if json.Unmarshal(args, &all) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(names, name) {
			out = append(out, argument{name, all[name]})
		}
	}
	return out
}

// argumentLines shows a call with all of its arguments, one below the other. The
// lines of a text are indented below its name, so that they cannot pass for another
// argument.
func argumentLines(c *protocol.ToolCall, width int) (out []line) {
	if c == nil {
		return nil
	}
	out = append(out, line{"  " + strong.Render(termtext.OneLine(c.Name, 200)), -1})
	all := argumentsExcept(c.Args)
	if all == nil && len(c.Args) > 0 && string(c.Args) != "{}" {
		return append(out, plain(termtext.Printable(termtext.Readable(c.Args)), width)...)
	}
	for _, a := range all {
		var text string
		if json.Unmarshal(a.value, &text) != nil {
			text = termtext.Readable(a.value)
		}
		name := mine.Render(termtext.OneLine(a.name, 60))
		if text = termtext.Printable(text); !strings.Contains(text, "\n") && len(a.name)+len(text) < width-8 {
			out = append(out, line{"  " + name + "  " + text, -1})
			continue
		}
		out = append(out, line{"  " + name, -1})
		for _, l := range plain(text, width-4) {
			out = append(out, line{"    " + l.text, -1})
		}
	}
	return out
}

// whyLine returns the reason why lashd asks, or "".
func whyLine(d *protocol.Decision) string {
	if d.Detail == nil {
		return ""
	}
	return termtext.Printable(d.Detail.Why.Text)
}

// ofSubagent reports whether a subagent of the session asks.
func ofSubagent(d *protocol.Decision, s *protocol.Session) bool {
	return d.SessionID != "" && d.SessionID != s.ID
}

// Question returns the text of a decision for lash run, without styles. It has all
// that the call will do, so that nothing is approved unseen. Control characters are
// escaped. Lines after the first are indented.
func Question(d *protocol.Decision, s *protocol.Session) string {
	if d.Kind != protocol.DecisionApproval || d.Detail == nil {
		text := termtext.Printable(d.Prompt)
		if d.Call != nil {
			text += "\n" + callText(d.Call)
		}
		return hang(text)
	}
	lines := []string{headline(d, s)}
	var marks *hunkMarks
	if Hunks(d) > 0 {
		marks = &hunkMarks{at: -1}
	}
	for _, l := range approvalLines(d, s, marks, markdown.Style{Width: plainWidth}) {
		lines = append(lines, l.text)
	}
	if why := whyLine(d); why != "" {
		lines = append(lines, "  "+hang(why))
	}
	if ofSubagent(d, s) {
		lines = append(lines, "  A subagent asks.")
	}
	return ansi.Strip(strings.Join(lines, "\n"))
}

// plainWidth is the width of a diff for lash run, which does not know that of the
// terminal. Longer lines are left to the terminal to wrap.
const plainWidth = 1 << 20
