package engine

import (
	"context"

	"lashd/rpc/protocol"
)

// watchStore posts the condition of the store whenever it changes, until ctx is done.
func (e *Engine) watchStore(ctx context.Context) {
	told := "ok" // as whoever came before was told, unless the condition has changed since
	for {
		again := e.store.Changed()
		if c := e.Condition(); c != told {
			told = c
			e.Events.Publish("store", protocol.ServerEvent{Type: protocol.ServerStoreChanged, Store: c})
		}
		select {
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// Condition is "ok", or what the store does not do at present, and why.
func (e *Engine) Condition() string {
	if err := e.store.Condition(); err != nil {
		return err.Error()
	}
	if lost := e.store.Rollback(); lost != nil {
		return lost.Error()
	}
	return "ok"
}
