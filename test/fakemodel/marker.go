package fakemodel

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"
)

// marker is a reply described inside a prompt, "[[fake key=value ...]]".
type marker struct {
	deltas int    // text deltas; default 1
	size   int    // bytes of each; default 6
	us     int    // pause after each, in microseconds
	flush  int    // deltas written together; default 1
	think  int    // reasoning deltas before, of the same size
	tool   string // tool to call before the text
	args   string // its arguments; args64 holds them in base64url without padding
	rounds int    // replies that call the tool before the text; default 1
	calls  int    // of the tool in each of these; default 1
}

// parseMarker finds the last marker of a user message. A mistake in it is an
// error: a benchmark that silently ran with defaults would report nonsense.
func parseMarker(text string) (m marker, found bool, err error) {
	at := max(strings.LastIndex(text, "[[fake"), strings.LastIndex(text, "[[bench"))
	if at < 0 {
		return m, false, nil
	}
	inside, _, closed := strings.Cut(text[at+2:], "]]")
	if !closed {
		return m, false, fmt.Errorf("marker %.60q is not closed", text[at:])
	}
	m = marker{deltas: 1, size: 6, flush: 1, rounds: 1, calls: 1}
	numbers := map[string]*int{"deltas": &m.deltas, "size": &m.size, "us": &m.us, "flush": &m.flush, "rounds": &m.rounds, "think": &m.think, "calls": &m.calls}
	for _, field := range strings.Fields(inside)[1:] {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "tool":
			m.tool = value
		case "args64":
			b, err := base64.RawURLEncoding.DecodeString(value)
			if err != nil {
				return m, false, fmt.Errorf("marker field args64: %w", err)
			}
			m.args = string(b)
		default:
			p, ok := numbers[key]
			if !ok {
				return m, false, fmt.Errorf("unknown marker field %q", field)
			}
			if *p, err = strconv.Atoi(value); err != nil || *p < 0 {
				return m, false, fmt.Errorf("marker field %q wants a count", field)
			}
		}
	}
	return m, true, nil
}

// Marker renders a marker for a prompt that makes the model stream deltas of
// size bytes, pause apart.
func Marker(deltas, size int, pause time.Duration) string {
	return fmt.Sprintf("[[fake deltas=%d size=%d us=%d]]", deltas, size, pause.Microseconds())
}

// ToolMarker renders a marker that makes the model call a tool, then end with a line of text.
func ToolMarker(tool, args string) string {
	return fmt.Sprintf("[[fake tool=%s args64=%s]]", tool, base64.RawURLEncoding.EncodeToString([]byte(args)))
}

const proseSize = 1 << 16

// prose is text to cut deltas from: letters and spaces, so that it needs no
// JSON escapes, and random, since clients may give up on a model that repeats itself.
var prose = sync.OnceValue(func() []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, proseSize)
	for i := range b {
		b[i] = 'a' + byte(r.IntN(26))
		if r.IntN(6) == 0 {
			b[i] = ' '
		}
	}
	return b
})

// appendProse appends size bytes of prose; i chooses which.
func appendProse(b []byte, i, size int) []byte {
	text := prose()
	at := i * 4099 % proseSize // odd, so that all offsets come up before one repeats
	for size > 0 {
		n := min(size, proseSize-at)
		b = append(b, text[at:at+n]...)
		size -= n
		at = 0
	}
	return b
}
