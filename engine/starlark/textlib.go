package starlark

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// maxPattern is the longest regular expression, in bytes. maxMatchWork bounds the product of its compiled size and the
// size of the text: matching takes time in proportion to it, about a second at the limit, and cannot be interrupted.
const (
	maxPattern   = 2000
	maxMatchWork = 1 << 26
)

// indented returns JSON with line breaks; 0 leaves it as it is.
// The data must be valid JSON. At most 16 blanks are used for a level, so that deep values do not become mostly blanks.
func indented(data []byte, spaces int) string {
	if spaces <= 0 {
		return string(data)
	}
	var out bytes.Buffer
	_ = json.Indent(&out, data, "", strings.Repeat(" ", min(spaces, 16))) // the data is valid
	return out.String()
}

// expression compiles a regular expression for a text of n bytes.
//
// RE2 takes time in proportion to the size of the text and that of the compiled pattern, never more than that for one match.
// Several matches in one text can still take quadratic time, when each looks far ahead; the clock of the process bounds that.
func (in library) expression(pattern string, n int) (*regexp.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("the pattern has %d bytes, at most %d are allowed", len(pattern), maxPattern)
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("the pattern is invalid: %w; the syntax is RE2, without backreferences and lookaround", err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, fmt.Errorf("the pattern is invalid: %w", err)
	}
	if work := len(program.Inst) * n; work > maxMatchWork {
		return nil, fmt.Errorf("the text has %d bytes, too many for this pattern; match smaller pieces, such as lines", n)
	}
	if err := in.run.meter.charge(n / 8); err != nil {
		return nil, err
	}
	return regexp.Compile(pattern)
}

// regexpFunctions returns the module re, with the names of Python.
func (in library) regexpFunctions() map[string]builtin {
	// with reads the arguments pattern and string, and calls f.
	with := func(f func(re *regexp.Regexp, s string) (starlark.Value, error)) builtin {
		return func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var pattern, s string
			if err := starlark.UnpackArgs(b.Name(), args, kwargs, "pattern", &pattern, "string", &s); err != nil {
				return nil, err
			}
			re, err := in.expression(pattern, len(s))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", b.Name(), err)
			}
			return f(re, s)
		}
	}
	anchored := func(prefix, suffix string) builtin {
		return func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var pattern, s string
			if err := starlark.UnpackArgs(b.Name(), args, kwargs, "pattern", &pattern, "string", &s); err != nil {
				return nil, err
			}
			if _, err := in.expression(pattern, len(s)); err != nil {
				return nil, fmt.Errorf("%s: %w", b.Name(), err)
			}
			re, err := in.expression(prefix+pattern+suffix, len(s))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", b.Name(), err)
			}
			return match(s, re, re.FindStringSubmatchIndex(s)), nil
		}
	}
	return map[string]builtin{
		"search": with(func(re *regexp.Regexp, s string) (starlark.Value, error) {
			return match(s, re, re.FindStringSubmatchIndex(s)), nil
		}),
		"match":     anchored(`\A(?:`, `)`),
		"fullmatch": anchored(`\A(?:`, `)\z`),
		"findall":   with(in.findAll),
		"split": with(func(re *regexp.Regexp, s string) (starlark.Value, error) {
			pieces := re.Split(s, in.mostMatches())
			if len(pieces) == in.mostMatches() {
				return nil, in.run.meter.tooLarge()
			}
			return in.stringList(pieces)
		}),
		"sub":    in.substitute,
		"escape": escape,
	}
}

// escape implements re.escape.
func escape(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var s string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "string", &s); err != nil {
		return nil, err
	}
	return starlark.String(regexp.QuoteMeta(s)), nil
}

// match returns a match as a struct: its text, place and groups; None without a match.
//
// The places are in bytes, as are all indices of strings in this dialect.
// It has the shape of a struct and not of Python's match object, so that it can be printed, saved and converted to JSON.
func match(s string, re *regexp.Regexp, at []int) starlark.Value {
	if at == nil {
		return starlark.None
	}
	groups := make(starlark.Tuple, 0, len(at)/2-1)
	named := starlark.NewDict(0)
	for i := 2; i < len(at); i += 2 {
		var group starlark.Value = starlark.None
		if at[i] >= 0 {
			group = starlark.String(s[at[i]:at[i+1]])
		}
		groups = append(groups, group)
		if name := re.SubexpNames()[i/2]; name != "" {
			_ = named.SetKey(starlark.String(name), group) // strings are hashable
		}
	}
	return starlarkstruct.FromStringDict(starlarkstruct.Default, starlark.StringDict{
		"text": starlark.String(s[at[0]:at[1]]), "start": starlark.MakeInt(at[0]), "end": starlark.MakeInt(at[1]), "groups": groups, "named": named,
	})
}

// mostMatches is the number of matches for which there is memory, with the indices and texts of some groups.
func (in library) mostMatches() int { return in.config.Limits.Memory / 128 }

// findAll implements re.findall: a list of texts, or of the groups if the pattern has any.
// A group that took no part in a match is an empty text, as in Python. When the number of matches reaches mostMatches, the
// result may lack some, so it is an error.
func (in library) findAll(re *regexp.Regexp, s string) (starlark.Value, error) {
	found := re.FindAllStringSubmatch(s, in.mostMatches())
	if len(found) == in.mostMatches() {
		return nil, in.run.meter.tooLarge()
	}
	out := make([]starlark.Value, len(found))
	for i, m := range found {
		switch len(m) {
		case 1, 2:
			out[i] = starlark.String(m[len(m)-1])
		default:
			groups := make(starlark.Tuple, len(m)-1)
			for j, g := range m[1:] {
				groups[j] = starlark.String(g)
			}
			out[i] = groups
		}
	}
	return starlark.NewList(out), in.run.meter.need(len(found) * piece)
}

