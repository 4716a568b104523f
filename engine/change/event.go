package change

import (
	"encoding/json"
	"fmt"

	"lashd/engine/graph"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Event is a durable event. Observers receive it in full. The log stores it without the item and without long inputs,
// which other rows hold.
type Event struct {
	Ref *graph.Ref `json:"ref,omitempty"` // the item of the event; nil: none
	protocol.Event
}

// longInput is the maximum size in bytes of an input that turn/accepted repeats in the log. A longer one is only in the
// input's row.
const longInput = 16 << 10

// Stored returns the event as a row of the log: without session, seq and item, and with only the changed fields of
// inputs.
func (e Event) Stored() persistence.Event {
	e.SessionID, e.Seq = "", 0
	if e.Ref != nil {
		e.Item = nil
	}
	if e.long() {
		e.Input = nil
	}
	e.Queue = bare(e.Queue)
	return persistence.Event{Type: e.Type, Body: encode(e)}
}

// wire returns the event for observers. body is the result of Stored, which can be reused unless the event has an item
// or inputs.
func (e Event) wire(id protocol.SessionID, seq protocol.Seq, body []byte) []byte {
	if e.Ref != nil || len(e.Queue) > 0 || e.long() {
		e.SessionID, e.Seq = id, seq
		return encode(e.Event)
	}
	return Splice(id, seq, body)
}

// long reports whether the log leaves out the input of the event.
func (e *Event) long() bool {
	return protocol.InputSize(e.Input) > longInput && len(e.InputIDs) > 0
}

// bare returns inputs with only the fields that change; the rows of the inputs have the rest.
func bare(queue []protocol.QueuedInput) []protocol.QueuedInput {
	var all []protocol.QueuedInput
	for _, in := range queue {
		all = append(all, protocol.QueuedInput{ID: in.ID, TurnID: in.TurnID, State: in.State, Boundary: in.Boundary, Refused: in.Refused})
	}
	return all
}

// Splice returns a stored body with session and seq added at its front.
func Splice(id protocol.SessionID, seq protocol.Seq, body []byte) []byte {
	return fmt.Appendf(nil, `{"sessionId":%s,"seq":%d,%s`, encode(id), seq, body[1:])
}

// encode returns the JSON of one of our own types, which cannot fail.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return b
}
