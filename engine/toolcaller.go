package engine

import (
	"context"

	"lashd/engine/change"
	"lashd/engine/undo"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// caller is the party that tool calls are made for: a turn, or a client that calls a tool directly
// (directcall.go). It decides where calls are journaled, who can be asked about them and what
// follows them. Methods may be called from the goroutines of calls.
type caller interface {
	// turnID is the turn that the calls belong to, or empty.
	turnID() protocol.TurnID
	// journalID is the id of the calls' journal rows: that of the turn, or of the direct call.
	journalID() protocol.TurnID
	// tell stores events and so publishes them.
	tell(context.Context, []change.Event) error
	// decisions asks people about calls and waits for completions. nil means that calls cannot ask.
	decisions() *asks
	// filePoint records changes of files for undo. nil means that they are not recorded.
	filePoint() *undo.Point
	// nested makes the calls that a call of m makes. When it returns nil, each has a stored result.
	nested(ctx context.Context, m *callMaker, calls []*toolCall) error
	// appliesIntents reports whether the intents of calls are applied after them.
	appliesIntents() bool
	// addRow adds the journal row of a running call to a change, if a later run of the daemon would
	// read it.
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

// filePoint implements caller.
func (r *run) filePoint() *undo.Point { return r.files }

// nested implements caller.
func (r *run) nested(ctx context.Context, m *callMaker, calls []*toolCall) error {
	return r.newBatch(m, calls).makeNested(ctx)
}

// appliesIntents implements caller.
func (r *run) appliesIntents() bool { return true }

// addRow implements caller.
func (r *run) addRow(c *change.Change, row persistence.Effect) {
	c.Fence = persistence.Fence{Turn: r.id, Incarnation: r.eng.incarnation}
	c.Effects = append(c.Effects, row)
}
