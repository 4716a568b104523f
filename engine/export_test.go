package engine

import (
	"context"

	"lashd/rpc/protocol"
)

// Wake is a wake, for tests that have nothing else that wakes.
type Wake = wake

// WakeSession has a session take a wake, and tells which input it is or why it was refused.
func (e *Engine) WakeSession(ctx context.Context, id protocol.SessionID, w Wake) (protocol.QueuedInput, protocol.WakeRefusal, error) {
	got, err := e.wakeSession(ctx, id, w)
	return got.Input, got.Refused, err
}
