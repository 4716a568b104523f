package engine

import (
	"encoding/json"
	"fmt"

	"lashd/persistence"
)

// A turn makes no further model call once it has reached half of what one commit can store at its end. The rest is for the reply and its tool results.
const (
	fullNodes = persistence.MaxTurnNodes / 2
	fullBytes = persistence.MaxTurnBytes / 2
)

// FullTurnError means that a turn has come to as much as can be stored at once. It ends there, with all that it has done.
type FullTurnError struct{ Messages, Bytes int }

func (e *FullTurnError) Error() string {
	return fmt.Sprintf("the turn has reached its size limit (%d messages, %d MiB with tool results); send a message to continue in a new turn", e.Messages, e.Bytes>>20)
}

// turnSize is how much the commit that ends a turn will have to hold, as far as it was weighed.
type turnSize struct{ nodes, calls, bytes int }

// weigh fails with *FullTurnError if the turn has no room for another call of the model.
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

// encodedSize is 0 for what cannot be stored anyway.
func encodedSize(v any) int {
	b, _ := json.Marshal(v)
	return len(b)
}
