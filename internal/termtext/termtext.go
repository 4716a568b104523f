// Package termtext prepares untrusted text, such as model output and tool arguments, for a
// terminal.
package termtext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable makes text safe to print. It replaces characters that control a terminal or hide text
// with their JSON escapes: control characters except newline and tab, marks that change the
// direction of text, and invisible tags. Bytes that are not UTF-8 become \xNN. In a JSON document
// these characters occur only in strings, so the document keeps its meaning.
func Printable(s string) string {
	if strings.IndexFunc(s, unprintable) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !unprintable(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// unprintable reports whether Printable replaces r.
func unprintable(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r == '\u2028' || r == '\u2029' || r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// Readable formats JSON on one line without the escapes for HTML that encoding/json writes. Numbers
// keep their spelling. Text that is not JSON is returned unchanged.
func Readable(raw json.RawMessage) string {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return string(raw)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return string(raw)
	}
	return strings.TrimSpace(b.String())
}

// plain removes the escapes for HTML. It matches escaped backslashes first, so that they stay.
var plain = strings.NewReplacer(`\\`, `\\`, `\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

// Unescaped returns JSON without the escapes for HTML that encoding/json writes. Unlike Readable it keeps members in their order.
func Unescaped(raw json.RawMessage) string { return plain.Replace(string(raw)) }

// Brief returns the first 300 bytes of a call's arguments as compact JSON, for the prompt of a
// decision. Members keep their order.
func Brief(args json.RawMessage) string {
	const limit = 300
	var b bytes.Buffer
	if json.Compact(&b, args) != nil {
		b.Write(args)
	}
	text := plain.Replace(b.String())
	if len(text) > limit {
		return strings.ToValidUTF8(text[:limit], "") + "..."
	}
	return text
}

// OneLine returns the beginning of a text as one printable line of at most width characters, with
// an ellipsis if it was cut.
func OneLine(s string, width int) string {
	s = Printable(strings.Join(strings.Fields(s), " "))
	if r := []rune(s); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return s
}
