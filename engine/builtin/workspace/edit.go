package workspace

import (
	"context"
	"fmt"
	"strings"

	"lashd/rpc/protocol"
)

// describeEdit is the description of edit that the model reads.
const describeEdit = "Replace text in a file of the workspace. The old text must match the file exactly, including white space, " +
	"and occur exactly once unless replaceAll is set. Read the file first, and leave out the line numbers " +
	"that read shows."

// editArgs are the arguments of edit. The schema of the tool is inferred from the struct.
type editArgs struct {
	Path       string `json:"path" jsonschema:"file to change, relative to the workspace or absolute inside it"`
	Old        string `json:"old" jsonschema:"the text to replace, exactly as in the file"`
	New        string `json:"new" jsonschema:"the replacement"`
	ReplaceAll bool   `json:"replaceAll,omitempty" jsonschema:"replace every occurrence"`
}

// edit is the edit tool. It runs alone among the calls that change files, so the content
// that it reads is the content that it replaces.
func (f *files) edit(ctx context.Context, req request[editArgs]) (protocol.ToolOutput, error) {
	out, err := f.change(ctx, req.view, req.host, func(p *plan) error { return p.edit(req.args) })
	return out, explained("edit", req.args.Path, err)
}

// edit reads the file and plans the edit. The file keeps its mode.
func (p *plan) edit(a editArgs) error {
	c, err := p.at(a.Path)
	if err != nil {
		return err
	}
	if err := p.read(c); err != nil {
		return err
	}
	after, n, err := replace(string(c.before), a)
	if err != nil {
		return err
	}
	c.after = []byte(after)
	p.said = append(p.said, fmt.Sprintf("Replaced %s in %s.", times(n), c.at.path()))
	return nil
}

// replace applies an edit to a text. It returns the new text and the number of
// replacements.
//
// If all line ends of the file are Windows line ends, those of old and new are converted
// first, because models write plain newlines. The errors say how to find the right text:
// they point at the most similar place.
func replace(text string, a editArgs) (string, int, error) {
	if a.Old == "" {
		return "", 0, refuse("invalid_arguments", "old is empty; use write to set the content of a whole file")
	}
	if a.Old == a.New {
		return "", 0, refuse("invalid_arguments", "old and new are the same")
	}
	if crlf(text) && !strings.Contains(a.Old, "\r") {
		a.Old = strings.ReplaceAll(a.Old, "\n", "\r\n")
		a.New = strings.ReplaceAll(strings.ReplaceAll(a.New, "\r\n", "\n"), "\n", "\r\n")
	}
	n := strings.Count(text, a.Old)
	switch {
	case n == 0:
		return "", 0, refuse("no_match", "the old text is not in the file; %s", nearMiss(text, a.Old))
	case n > 1 && !a.ReplaceAll:
		return "", 0, refuse("ambiguous_match", "the old text occurs %s, at lines %s; include more of the surrounding text, or set replaceAll",
			times(n), enumerate(matchLines(text, a.Old)))
	case len(text)+n*(len(a.New)-len(a.Old)) > maxFile:
		return "", 0, refuse("too_large", "the file would grow beyond %d bytes", maxFile)
	}
	return strings.ReplaceAll(text, a.Old, a.New), n, nil
}

// crlf reports whether all lines of a text have Windows line ends.
func crlf(text string) bool {
	n := strings.Count(text, "\n")
	return n > 0 && strings.Count(text, "\r\n") == n
}

// times formats a number of occurrences.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// matchLines returns the line numbers at which old starts.
// Lines count from 1, and matches do not overlap.
func matchLines(text, old string) []int {
	var at []int
	line, from := 1, 0
	for {
		i := strings.Index(text[from:], old)
		if i < 0 {
			return at
		}
		line += strings.Count(text[from:from+i], "\n")
		at = append(at, line)
		line += strings.Count(old, "\n")
		from += i + len(old)
	}
}

// enumerate formats at most ten numbers.
// Further numbers are replaced by dots.
func enumerate(numbers []int) string {
	var parts []string
	for _, n := range numbers[:min(10, len(numbers))] {
		parts = append(parts, fmt.Sprint(n))
	}
	if len(numbers) > 10 {
		parts = append(parts, "...")
	}
	return strings.Join(parts, ", ")
}

// resemblances are the usual differences between a model's copy of a text and the original,
// most likely first.
var resemblances = []struct {
	what string
	norm func(string) string
}{
	{"only in white space at the ends of lines", func(s string) string { return strings.TrimRight(s, " \t\r") }},
	{"only in indentation or other white space", func(s string) string { return strings.Join(strings.Fields(s), " ") }},
	{"only in upper and lower case", func(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }},
	{"only in quotation marks or dashes", func(s string) string { return plain.Replace(strings.Join(strings.Fields(s), " ")) }},
}

// plain replaces typographic quotation marks, dashes and spaces by their ASCII forms.
var plain = strings.NewReplacer("\u2018", "'", "\u2019", "'", "\u201c", `"`, "\u201d", `"`, "\u2013", "-", "\u2014", "-", "\u00a0", " ")

// nearMiss describes the part of the file that is most similar to a text that was not
// found. It tries the usual differences first, then an escaped newline, then each line of
// the text by itself. The result completes an error message.
func nearMiss(text, old string) string {
	if strings.TrimSpace(old) == "" {
		return "it is only white space; include the lines around it"
	}
	have := strings.Split(text, "\n")
	want := strings.Split(strings.Trim(old, "\n"), "\n")
	for _, r := range resemblances {
		if at := find(have, want, r.norm); len(at) > 0 {
			return fmt.Sprintf("the text at line %s differs from it %s", enumerate(at), r.what)
		}
	}
	if strings.Contains(old, `\n`) && strings.Contains(text, strings.ReplaceAll(old, `\n`, "\n")) {
		return `it contains \n as two characters where the file has line breaks`
	}
	for i, line := range want {
		key := strings.TrimSpace(line)
		if len(key) < 4 {
			continue
		}
		if at := find(have, []string{line}, strings.TrimSpace); len(at) > 0 {
			return fmt.Sprintf("its line %d is at line %s of the file, but the lines around it differ", i+1, enumerate(at))
		}
	}
	return "none of its lines are in the file; read the file again"
}

// find returns the line numbers, from 1, at which want occurs in have. Lines are compared
// after normalization by norm.
// Matches may overlap. norm must not depend on other lines.
func find(have, want []string, norm func(string) string) []int {
	pattern := make([]string, len(want))
	for i, line := range want {
		pattern[i] = norm(line)
	}
	normal := make([]string, len(have))
	for i, line := range have {
		normal[i] = norm(line)
	}
	var at []int
	for i := range len(normal) - len(pattern) + 1 {
		if startsWith(normal[i:], pattern) {
			at = append(at, i+1)
		}
	}
	return at
}

// startsWith reports whether lines begins with pattern. lines must not be shorter.
func startsWith(lines, pattern []string) bool {
	for i, p := range pattern {
		if lines[i] != p {
			return false
		}
	}
	return true
}
