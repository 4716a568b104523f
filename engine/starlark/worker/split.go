package worker

import (
	"bytes"
	"encoding/json"
	"errors"
)

// errJSON means that a message is not a JSON object.
var errJSON = errors.New("it is not a JSON object")

// members calls f with each member of a JSON object and its raw value. It checks only what it needs to find the ends of
// the values: encoding/json would scan a message with 2 MiB of state four times, which takes 50 ms, and this takes less than one.
// Values that are used are decoded by encoding/json, which checks them.
func members(data []byte, f func(key string, value []byte) error) error {
	s := splitter{data}
	if s.next() != '{' {
		return errJSON
	}
	if s.peek() == '}' {
		return nil
	}
	for {
		s.space()
		key, ok := s.text()
		if !ok || s.next() != ':' {
			return errJSON
		}
		s.space()
		value, ok := s.value()
		if !ok {
			return errJSON
		}
		if err := f(unquote(key), value); err != nil {
			return err
		}
		switch s.next() {
		case ',':
		case '}':
			return nil
		default:
			return errJSON
		}
	}
}

// unquote decodes a JSON string; anything else is "".
func unquote(raw []byte) string {
	if len(raw) >= 2 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// splitter cuts pieces off the front of a JSON text.
//
// All methods are safe for text that is not JSON: they return false or 0, and cut something off whenever they succeed.
type splitter struct{ rest []byte }

func (s *splitter) space() {
	for len(s.rest) > 0 && (s.rest[0] == ' ' || s.rest[0] == '\n' || s.rest[0] == '\r' || s.rest[0] == '\t') {
		s.rest = s.rest[1:]
	}
}

// peek returns the next byte after spaces; 0 at the end.
func (s *splitter) peek() byte {
	s.space()
	if len(s.rest) == 0 {
		return 0
	}
	return s.rest[0]
}

// next removes and returns the next byte after spaces.
func (s *splitter) next() byte {
	b := s.peek()
	if b != 0 {
		s.rest = s.rest[1:]
	}
	return b
}

// text removes a string, with its quotes.
func (s *splitter) text() ([]byte, bool) {
	if len(s.rest) == 0 || s.rest[0] != '"' {
		return nil, false
	}
	for at := 1; ; {
		n := bytes.IndexByte(s.rest[at:], '"')
		if n < 0 {
			return nil, false
		}
		at += n + 1
		escapes := 0
		for at-2-escapes > 0 && s.rest[at-2-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			text := s.rest[:at]
			s.rest = s.rest[at:]
			return text, true
		}
	}
}

// value removes a value.
func (s *splitter) value() ([]byte, bool) {
	whole, depth := s.rest, 0
	for len(s.rest) > 0 {
		switch s.rest[0] {
		case '"':
			if _, ok := s.text(); !ok {
				return nil, false
			}
		case '{', '[':
			depth++
			s.rest = s.rest[1:]
			continue
		case '}', ']':
			if depth--; depth < 0 {
				return nil, false
			}
			s.rest = s.rest[1:]
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return nil, false
			}
			s.rest = s.rest[1:]
			continue
		default:
			n := bytes.IndexAny(s.rest, ",:]}\" \t\r\n")
			if n <= 0 {
				return nil, false
			}
			s.rest = s.rest[n:]
		}
		if depth == 0 {
			return whole[:len(whole)-len(s.rest)], true
		}
	}
	return nil, false
}
