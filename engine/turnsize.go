package engine

import (
	"encoding/json"
	"fmt"

	"lashd/persistence"
)

// A turn makes no further model call once it has reached half of what one commit can store at its
// end. The other half is for the reply and its tool results.
const (
	fullNodes = persistence.MaxTurnNodes / 2
	fullBytes = persistence.MaxTurnBytes / 2
)

// FullTurnError means that a turn is too large for another model call. The turn ends there and
// keeps everything it has done.
type FullTurnError struct{ Messages, Bytes int }

func (e *FullTurnError) Error() string {
	return fmt.Sprintf("the turn has reached its size limit (%d messages, %d MiB with tool results); send a message to continue in a new turn", e.Messages, e.Bytes>>20)
}

// turnSize counts what the commit that ends the turn will hold, as far as it was measured: nodes,
// tool calls and their bytes as JSON.
type turnSize struct{ nodes, calls, bytes int }

// weigh measures what is new in the turn, and fails with *FullTurnError if there is no room for
// another model call. It is called before each model call and encodes each message only once.
func (j *journal) weigh() error {
	s := &j.size
	for ; s.nodes < len(j.nodes); s.nodes++ {
		s.bytes += encodedSize(j.nodes[s.nodes].Message)
	}
	calls := j.result().ToolCalls
	for ; s.calls < len(calls); s.calls++ {
		s.bytes += encodedSize(calls[s.calls])
	}
	if s.nodes >= fullNodes || s.bytes >= fullBytes {
		return &FullTurnError{Messages: s.nodes, Bytes: s.bytes}
	}
	return nil
}

// encodedSize returns the size of a value as JSON, or 0 if it cannot be encoded and so cannot be
// stored.
func encodedSize(v any) int {
	b, _ := json.Marshal(v)
	return len(b)
}
