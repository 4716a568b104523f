package strictjson

import (
	"bytes"
	"iter"
)

// cursor walks over data that has passed Check, so its methods need no error handling: brackets
// match, and every value is complete. They skip leading white space. Data that has not passed Check
// may make them panic.
type cursor struct {
	data []byte
	pos  int
}

// Members returns the keys and values of an object in their order. Data must have passed Check and
// be an object. Values share memory with data.
func Members(data []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		c := cursor{data: data}
		for c.enter(); c.more(); {
			key := c.key()
			if !yield(key, c.skip()) {
				return
			}
		}
	}
}

// Elements returns the values of an array. Data must have passed Check and be an array. Values
// share memory with data.
func Elements(data []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		c := cursor{data: data}
		for c.enter(); c.more(); {
			if !yield(c.skip()) {
				return
			}
		}
	}
}

// IsEmptyArray reports whether data is an array without elements. Data must have passed Check.
func IsEmptyArray(data []byte) bool {
	if data = bytes.TrimSpace(data); data[0] != '[' {
		return false
	}
	for range Elements(data) {
		return false
	}
	return true
}

// Text returns the string that data encodes, or false if data is not a string. Data must have
// passed Check.
func Text(data []byte) (string, bool) {
	data = bytes.TrimSpace(data)
	if data[0] != '"' {
		return "", false
	}
	return unquote(data, bytes.IndexByte(data, '\\') >= 0), true
}

// peek skips white space and returns the next byte without consuming it.
func (c *cursor) peek() byte {
	for isSpace(c.data[c.pos]) {
		c.pos++
	}
	return c.data[c.pos]
}

// enter skips the bracket that opens an object or array.
func (c *cursor) enter() {
	c.peek()
	c.pos++
}

// more reports whether another member or element follows. It moves to it, or over the closing
// bracket.
func (c *cursor) more() bool {
	switch c.peek() {
	case '}', ']':
		c.pos++
		return false
	case ',':
		c.pos++
	}
	return true
}

// key skips a key and its colon, and returns the key.
func (c *cursor) key() string { return c.word().text() }

// word is key without unquoting, which saves an allocation per key.
func (c *cursor) word() word {
	c.peek()
	start := c.pos
	w := word{escaped: c.text()}
	w.quoted = c.data[start:c.pos]
	c.peek()
	c.pos++
	return w
}

// word is a string as it occurs in the data, with its quotes.
type word struct {
	quoted  []byte
	escaped bool
}

// text returns the string that the word encodes.
func (w word) text() string { return unquote(w.quoted, w.escaped) }

// quoted skips the string at pos and returns its text.
func (c *cursor) quoted() string {
	start := c.pos
	escaped := c.text()
	return unquote(c.data[start:c.pos], escaped)
}

// text skips a string and reports whether it contains escapes.
func (c *cursor) text() (escaped bool) {
	s := scanner{data: c.data, pos: c.pos}
	escaped, _ = s.text()
	c.pos = s.pos
	return escaped
}

// skip skips a value and returns its bytes without surrounding white space.
func (c *cursor) skip() []byte {
	c.peek()
	start := c.pos
	for depth := 0; ; {
		switch b := c.data[c.pos]; b {
		case '"':
			c.text()
		case '{', '[':
			depth++
			c.pos++
		case '}', ']':
			depth--
			c.pos++
		case ',', ':', ' ', '\t', '\r', '\n':
			c.pos++
		default:
			c.scalar()
		}
		if depth == 0 {
			return c.data[start:c.pos]
		}
	}
}

// scalar skips a number, true, false or null.
func (c *cursor) scalar() {
	for c.pos < len(c.data) {
		switch c.data[c.pos] {
		case ',', ']', '}', ' ', '\t', '\r', '\n':
			return
		}
		c.pos++
	}
}
