package provider

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"lashd/rpc/protocol"
)

const (
	// ReplyLimit bounds one reply, in bytes as JSON spells them. A reply is committed as one, its text several times.
	ReplyLimit = 3 << 19
	// CallLimit bounds the tool calls of one reply.
	CallLimit = 256
	// ArgsDepth bounds how deep arguments may be nested: they are encoded again inside of other values.
	ArgsDepth = 48

	partCost = 64 // of a part beside its text
)

// Meter keeps one reply within the limits. The zero value is ready.
type Meter struct {
	size  int               // bytes so far, as Cost counts
	calls int               // tool calls so far
	kind  protocol.PartKind // of the last delta
}

// Take counts a chunk in. The error is an *Error, and says that the reply would be too long with it.
// A chunk that does not fit is not counted.
func (m *Meter) Take(c *Chunk) error {
	size, calls := len(c.Replay), 0
	size += m.delta(protocol.PartReasoning, c.Reasoning)
	size += m.delta(protocol.PartCommentary, c.Commentary)
	size += m.delta(protocol.PartProse, c.Text)
	if c.Part != nil {
		m.kind = c.Part.Kind
		size += partCost + Cost(c.Part.Text) + len(c.Part.Replay)
		if call := c.Part.Call; call != nil {
			calls = 1
			size += Cost(string(call.CallID)) + Cost(call.Name) + Cost(string(call.Args))
		}
	}
	if err := m.Fits(size, calls); err != nil {
		return err
	}
	m.size += size
	m.calls += calls
	return nil
}

// delta returns the cost of a delta. The first delta of a part costs partCost more.
func (m *Meter) delta(kind protocol.PartKind, text string) int {
	if text == "" {
		return 0
	}
	size := Cost(text)
	if kind != m.kind {
		size += partCost
	}
	m.kind = kind
	return size
}

// Fits returns an error if size more bytes or calls more tool calls would exceed a limit. It counts neither.
func (m *Meter) Fits(size, calls int) error {
	if m.size+size > ReplyLimit {
		return TooLong("the reply is longer than 1.5 MiB; what came before is kept")
	}
	if m.calls+calls > CallLimit {
		return &Error{Kind: KindStream, Code: "too_many_calls", Message: "the reply holds more than 256 tool calls"}
	}
	return nil
}

// TooLong is the failure of a reply that is more than can be kept. Asking again would not make it shorter.
func TooLong(message string) *Error {
	return &Error{Kind: KindStream, Code: "reply_too_long", Message: message}
}

// Cost is how many bytes a text takes in a string of JSON.
func Cost(text string) int {
	cost := len(text)
	for i := range len(text) {
		cost += int(escapes[text[i]])
	}
	return cost
}

// escapes is what encoding/json adds to a byte, at most.
var escapes = func() (extra [256]uint8) {
	for b := range ' ' {
		extra[b] = uint8(len(`\u0000`) - 1)
	}
	for _, b := range "<>&" {
		extra[b] = uint8(len(`\u0000`) - 1)
	}
	for _, b := range "\"\\\n\t\r" {
		extra[b] = 1
	}
	return extra
}()

// Arguments returns the arguments of a call in a form that can be stored. Missing arguments become an empty object. Arguments that are
// not JSON, or are nested too deeply, become a JSON string. No tool accepts a string, so none runs with arguments that the model did not send.
func Arguments(args json.RawMessage) json.RawMessage {
	switch text := bytes.TrimSpace(args); {
	case len(text) == 0, string(text) == "null":
		return json.RawMessage("{}")
	case !deep(args) && json.Valid(args) && utf8.Valid(args):
		return args
	}
	quoted, err := json.Marshal(string(args))
	if err != nil {
		panic("encode a string: " + err.Error())
	}
	return quoted
}

// deep reports whether brackets outside of strings are nested too deeply.
func deep(data []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(data) && depth <= ArgsDepth; i++ {
		switch b := data[i]; {
		case b == '"':
			quoted = !quoted
		case quoted && b == '\\':
			i++
		case quoted:
		case b == '[', b == '{':
			depth++
		case b == ']', b == '}':
			depth--
		}
	}
	return depth > ArgsDepth
}
