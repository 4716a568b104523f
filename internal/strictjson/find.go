package strictjson

import (
	"strconv"
	"strings"
)

var pointerUnescape = strings.NewReplacer("~1", "/", "~0", "~")

// Find tells where the value that an RFC 6901 pointer names begins, and where its key does; of an element and of the whole
// that is the same. If the value is not there, it is the innermost one around it. Data must have passed Check.
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

// descend moves to the member or the element that a token names, in the value at pos, and tells where it begins.
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
