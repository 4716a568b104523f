// Package outputbudget decides how much of a tool's output the model sees. It is a pure function of the output; the
// whole stays where it was written down.
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

const (
	defaultBytes = 16 << 10
	defaultLines = 400
	// marker is room for the sentence that stands for what was left out; the digest takes most of it.
	marker = 200
)

// Limit is how big a text may be. Zero values mean 16 KiB and 400 lines; fewer than 400 bytes or 3 lines are not kept
// to.
type Limit struct {
	Bytes int
	Lines int
}

func (l Limit) filled() Limit {
	return Limit{max(cmp.Or(l.Bytes, defaultBytes), 2*marker), max(cmp.Or(l.Lines, defaultLines), 3)}
}

// Bound cuts the text of out, the message of its failure and each string in its value to limit. Of a longer one the
// beginning and the end are kept, with a line between them that says how much is missing and where the whole is.
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

type budget struct {
	limit Limit
	whole protocol.Digest
}

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
	fmt.Fprintf(&out, "[... %d bytes in %d lines left out", len(gone), countLines(gone))
	if b.whole != "" {
		fmt.Fprintf(&out, "; the whole is artifact %s", b.whole)
	}
	out.WriteString(" ...]\n" + tail)
	return out.String()
}

func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

// first is the beginning of s within both limits, up to the end of a line if it has one.
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

// last is the end of s within both limits, from the beginning of a line if it has one.
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

// value bounds the strings in a JSON value, and returns the very same bytes if all fit.
func (b budget) value(raw json.RawMessage) json.RawMessage {
	if len(raw) <= b.limit.Lines { // every line of a string takes at least a byte
		return raw
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var tree any // of any shape: it belongs to the tool
	if err := d.Decode(&tree); err != nil {
		return raw // not JSON, which is for its reader to say
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
		return raw // cannot happen to what was decoded
	}
	return bytes.TrimSpace(out.Bytes())
}

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
