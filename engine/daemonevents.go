package engine

import (
	"context"

	"lashd/rpc/protocol"
)

// watchStore publishes an event of type protocol.ServerStoreChanged whenever the condition of the store changes, until
// ctx is done. Run starts it. It publishes nothing at the start if the store is in order.
func (e *Engine) watchStore(ctx context.Context) {
	lastPublished := "ok" // subscribers assume this until an event says otherwise
	for {
		again := e.store.Changed()
		if c := e.Condition(); c != lastPublished {
			lastPublished = c
			e.Events.Publish("store", protocol.ServerEvent{Type: protocol.ServerStoreChanged, Store: c})
		}
		select {
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// Condition returns "ok", or a sentence that says what the store cannot do at present and why: it
// rejects writes, or it lost commits that were seen before. server/status reports it. It is safe for
// concurrent use and does not wait for Run.
func (e *Engine) Condition() string {
	if err := e.store.Condition(); err != nil {
		return err.Error()
	}
	if lost := e.store.Rollback(); lost != nil {
		return lost.Error()
	}
	return "ok"
}
