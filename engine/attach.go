package engine

import (
	"context"

	"lashd/engine/feed"
	"lashd/engine/graph"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Attach reads a session as it is and subscribes to what comes. With AfterSeq it replays instead, or, where that is
// not possible, says so with a gap and gives the snapshot. The caller closes the subscription.
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
	a.result.Decisions = append(a.result.Decisions, below...)
	if p.AfterSeq == nil || a.result.Gap != nil {
		row := persistence.Session{Session: a.result.Session, Key: a.key, Branch: a.branch}
		if err := ss.snapshot(ctx, row, a.drafts, a.result); err != nil {
			a.sub.Close()
			return nil, nil, err
		}
	}
	return a.result, a.sub, nil
}

// Follow subscribes to what comes after a seq, for who is answered nothing of the session: what is open comes as events, too. The
// caller closes the subscription.
func (ss *Sessions) Follow(ctx context.Context, id protocol.SessionID, after protocol.Seq) (*feed.Subscription, error) {
	r, sub, err := ss.Attach(ctx, &protocol.SessionAttachParams{SessionID: id, AfterSeq: &after})
	if err != nil {
		return nil, err
	}
	sub.Tell(r.OpenItems)
	return sub, nil
}

// attach waits until a turn that was under way goes on, since what the log tells of it is else nowhere.
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

// attached is a session as it was when a subscription began.
type attached struct {
	result *protocol.SessionAttachResult
	sub    *feed.Subscription
	key    int64
	branch int64
	drafts []protocol.Node
}

func (st *state) attach(p *protocol.SessionAttachParams) attached {
	a := attached{key: st.key, branch: st.history.leaf().Branch, result: &protocol.SessionAttachResult{
		Session: st.public(), Seq: st.row.Seq, Queue: st.queue.Waiting(), Decisions: st.decisions.list(), Tasks: st.tasks.Listed(),
	}}
	if r := st.turns.running(); r != nil {
		a.drafts = r.journal.drafts()
	}
	if len(st.queue.Turns()) > 0 && st.turns.begun() { // also if it waits for its plugins
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

// enteredInputs are the inputs that the running turn has taken in, and of which its items do not tell yet.
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

// attachItems is how many nodes a snapshot shows at most; older ones are read by page.
const attachItems = 200

// snapshot reads what a person sees of the session as it was when the subscription began: the newest of its history,
// then what the log tells of the turn that was running.
func (ss *Sessions) snapshot(ctx context.Context, row persistence.Session, drafts []protocol.Node, r *protocol.SessionAttachResult) error {
	nodes, next, err := ss.eng.page(ctx, row, "", attachItems)
	if err != nil {
		return err
	}
	r.NextCursor = next
	r.Items = graph.Items(append(nodes, drafts...))
	return nil
}

// gap says why a cursor cannot be replayed, or is nil.
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
