package strictjson

import (
	"fmt"
	"unicode/utf8"
)

// fault is the mistake that stopped a scanner. Its message is built only when an error is returned,
// so that checking valid data does not allocate.
type fault int

const (
	// The data ends too early, begins with a byte order mark, has a wrong byte, or continues after
	// the value.
	faultEnd fault = iota + 1
	faultBOM
	faultByte
	faultTrailing
	// A number has a leading zero; a string has an unescaped control character, a bad escape, half
	// a surrogate pair or invalid UTF-8.
	faultNumber
	faultControl
	faultEscape
	faultSurrogate
	faultUTF8
	// A limit is exceeded, or an object has a key twice.
	faultDepth
	faultTokens
	faultDuplicate
)

// scanner checks a value in one pass. Its methods return true and move pos on, or return false at
// the first mistake with fault and pos set. Use one scanner for one document.
//
// Nested calls use the Go stack, which the limit of depth bounds. The keys of all open objects
// share one slice, so a document without large objects needs no allocation.
type scanner struct {
	data       []byte
	pos        int
	tokens     int   // values and keys that are still allowed
	duplicates []int // offsets of duplicate keys, if the scanner continues after them
	keepGoing  bool  // continue after duplicate keys
	fault      fault
	keys       []span   // keys of all open objects, outermost object first
	few        [24]span // initial memory of keys, so that small documents do not allocate
}

// fail records a fault and its position. It returns false for the caller to return.
func (s *scanner) fail(at int, f fault) bool {
	s.pos, s.fault = at, f
	return false
}

// unexpected fails at pos, because the data ends too early or has a wrong byte.
func (s *scanner) unexpected() bool {
	if s.pos >= len(s.data) {
		return s.fail(len(s.data), faultEnd)
	}
	return s.fail(s.pos, faultByte)
}

// document checks the whole data. depth is the number of nested arrays and objects that are
// allowed.
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

// space skips white space.
func (s *scanner) space() {
	for s.pos < len(s.data) && isSpace(s.data[s.pos]) {
		s.pos++
	}
}

// isSpace reports whether c is white space in JSON.
func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\t' || c == '\r'
}

// next skips white space and, if the next byte is c, that byte too. It reports whether it was.
func (s *scanner) next(c byte) bool {
	s.space()
	if s.pos < len(s.data) && s.data[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

// token counts a value or a key, and fails if there are too many.
func (s *scanner) token() bool {
	if s.tokens--; s.tokens < 0 {
		return s.fail(s.pos, faultTokens)
	}
	return true
}

// value checks a value of any type.
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

// array checks the elements after an opening bracket.
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

// object checks the members after an opening brace, and rejects duplicate keys.
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

// word checks true, false or null.
func (s *scanner) word(w string) bool {
	for i := range len(w) {
		if s.pos >= len(s.data) || s.data[s.pos] != w[i] {
			return s.unexpected()
		}
		s.pos++
	}
	return true
}

// number checks a number: no leading zero, and at least one digit after a point and in an exponent.
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

// at reports whether the next byte is c, without skipping anything.
func (s *scanner) at(c byte) bool {
	return s.pos < len(s.data) && s.data[s.pos] == c
}

// digits skips at least one digit.
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

// error returns the message of the fault. depth and tokens are the limits, for the message.
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
