package strictjson

import (
	"strconv"
	"strings"
)

// pointerUnescape decodes a reference token of RFC 6901.
var pointerUnescape = strings.NewReplacer("~1", "/", "~0", "~")

// Find returns the offsets of the value that an RFC 6901 pointer names and of its key. For elements
// and for the whole document, both are the value's. If the value does not exist, Find returns those
// of the innermost enclosing value that does. Data must have passed Check.
func Find(data []byte, pointer string) (key, value int) {
	c := cursor{data: data}
	c.peek()
	key, value = c.pos, c.pos
	if pointer == "" {
		return key, value
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		if !c.descend(pointerUnescape.Replace(token), &key) {
			return key, value
		}
		c.peek()
		value = c.pos
	}
	return key, value
}

// descend moves to the member or element of the value at pos that a token names, and stores its
// offset in begin. It returns false if there is none.
func (c *cursor) descend(token string, begin *int) bool {
	switch c.data[c.pos] {
	case '{':
		for c.enter(); c.more(); c.skip() {
			c.peek()
			at := c.pos
			if c.key() == token {
				*begin = at
				return true
			}
		}
	case '[':
		n := 0
		for c.enter(); c.more(); c.skip() {
			c.peek()
			if strconv.Itoa(n) == token {
				*begin = c.pos
				return true
			}
			n++
		}
	}
	return false
}
