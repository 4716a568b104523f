package strictjson

import (
	"bytes"
	"iter"
)

// cursor walks over data which has passed Check, and so never meets a surprise.
type cursor struct {
	data []byte
	pos  int
}

// Members returns keys and values of an object in their order. Data must have passed Check and be an object.
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

// Elements returns the values of an array. Data must have passed Check and be an array.
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

// Text returns the string that data is. Data must have passed Check.
func Text(data []byte) (string, bool) {
	data = bytes.TrimSpace(data)
	if data[0] != '"' {
		return "", false
	}
	return unquote(data, bytes.IndexByte(data, '\\') >= 0), true
}

// peek moves over white space and returns the byte after it.
func (c *cursor) peek() byte {
	for isSpace(c.data[c.pos]) {
		c.pos++
	}
	return c.data[c.pos]
}

// enter moves over the bracket that opens an object or array.
func (c *cursor) enter() {
	c.peek()
	c.pos++
}

// more reports whether there is another member or element, and moves to it, or over the closing bracket.
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

// key moves over a key and its colon.
func (c *cursor) key() string { return c.word().text() }

// word moves over a key and its colon, and leaves the key as it stands.
func (c *cursor) word() word {
	c.peek()
	start := c.pos
	w := word{escaped: c.text()}
	w.quoted = c.data[start:c.pos]
	c.peek()
	c.pos++
	return w
}

// word is a string as it stands in the data, in its quotes.
type word struct {
	quoted  []byte
	escaped bool
}

func (w word) text() string { return unquote(w.quoted, w.escaped) }

// quoted moves over the string at pos and returns it.
func (c *cursor) quoted() string {
	start := c.pos
	escaped := c.text()
	return unquote(c.data[start:c.pos], escaped)
}

// text moves over a string and reports whether it has escapes.
func (c *cursor) text() (escaped bool) {
	s := scanner{data: c.data, pos: c.pos}
	escaped, _ = s.text()
	c.pos = s.pos
	return escaped
}

// skip moves over a value and returns it without the white space around it.
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

// scalar moves over a number or a word.
func (c *cursor) scalar() {
	for c.pos < len(c.data) {
		switch c.data[c.pos] {
		case ',', ']', '}', ' ', '\t', '\r', '\n':
			return
		}
		c.pos++
	}
}
