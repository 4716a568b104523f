// Package strictjson checks and decodes JSON from a peer. encoding/json guesses: the last of two
// equal keys wins, Method means method, and invalid UTF-8 is replaced. strictjson rejects such
// data, and reports where and why.
//
// All functions are safe for concurrent use. None keeps the data it is given.
package strictjson

import (
	"cmp"
	"fmt"
	"strings"
)

// Default limits; see Limits.
const (
	defaultDepth  = 64
	defaultTokens = 1 << 18
)

// Limits bound the cost of decoding a value. Zero fields mean the default.
type Limits struct {
	Depth  int // nested arrays and objects; default 64
	Tokens int // values and keys together; default 262,144
}

// Error says what is wrong with a JSON document, and where.
type Error struct {
	Offset  int    // of the first wrong byte
	Pointer string // the wrong value (RFC 6901), if Decode rejected it; "" is the whole document
	Reason  string // clause without a capital letter and a period
}

// Error returns the place and the reason.
func (e *Error) Error() string {
	if e.Pointer != "" {
		return fmt.Sprintf("%s: %s", e.Pointer, e.Reason)
	}
	return fmt.Sprintf("byte %d: %s", e.Offset, e.Reason)
}

// Check fails with an *Error unless data is one JSON value (RFC 8259) within lim. The text must be
// valid UTF-8 without a byte order mark. An object must not have a key twice, and no escape may be
// half a surrogate pair.
func Check(data []byte, lim Limits) error {
	s := scanner{data: data, tokens: cmp.Or(lim.Tokens, defaultTokens)}
	if !s.document(cmp.Or(lim.Depth, defaultDepth)) {
		return s.error(cmp.Or(lim.Depth, defaultDepth), cmp.Or(lim.Tokens, defaultTokens))
	}
	return nil
}

// longWord is the length in bytes after which an error message cuts a word of the peer.
const longWord = 64

// Quote formats a word of the peer for an error message: quoted, and cut if it is long.
func Quote(word string) string {
	return fmt.Sprintf("%q", truncate(word))
}

// truncate shortens a long word at a valid UTF-8 boundary.
func truncate(word string) string {
	if len(word) <= longWord {
		return word
	}
	return strings.ToValidUTF8(word[:longWord], "") + "..."
}
