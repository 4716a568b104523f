package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"lashd/engine/change"
	"lashd/engine/graph"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// noteNodes makes the machine's messages nodes. Those that the log tells of already keep their time.
func (r *run) noteNodes() {
	r.mu.Lock()
	defer r.mu.Unlock()
	msgs := r.machine.Messages()
	for i := len(r.nodes); i < len(msgs); i++ {
		at := now()
		if i < len(r.logged.Nodes) {
			at = r.logged.Nodes[i].AtMs
		}
		msg := msgs[i]
		r.nodes = append(r.nodes, protocol.Node{ID: r.nodeID(i), TurnID: r.id, Frame: r.begin.Frame, AtMs: at, Message: &msg})
	}
}

func (r *run) nodeID(ordinal int) protocol.NodeID {
	return protocol.DeriveNodeID(r.session.id, string(r.id), ordinal)
}

func (r *run) draft(id protocol.NodeID) *protocol.Node {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.nodes {
		if r.nodes[i].ID == id {
			n := r.nodes[i]
			return &n
		}
	}
	return nil
}

// drafts are the nodes whose items the log tells of. Only the actor asks.
func (r *run) drafts() []protocol.Node {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.nodes[:min(len(r.logged.Nodes), len(r.nodes))])
}

// noteEmit takes effects that nobody answers.
func (r *run) noteEmit(effect turn.Effect) {
	switch effect.Kind {
	case turn.EffectEmit:
		r.emits = append(r.emits, *effect.Emit)
		r.trace(TraceCustom, effect.Emit)
	case turn.EffectLog:
		r.trace(TraceIssue, effect.Log)
	}
}

// news are the events of what the log does not tell of yet, and what it tells after them. Calls that have no result
// yet are started, all other items completed.
func (r *run) news(result turn.Result) (progress, []change.Event) {
	var events []change.Event
	p := progress{Calls: r.logged.Calls, Emits: r.logged.Emits, Nodes: slices.Clip(r.logged.Nodes)}
	for ; p.Calls < len(result.Calls); p.Calls++ {
		call := result.Calls[p.Calls]
		events = append(events, change.Event{Event: protocol.Event{Type: protocol.EventModelRecorded, TurnID: r.id, Call: &call}})
	}
	for ; p.Emits < len(r.emits); p.Emits++ {
		e := r.emits[p.Emits]
		events = append(events, change.Event{Event: protocol.Event{Type: protocol.EventPluginCustom, TurnID: r.id, Name: e.Type, Body: e.Body}})
	}
	for i := len(p.Nodes); i < len(r.nodes); i++ {
		told, items := r.itemEvents(&r.nodes[i])
		events = append(events, told...)
		p.Nodes = append(p.Nodes, nodeNews{AtMs: r.nodes[i].AtMs, Items: items})
	}
	return p, events
}

func (r *run) itemEvents(n *protocol.Node) (events []change.Event, items []int) {
	for p := range n.Message.Parts {
		part := &n.Message.Parts[p]
		if part.Kind == protocol.PartToolResult {
			if e, ok := r.resultEvent(n, p); ok {
				events = append(events, e)
			}
			continue
		}
		item := graph.PartItem(n, p)
		kind := protocol.EventItemCompleted
		if item.Status == protocol.ItemInProgress {
			kind = protocol.EventItemStarted
		}
		events, items = append(events, r.itemEvent(kind, item, ref{Node: n.ID, Part: p})), append(items, p)
	}
	return events, items
}

func (r *run) itemEvent(kind protocol.EventType, item protocol.Item, of ref) change.Event {
	return change.Event{Ref: &of, Event: protocol.Event{Type: kind, TurnID: r.id, ItemID: item.ID, Item: &item}}
}

// resultEvent completes the item of the call that a result belongs to.
func (r *run) resultEvent(n *protocol.Node, part int) (change.Event, bool) {
	result := n.Message.Parts[part].Result
	for i := len(r.nodes) - 1; i >= 0; i-- {
		for p := range r.nodes[i].Message.Parts {
			call := r.nodes[i].Message.Parts[p].Call
			if call == nil || call.CallID != result.CallID {
				continue
			}
			item := graph.PartItem(&r.nodes[i], p)
			graph.Complete(&item, result)
			return r.itemEvent(protocol.EventItemCompleted, item, ref{Node: r.nodes[i].ID, Part: p, Result: n.ID, ResultPart: part}), true
		}
	}
	return change.Event{}, false
}

// turnChange begins a change of a running turn: first comes what the journal gathered and the log does not tell yet.
func (st *state) turnChange(r *run) *change.Change {
	result := r.machine.Result()
	after, events := r.news(result)
	c := st.change(persistence.Commit{
		Usage: r.ledger(result, r.logged.Calls), Effects: r.unwritten(after), Fence: persistence.Fence{Turn: r.id, Incarnation: st.eng.incarnation},
	})
	c.Shown = r.streamed
	c.Tell(events...)
	c.Then(func() {
		r.journal.begun, r.journal.pending = true, nil
		r.logged, r.streamed = after, nil
	})
	return c
}

// commitTurn commits a change of a running turn, with what is new of its files. If that fails, the log still has to tell all of it.
func (st *state) commitTurn(ctx context.Context, r *run, c *change.Change) error {
	c.Tell(r.files.into(&c.Commit)...)
	c.Then(r.files.stored)
	return st.commit(ctx, c)
}

// flush commits what the journal gathered, with journal rows and events that concern nobody else.
func (r *run) flush(ctx context.Context, rows []persistence.Effect, also ...change.Event) error {
	r.files.joinLook(false)
	return r.persist(ctx, func(ctx context.Context, st *state) error {
		c := st.turnChange(r)
		c.Effects = append(c.Effects, rows...)
		c.Tell(also...)
		return st.commitTurn(ctx, r, c)
	})
}

// persist runs a function of the actor that stores something. Want of space makes the turn wait, here, until there is
// some, or until ctx is done.
func (r *run) persist(ctx context.Context, f func(context.Context, *state) error) error {
	return untilSpace(ctx, func() error {
		_, err := ask(r, func(ctx context.Context, st *state) (struct{}, error) { return struct{}{}, f(ctx, st) })
		return err
	}, func(err error) {
		r.eng.Log.Error("turn waits to be stored", "turn", r.id, "error", err)
		r.trace(TraceStoreError, tracedError{Error: err.Error(), Waits: true})
	})
}

// untilSpace stores something again and again while there is no space for it, until ctx is done; waits is told each time.
func untilSpace(ctx context.Context, store func() error, waits func(error)) error {
	for {
		err := store()
		if !noSpace(err) {
			return err
		}
		waits(err)
		if err := pause(ctx, spaceCheck); err != nil {
			return err
		}
	}
}

// spaceCheck is how often what found no space, or the database locked, is tried again.
const spaceCheck = time.Second

func noSpace(err error) bool {
	return errors.Is(err, persistence.ErrFull) || errors.Is(err, persistence.ErrBusy)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
