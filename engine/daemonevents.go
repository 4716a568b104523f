package engine

import (
	"context"

	"lashd/rpc/protocol"
)

// watchStore posts the condition of the store whenever it changes, until ctx is done.
func (e *Engine) watchStore(ctx context.Context) {
	told := "ok" // as whoever came before was told, unless the condition has changed since
	for {
		again := e.store.Turned()
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

// outline is what of a session the daemon's watchers are told the changes of.
type outline struct {
	state    protocol.SessionState
	title    string
	archived bool
	turns    int64
	leaf     protocol.NodeID
}

// announce tells the daemon's watchers of a session that is not as they were told last.
func (st *state) announce() {
	o := outline{st.doing(), st.row.Title, st.row.Archived, st.row.TurnIndex, st.row.Head.Leaf}
	if st.lastPublished == (outline{}) || st.lastPublished == o {
		st.lastPublished = o
		return
	}
	st.lastPublished = o
	if st.eng.Events.Watched() {
		st.eng.Events.Session(st.public())
	}
}
