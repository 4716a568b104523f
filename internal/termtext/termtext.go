// Package termtext makes text fit to be shown on a terminal.
package termtext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable replaces what a terminal would obey, or would show otherwise than it is, by what JSON would write for it: control
// characters other than newline and tab, marks that turn the direction of text, invisible tags, and bytes that are not
// UTF-8. In a JSON document such characters stand in strings only, where this leaves their meaning as it is.
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

func unprintable(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r == '\u2028' || r == '\u2029' || r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// Readable is JSON as people write it: without the escapes that only a web page needs. What is no JSON stays as it is.
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

// plain undoes the escapes that JSON needs in HTML only, and skips those of a backslash.
var plain = strings.NewReplacer(`\\`, `\\`, `\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

// Brief is what a question says of arguments: their beginning, in the order that they have.
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

// OneLine is the beginning of a text, printable, for a line of its own. Width is in characters.
func OneLine(s string, width int) string {
	s = Printable(strings.Join(strings.Fields(s), " "))
	if r := []rune(s); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return s
}
