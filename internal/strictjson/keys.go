package strictjson

import (
	"bytes"
	"encoding/json"
)

// linear is the number of keys of an object that are compared one by one. A larger object uses a
// map.
const linear = 16

// span is the position of a key in the data, without its quotes.
type span struct {
	start, end int
	escaped    bool
}

// keySet holds the keys of one open object: scanner.keys[base:], or a map if there are many.
type keySet struct {
	base int
	many map[string]struct{}
}

// key skips the next key of an object. A duplicate key fails, or is noted if the scanner continues
// after mistakes.
func (s *scanner) key(open *keySet) bool {
	s.space()
	if !s.at('"') {
		return s.unexpected()
	}
	if !s.token() {
		return false
	}
	quote := s.pos
	escaped, ok := s.text()
	if !ok {
		return false
	}
	k := span{start: quote + 1, end: s.pos - 1, escaped: escaped}
	if !s.seen(open, k) {
		return true
	}
	if s.keepGoing {
		s.duplicates = append(s.duplicates, quote)
		return true
	}
	return s.fail(quote, faultDuplicate)
}

// seen adds a key to the set, and reports whether it was there already. Comparing up to linear keys
// one by one is faster than a map; beyond that a map keeps the cost of large objects linear.
func (s *scanner) seen(open *keySet, k span) bool {
	if open.many != nil {
		name := s.name(k)
		_, dup := open.many[name]
		open.many[name] = struct{}{}
		return dup
	}
	for _, old := range s.keys[open.base:] {
		if s.same(old, k) {
			return true
		}
	}
	s.keys = append(s.keys, k)
	if len(s.keys)-open.base == linear {
		open.many = make(map[string]struct{}, 2*linear)
		for _, old := range s.keys[open.base:] {
			open.many[s.name(old)] = struct{}{}
		}
	}
	return false
}

// same reports whether two keys are equal, however they are escaped.
func (s *scanner) same(a, b span) bool {
	if a.escaped || b.escaped {
		return s.name(a) == s.name(b)
	}
	return bytes.Equal(s.data[a.start:a.end], s.data[b.start:b.end])
}

// name returns the text of a key.
func (s *scanner) name(k span) string {
	return unquote(s.data[k.start-1:k.end+1], k.escaped)
}

// unquote returns the text of a string that has passed the scanner. quoted includes the quotes.
func unquote(quoted []byte, escaped bool) string {
	if !escaped {
		return string(quoted[1 : len(quoted)-1])
	}
	var text string
	if err := json.Unmarshal(quoted, &text); err != nil {
		panic("strictjson: a checked string is not one: " + err.Error())
	}
	return text
}
