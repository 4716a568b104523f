// Package outputbudget is the plugin that limits how much of a tool's output the model
// sees. Bound is a pure function; the complete output stays stored.
package outputbudget

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"lashd/rpc/protocol"
)

// Defaults of Limit.
const (
	defaultBytes = 16 << 10
	defaultLines = 400
	// marker is the room in bytes for the line that replaces the omitted text. The digest takes most of it.
	marker = 200
)

// Limit is the maximum size of a text. Zero values mean 16 KiB and 400 lines. The minimum
// is 400 bytes and 3 lines; smaller values are raised to it.
type Limit struct {
	Bytes int
	Lines int
}

// filled returns the limit with defaults and minimums applied.
func (l Limit) filled() Limit {
	return Limit{max(cmp.Or(l.Bytes, defaultBytes), 2*marker), max(cmp.Or(l.Lines, defaultLines), 3)}
}

// Bound cuts the text of out, the message of its failure, and each string in its value to
// the limit. A longer text keeps its beginning and its end. A line between them says how
// much is missing and which artifact has the complete output. out is not modified.
func Bound(out protocol.ToolOutput, limit Limit) protocol.ToolOutput {
	b := budget{limit: limit.filled()}
	if out.Artifact != nil {
		b.whole = out.Artifact.Digest
	}
	out.Text = b.text(out.Text)
	if out.Failure != nil {
		failure := *out.Failure
		failure.Message = b.text(failure.Message)
		out.Failure = &failure
	}
	out.Value = b.value(out.Value)
	return out
}

// budget is a limit with defaults filled in, and the digest of the complete output, if it
// is stored.
type budget struct {
	limit Limit
	// whole is the digest of the artifact with the complete output. Empty: there is none.
	whole protocol.Digest
}

// text cuts one text. Its result is valid UTF-8.
func (b budget) text(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= b.limit.Bytes && countLines(s) <= b.limit.Lines {
		return s
	}
	bytes, lines := (b.limit.Bytes-marker)/2, b.limit.Lines-1
	head := first(s, bytes, lines/2)
	tail := last(s[len(head):], bytes, lines-lines/2)
	gone := s[len(head) : len(s)-len(tail)]
	var out strings.Builder
	out.WriteString(head)
	if head != "" && !strings.HasSuffix(head, "\n") {
		out.WriteByte('\n')
	}
	fmt.Fprintf(&out, "[... %d bytes in %d lines omitted", len(gone), countLines(gone))
	if b.whole != "" {
		fmt.Fprintf(&out, "; the complete output is artifact %s", b.whole)
	}
	out.WriteString(" ...]\n" + tail)
	return out.String()
}

// countLines returns the number of lines in s. A last line without a newline counts too.
func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

// first returns the beginning of s within both limits. It ends at the end of a line, unless
// the first line is too long.
func first(s string, bytes, lines int) string {
	end := min(len(s), bytes)
	for end < len(s) && end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	at := 0
	for range lines {
		i := strings.IndexByte(s[at:end], '\n')
		if i < 0 {
			if at == 0 {
				return s[:end]
			}
			return s[:at]
		}
		at += i + 1
	}
	return s[:at]
}

// last returns the end of s within both limits. It starts at the beginning of a line,
// unless the last line is too long.
func last(s string, bytes, lines int) string {
	start := max(0, len(s)-bytes)
	for start < len(s) && !utf8.RuneStart(s[start]) {
		start++
	}
	at := len(s)
	for range lines {
		i := strings.LastIndexByte(s[start:max(start, at-1)], '\n')
		if i < 0 {
			if start == 0 || at == len(s) {
				return s[start:]
			}
			return s[at:]
		}
		at = start + i + 1
	}
	return s[at:]
}

// value cuts the strings in a JSON value. If all of them fit, it returns the same bytes.
func (b budget) value(raw json.RawMessage) json.RawMessage {
	if len(raw) <= b.limit.Lines { // too short to exceed a limit: each line takes at least one byte
		return raw
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var tree any // the tool decides on the shape
	if err := d.Decode(&tree); err != nil {
		return raw // not JSON: leave the error to the reader
	}
	cut := false
	tree = b.leaves(tree, &cut)
	if !cut {
		return raw
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(tree); err != nil {
		return raw // cannot happen: the value was decoded from JSON
	}
	return bytes.TrimSpace(out.Bytes())
}

// leaves cuts the strings in a decoded value, in place, and sets cut if any was too long.
// Member names of objects stay complete.
func (b budget) leaves(tree any, cut *bool) any {
	switch t := tree.(type) {
	case string:
		short := b.text(t)
		*cut = *cut || short != t
		return short
	case []any:
		for i := range t {
			t[i] = b.leaves(t[i], cut)
		}
	case map[string]any:
		for k := range t {
			t[k] = b.leaves(t[k], cut)
		}
	}
	return tree
}
