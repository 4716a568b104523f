// Package strictjson checks and decodes JSON that comes from a peer. Where encoding/json guesses (the last of two
// equal keys wins, Method means method, broken text is patched up), it refuses and says where and why.
//
// All functions may be called from several goroutines at once; none keeps the data it was given.
package strictjson

import (
	"cmp"
	"fmt"
	"strings"
)

const (
	defaultDepth  = 64
	defaultTokens = 1 << 18
)

// Limits bound what a value may cost whoever decodes it. Zero fields mean the default.
type Limits struct {
	Depth  int // arrays and objects inside one another; default 64
	Tokens int // values and keys together; default 262,144
}

// Error says what is wrong with some JSON, and where.
type Error struct {
	Offset  int    // of the first byte which is wrong
	Pointer string // the value (RFC 6901), if Decode found it to be wrong; "" is the whole
	Reason  string // half a sentence for people
}

// Error returns the reason and the place.
func (e *Error) Error() string {
	if e.Pointer != "" {
		return fmt.Sprintf("%s: %s", e.Pointer, e.Reason)
	}
	return fmt.Sprintf("byte %d: %s", e.Offset, e.Reason)
}

// Check reports with an *Error whether data is anything but one JSON value (RFC 8259) in valid UTF-8 without a byte
// order mark, within lim, in which no object has a key twice and no escape is half a surrogate pair.
func Check(data []byte, lim Limits) error {
	s := scanner{data: data, tokens: cmp.Or(lim.Tokens, defaultTokens)}
	if !s.document(cmp.Or(lim.Depth, defaultDepth)) {
		return s.error(cmp.Or(lim.Depth, defaultDepth), cmp.Or(lim.Tokens, defaultTokens))
	}
	return nil
}

// longWord is where a peer's word is cut in an error message.
const longWord = 64

// Quote shows a peer's word in an error message: quoted, and cut if it is long.
func Quote(word string) string {
	return fmt.Sprintf("%q", cut(word))
}

func cut(word string) string {
	if len(word) <= longWord {
		return word
	}
	return strings.ToValidUTF8(word[:longWord], "") + "..."
}
