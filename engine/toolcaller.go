package engine

import (
	"context"

	"lashd/engine/change"
	"lashd/engine/undo"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// caller is on whose behalf tool calls are made: a turn, or a client that calls a tool directly (directcall.go).
type caller interface {
	// turnID is the turn that the calls belong to; empty: none.
	turnID() protocol.TurnID
	// journalID is the id that their rows in the journal stand under: that of the turn, or of the direct call.
	journalID() protocol.TurnID
	// tell makes events durable, and so shows them.
	tell(context.Context, []change.Event) error
	// decisions is where calls ask people and wait for completions; nil: nobody is asked.
	decisions() *asks
	// watched are the files that calls may change; nil: nobody looks at them.
	filePoint() *undo.Point
	// nested makes the calls that a call of m makes. Each has its result then, which is durable.
	nested(ctx context.Context, m *callMaker, calls []*toolCall) error
	// carriesOut tells whether what calls want done is done after them.
	appliesIntents() bool
	// addRow adds to a change the row of a call that runs, unless nobody would ask for it after a crash.
	addRow(*change.Change, persistence.Effect)
}

// turnID implements caller.
func (r *run) turnID() protocol.TurnID { return r.id }

// journalID implements caller.
func (r *run) journalID() protocol.TurnID { return r.id }

// tell implements caller.
func (r *run) tell(ctx context.Context, events []change.Event) error {
	return r.store.flush(ctx, nil, events...)
}

// decisions implements caller.
func (r *run) decisions() *asks { return &r.asks }

// watched implements caller.
func (r *run) filePoint() *undo.Point { return r.files }

// nested implements caller.
func (r *run) nested(ctx context.Context, m *callMaker, calls []*toolCall) error {
	return r.newBatch(m, calls).makeNested(ctx)
}

// carriesOut implements caller.
func (r *run) appliesIntents() bool { return true }

// addRow implements caller.
func (r *run) addRow(c *change.Change, row persistence.Effect) {
	c.Fence = persistence.Fence{Turn: r.id, Incarnation: r.eng.incarnation}
	c.Effects = append(c.Effects, row)
}
