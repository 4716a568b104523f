package engine

import (
	"context"
	"time"

	"lashd/engine/change"
	"lashd/engine/decision"
	"lashd/engine/feed"
	"lashd/engine/graph"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Attach returns the present state of a session and subscribes to its later events. Without
// AfterSeq the result includes a snapshot of items. With AfterSeq the subscription replays the
// events after it. If these events cannot be replayed, the result has a gap and the snapshot
// instead. The caller closes the subscription.
func (ss *Sessions) Attach(ctx context.Context, p *protocol.SessionAttachParams) (*protocol.SessionAttachResult, *feed.Subscription, error) {
	a, err := ss.attach(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	below, err := ss.eng.Decisions.below(ctx, p.SessionID, a.key)
	if err != nil {
		a.sub.Close()
		return nil, nil, err
	}
	a.result.Decisions = decision.CountDown(append(a.result.Decisions, below...), time.Now())
	if p.AfterSeq == nil || a.result.Gap != nil {
		row := persistence.Session{Session: a.result.Session, Key: a.key, Branch: a.branch}
		if err := ss.snapshot(ctx, row, a.drafts, a.result); err != nil {
			a.sub.Close()
			return nil, nil, err
		}
	}
	return a.result, a.sub, nil
}

// Follow subscribes to the events after a sequence number, for callers that use no snapshot. Items
// that are still open are sent as events, too. The caller closes the subscription.
func (ss *Sessions) Follow(ctx context.Context, id protocol.SessionID, after protocol.Seq) (*feed.Subscription, error) {
	r, sub, err := ss.Attach(ctx, &protocol.SessionAttachParams{SessionID: id, AfterSeq: &after})
	if err != nil {
		return nil, err
	}
	sub.Tell(r.OpenItems)
	return sub, nil
}

// attach subscribes on the actor of the session. If a turn was interrupted, it first waits up to
// resumePatience for it to resume, because the details of an unfinished turn are only in its
// memory.
func (ss *Sessions) attach(ctx context.Context, p *protocol.SessionAttachParams) (attached, error) {
	for waited := false; ; waited = true {
		var s *session
		var resuming chan struct{}
		a, err := do(ctx, ss.eng, p.SessionID, func(_ context.Context, st *state) (attached, error) {
			if s = st.session; !waited {
				if _, resuming = s.runningTurn(); resuming != nil {
					return attached{}, nil
				}
			}
			return st.attach(p), nil
		})
		if err != nil || resuming == nil {
			return a, err
		}
		if err := s.waitResumed(ctx, resuming); err != nil && ctx.Err() != nil {
			return a, err
		}
	}
}

// attached is the state of a session at the moment when a subscription began. Everything in it is
// read in one step on the actor, so it matches the first event of the subscription.
type attached struct {
	// result is what the client receives, except for snapshot items and the decisions of subagents.
	result *protocol.SessionAttachResult
	// sub starts with the first event after the state in result.
	sub *feed.Subscription
	key int64
	// branch, with key, locates the history of the session in the store.
	branch int64
	// drafts are nodes of the running turn that are not committed yet.
	drafts []protocol.Node
}

// attach reads the state and subscribes, in one step on the actor.
func (st *state) attach(p *protocol.SessionAttachParams) attached {
	a := attached{key: st.key, branch: st.history.leaf().Branch, result: &protocol.SessionAttachResult{
		Session: st.public(), Seq: st.row.Seq, Queue: st.queue.Waiting(), Decisions: st.decisions.list(), Tasks: st.tasks.Listed(),
	}}
	if r := st.turns.running(); r != nil {
		a.drafts = r.journal.drafts()
	}
	if len(st.queue.Turns()) > 0 && st.turns.begun() { // even while it waits for its plugins
		a.result.TurnID, a.result.Entered = st.queue.Turns()[0].ID, st.enteredInputs(a.drafts)
	}
	after := st.row.Seq
	if p.AfterSeq != nil {
		if a.result.Gap = st.eng.Sessions.gap(p, st.row.Seq); a.result.Gap == nil {
			after = *p.AfterSeq
		}
	}
	a.sub, a.result.OpenItems = st.feed.Subscribe(after, st.session.replay)
	return a
}

// enteredInputs returns the inputs that the running turn has read but that none of its drafts shows
// yet.
func (st *state) enteredInputs(drafts []protocol.Node) (inputs []protocol.QueuedInput) {
	shown := map[protocol.InputID]bool{}
	for _, n := range drafts {
		if n.Message.Origin != nil {
			shown[n.Message.Origin.InputID] = true
		}
	}
	for _, in := range st.queue.Inputs() {
		if in.TurnID == st.queue.Turns()[0].ID && in.State != protocol.InputPendingActive && !shown[in.ID] {
			inputs = append(inputs, in)
		}
	}
	return inputs
}

// attachItems is the most nodes in a snapshot. A client reads older ones in pages.
const attachItems = 200

// snapshot fills in the items of a session as of the start of the subscription: its newest history,
// followed by the drafts of the turn that was running. It also fills in how full the context is.
func (ss *Sessions) snapshot(ctx context.Context, row persistence.Session, drafts []protocol.Node, r *protocol.SessionAttachResult) error {
	nodes, next, err := ss.eng.page(ctx, row, "", attachItems)
	if err != nil {
		return err
	}
	r.NextCursor, r.Items = next, graph.Items(append(nodes, drafts...))
	r.Context, err = change.ContextUse(ctx, ss.eng.store.Reader, row, r.Seq, nodes)
	return err
}

// gap returns why the events after a cursor cannot be replayed; nil if they can. The reason is
// "otherStore" if the cursor is from another database, or "rolledBack" if the database is older
// than the cursor.
func (ss *Sessions) gap(p *protocol.SessionAttachParams, newest protocol.Seq) *protocol.Gap {
	reason := ""
	switch {
	case p.Epoch != 0 && p.Epoch != ss.eng.store.Facts().Epoch:
		reason = "otherStore"
	case *p.AfterSeq > newest:
		reason = "rolledBack"
	default:
		return nil
	}
	return &protocol.Gap{SessionID: p.SessionID, FromSeq: *p.AfterSeq + 1, ToSeq: newest, Reason: reason}
}