// stringList returns a list of strings.
// The texts share memory with the text that they were cut from. Only piece bytes are charged for each.
func (in library) stringList(all []string) (starlark.Value, error) {
	if err := in.run.meter.need(len(all) * piece); err != nil {
		return nil, err
	}
	out := make([]starlark.Value, len(all))
	for i, s := range all {
		out[i] = starlark.String(s)
	}
	return starlark.NewList(out), nil
}

// substitute implements re.sub. References in the replacement are those of Python, \1 and \g<name>, or of Go, ${1}.
// The size of the result is estimated before the replacement from the number of matches, because the replacement itself has
// no limit.
func (in library) substitute(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var pattern, replacement, s string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "pattern", &pattern, "replacement", &replacement, "string", &s); err != nil {
		return nil, err
	}
	re, err := in.expression(pattern, len(s))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	matches := len(re.FindAllStringIndex(s, in.mostMatches()))
	if err := in.run.meter.need(len(s) + matches*(len(replacement)+len(s)/max(1, matches))); err != nil {
		return nil, err
	}
	return starlark.String(re.ReplaceAllString(s, pythonReference.ReplaceAllString(replacement, "$${$1$2}"))), nil
}

// pythonReference is a reference to a group in a replacement.
//
// Models write references as in Python more often than as in Go, and both are clear.
var pythonReference = regexp.MustCompile(`\\(?:([0-9]+)|g<([^>]+)>)`)

// textFunctions returns the module text.
// Most of them are methods of strings by another name. Models write text.split(s) as often as s.split(), and a method that is
// guarded keeps its guard here.
func (in library) textFunctions() map[string]builtin {
	method := func(name string) builtin {
		return func(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			if len(args) == 0 {
				return nil, fmt.Errorf("%s: missing argument: the text", b.Name())
			}
			s, ok := args[0].(starlark.String)
			if !ok {
				return nil, fmt.Errorf("%s: got %s, want a string", b.Name(), args[0].Type())
			}
			f, err := in.attr(thread, nil, starlark.Tuple{s, starlark.String(name)}, nil)
			if guarded[name] == nil {
				f, err = s.Attr(name)
			}
			if err != nil {
				return nil, err
			}
			return starlark.Call(thread, f, args[1:], kwargs)
		}
	}
	return map[string]builtin{
		"split": method("split"), "trim": method("strip"), "find": method("find"), "format": method("format"), "replace": method("replace"),
		"starts_with": method("startswith"), "ends_with": method("endswith"), "lower": method("lower"), "upper": method("upper"),
		"lines": in.lines, "join": in.join, "grep": in.grep, "cut": cut, "contains": contains,
	}
}

// lines implements text.lines: the lines without their ends.
func (in library) lines(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var s string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "text", &s); err != nil {
		return nil, err
	}
	if err := in.run.meter.room(strings.Count(s, "\n") * piece); err != nil {
		return nil, err
	}
	return in.stringList(splitLines(s))
}

// splitLines accepts lines that end with LF or CRLF. An end at the end of the text adds no empty line, and no text has no lines.
func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	return lines
}

// join implements text.join. Elements that are not strings are converted.
// Each element is written with the memory that is left as its limit, so that one huge element fails before it exists. Twice
// the size is charged, because the builder copies its buffer when it grows.
func (in library) join(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var parts starlark.Iterable
	sep := "\n"
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "parts", &parts, "sep?", &sep); err != nil {
		return nil, err
	}
	var out strings.Builder
	first := true
	for v := range starlark.Elements(parts) {
		if !first {
			out.WriteString(sep)
		}
		first = false
		s, err := written(v, in.config.Limits.Memory-out.Len())
		if err != nil {
			return nil, in.unwritable(v, err)
		}
		if err := in.run.meter.need(2 * (len(s) + len(sep))); err != nil {
			return nil, err
		}
		out.WriteString(s)
	}
	return starlark.String(out.String()), nil
}

// grep implements text.grep: the lines that match, as structs with number and text.
// Numbers of lines start at 1, as those of the tools that read and search files do.
func (in library) grep(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var pattern, s string
	ignoreCase := false
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "pattern", &pattern, "text", &s, "ignore_case?", &ignoreCase); err != nil {
		return nil, err
	}
	if ignoreCase {
		pattern = "(?i)" + pattern
	}
	re, err := in.expression(pattern, len(s))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	if err := in.run.meter.room(strings.Count(s, "\n") * piece); err != nil {
		return nil, err
	}
	var found []starlark.Value
	for i, line := range splitLines(s) {
		if re.MatchString(line) {
			found = append(found, starlarkstruct.FromStringDict(starlarkstruct.Default, starlark.StringDict{
				"number": starlark.MakeInt(i + 1), "text": starlark.String(line),
			}))
		}
	}
	return starlark.NewList(found), nil
}

// cut implements text.cut: at most n characters of a text, with a marker if it is longer.
// It counts characters, not bytes, so that the result is valid text. The rest of the dialect indexes strings by bytes.
func cut(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var s string
	n := 0
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "text", &s, "n", &n); err != nil {
		return nil, err
	}
	total := utf8.RuneCountInString(s)
	if total <= n {
		return starlark.String(s), nil
	}
	at := 0
	for range max(0, n) {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return starlark.String(fmt.Sprintf("%s... (%d more characters)", s[:at], total-max(0, n))), nil
}

// contains implements text.contains.
func contains(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var s, part string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "text", &s, "part", &part); err != nil {
		return nil, err
	}
	return starlark.Bool(strings.Contains(s, part)), nil
}
