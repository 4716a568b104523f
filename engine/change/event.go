package change

import (
	"encoding/json"
	"fmt"

	"lashd/engine/graph"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Event is a durable event. Observers get Event as it is; the log gets it without the item and without long inputs, to which it only
// refers.
type Event struct {
	Ref *graph.Ref `json:"ref,omitempty"` // the item that the event is about
	protocol.Event
}

// longInput is how many bytes of an input the log repeats in turn/accepted. A longer one stands only in the input's row.
const longInput = 16 << 10

// Stored returns the event as a row of the log: without session, seq and item, and of inputs only what changes.
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

// wire returns the event as observers get it. body is what Stored returned, which is the wire form of all events but those about
// items and inputs.
func (e Event) wire(id protocol.SessionID, seq protocol.Seq, body []byte) []byte {
	if e.Ref != nil || len(e.Queue) > 0 || e.long() {
		e.SessionID, e.Seq = id, seq
		return encode(e.Event)
	}
	return Splice(id, seq, body)
}

// long tells whether an event has more input than the log repeats.
func (e *Event) long() bool {
	return protocol.InputSize(e.Input) > longInput && len(e.InputIDs) > 0
}

// bare returns inputs with only the fields that change. The rows of the inputs have the rest.
func bare(queue []protocol.QueuedInput) []protocol.QueuedInput {
	var all []protocol.QueuedInput
	for _, in := range queue {
		all = append(all, protocol.QueuedInput{ID: in.ID, TurnID: in.TurnID, State: in.State, Boundary: in.Boundary, Refused: in.Refused})
	}
	return all
}

// Splice puts session and seq in front of a stored body.
func Splice(id protocol.SessionID, seq protocol.Seq, body []byte) []byte {
	return fmt.Appendf(nil, `{"sessionId":%s,"seq":%d,%s`, encode(id), seq, body[1:])
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return b
}
