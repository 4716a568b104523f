package strictjson

import (
	"fmt"
	"unicode/utf8"
)

// fault names what stopped a scanner. It becomes a sentence only when somebody reads it.
type fault int

const (
	faultEnd fault = iota + 1
	faultBOM
	faultByte
	faultTrailing
	faultNumber
	faultControl
	faultEscape
	faultSurrogate
	faultUTF8
	faultDepth
	faultTokens
	faultDuplicate
)

// scanner walks over a value once. Its methods return false, with fault and pos set, at the first mistake.
type scanner struct {
	data   []byte
	pos    int
	tokens int   // left
	twice  []int // keys that are there again, of a scanner that goes on after them
	goesOn bool
	fault  fault
	keys   []span // of the objects which are open, outermost first
	few    [24]span
}

func (s *scanner) fail(at int, f fault) bool {
	s.pos, s.fault = at, f
	return false
}

// unexpected fails at pos: the data ends too early or has a wrong byte.
func (s *scanner) unexpected() bool {
	if s.pos >= len(s.data) {
		return s.fail(len(s.data), faultEnd)
	}
	return s.fail(s.pos, faultByte)
}

func (s *scanner) document(depth int) bool {
	s.keys = s.few[:0]
	if len(s.data) >= 3 && string(s.data[:3]) == "\xef\xbb\xbf" {
		return s.fail(0, faultBOM)
	}
	if !s.value(depth) {
		return false
	}
	if s.space(); s.pos < len(s.data) {
		return s.fail(s.pos, faultTrailing)
	}
	return true
}

func (s *scanner) space() {
	for s.pos < len(s.data) && isSpace(s.data[s.pos]) {
		s.pos++
	}
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\t' || c == '\r'
}

// next moves over white space and reports whether c is there; it moves over that too.
func (s *scanner) next(c byte) bool {
	s.space()
	if s.pos < len(s.data) && s.data[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *scanner) token() bool {
	if s.tokens--; s.tokens < 0 {
		return s.fail(s.pos, faultTokens)
	}
	return true
}

func (s *scanner) value(depth int) bool {
	s.space()
	if s.pos >= len(s.data) {
		return s.unexpected()
	}
	if !s.token() {
		return false
	}
	switch c := s.data[s.pos]; {
	case c == '"':
		_, ok := s.text()
		return ok
	case c == '{' || c == '[':
		if depth == 0 {
			return s.fail(s.pos, faultDepth)
		}
		s.pos++
		if c == '{' {
			return s.object(depth - 1)
		}
		return s.array(depth - 1)
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	}
	return s.unexpected()
}

func (s *scanner) array(depth int) bool {
	if s.next(']') {
		return true
	}
	for s.value(depth) {
		if s.next(']') {
			return true
		}
		if !s.next(',') {
			return s.unexpected()
		}
	}
	return false
}

func (s *scanner) object(depth int) bool {
	if s.next('}') {
		return true
	}
	open := keySet{base: len(s.keys)}
	for {
		if !s.key(&open) {
			return false
		}
		if !s.next(':') {
			return s.unexpected()
		}
		if !s.value(depth) {
			return false
		}
		if s.next('}') {
			s.keys = s.keys[:open.base]
			return true
		}
		if !s.next(',') {
			return s.unexpected()
		}
	}
}

func (s *scanner) word(w string) bool {
	for i := range len(w) {
		if s.pos >= len(s.data) || s.data[s.pos] != w[i] {
			return s.unexpected()
		}
		s.pos++
	}
	return true
}

func (s *scanner) number() bool {
	start := s.pos
	if s.data[s.pos] == '-' {
		s.pos++
	}
	first := s.pos
	if !s.digits() {
		return false
	}
	if s.data[first] == '0' && s.pos > first+1 {
		return s.fail(start, faultNumber)
	}
	if s.at('.') {
		s.pos++
		if !s.digits() {
			return false
		}
	}
	if s.at('e') || s.at('E') {
		s.pos++
		if s.at('+') || s.at('-') {
			s.pos++
		}
		return s.digits()
	}
	return true
}

func (s *scanner) at(c byte) bool {
	return s.pos < len(s.data) && s.data[s.pos] == c
}

func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.data) && '0' <= s.data[s.pos] && s.data[s.pos] <= '9' {
		s.pos++
	}
	if s.pos == start {
		return s.unexpected()
	}
	return true
}

// error puts the fault into words.
func (s *scanner) error(depth, tokens int) *Error {
	e := &Error{Offset: s.pos}
	switch s.fault {
	case faultEnd:
		e.Reason = "unexpected end of JSON"
	case faultBOM:
		e.Reason = "a byte order mark is not allowed"
	case faultByte:
		r, _ := utf8.DecodeRune(s.data[s.pos:])
		e.Reason = fmt.Sprintf("unexpected character %q", r)
	case faultTrailing:
		e.Reason = "there is data after the JSON value"
	case faultNumber:
		e.Reason = "a number must not begin with 0"
	case faultControl:
		e.Reason = "a string has a control character which is not escaped"
	case faultEscape:
		e.Reason = "a string has an unknown escape"
	case faultSurrogate:
		e.Reason = `a string has one half of a \u surrogate pair`
	case faultUTF8:
		e.Reason = "the text is not valid UTF-8"
	case faultDepth:
		e.Reason = fmt.Sprintf("arrays and objects are nested deeper than %d", depth)
	case faultTokens:
		e.Reason = fmt.Sprintf("there are more than %d values and keys", tokens)
	case faultDuplicate:
		c := cursor{data: s.data, pos: s.pos}
		e.Reason = fmt.Sprintf("duplicate key %s", Quote(c.quoted()))
	}
	return e
}
