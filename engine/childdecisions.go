package engine

import (
	"context"
	"slices"

	"lashd/engine/change"
	"lashd/engine/decision"
	"lashd/rpc/protocol"
)

// What a session asks a person, those must learn who watch the sessions that it works for: its own may have no client at all.
// The question stays where it is, with its session. Who attaches above is given what is open below; from then on it is told,
// by events that are not durable, since they are of another session.

// decisionsBelow are the open questions of sessions that work for this one.
func (e *Engine) decisionsBelow(ctx context.Context, id protocol.SessionID, key int64) ([]protocol.Decision, error) {
	open, err := e.store.FamilyDecisions(ctx, key)
	return slices.DeleteFunc(open, func(d protocol.Decision) bool { return d.SessionID == id || !decision.ForPerson(d) }), err
}

// notifyParents tells who watches the sessions above of questions that are open or answered now.
func (st *state) notifyParents(events []change.Event) {
	events = slices.DeleteFunc(slices.Clone(events), func(e change.Event) bool { return e.Decision == nil || !decision.ForPerson(*e.Decision) })
	if st.row.Relation.Kind != protocol.RelationChild || len(events) == 0 {
		return
	}
	st.eng.childAsks.Notify()
	above, err := st.eng.store.Above(context.WithoutCancel(st.ctx), st.key)
	if err != nil {
		st.eng.Log.Error("nobody above is told of a question", "session", st.id, "error", err)
		return
	}
	for _, e := range events {
		st.eng.notifyParent(above, e.Event)
	}
}

// notifyParent tells whoever watches these sessions. Who does not will be given what is open once it attaches.
func (e *Engine) notifyParent(above []protocol.SessionID, event protocol.Event) {
	for _, id := range above {
		e.mu.Lock()
		s := e.sessions[id]
		e.mu.Unlock()
		if s != nil {
			s.feed.Surface(event)
		}
	}
}

// withdrawFromParents prepares to tell those above that what this session asks is asked no more, once it is deleted.
func (st *state) withdrawFromParents() (tell func()) {
	open := st.decisions.All()
	if st.row.Relation.Kind != protocol.RelationChild || len(open) == 0 {
		return func() {}
	}
	above, err := st.eng.store.Above(st.ctx, st.key)
	if err != nil {
		st.eng.Log.Error("nobody above is told of a question", "session", st.id, "error", err)
	}
	return func() {
		for _, o := range open {
			if d := o.Decision; o.ForPerson() {
				d.Answer = &protocol.DecisionAnswer{Choice: protocol.ChooseCancelled, By: "internal:session", AtMs: now()}
				st.eng.notifyParent(above, protocol.Event{Type: protocol.EventDecisionResolved, Decision: &d})
			}
		}
	}
}

// Decisions lists open decisions: of a session and of all that work for it, or of all sessions.
func (e *Engine) Decisions(ctx context.Context, p *protocol.DecisionListParams) (*protocol.DecisionListResult, error) {
	open, err := e.openDecisionsOf(ctx, p.SessionID)
	return &protocol.DecisionListResult{Data: list(open)}, err
}

func (e *Engine) openDecisionsOf(ctx context.Context, id protocol.SessionID) ([]protocol.Decision, error) {
	if id == "" {
		return e.store.OpenDecisions(ctx, 0)
	}
	row, err := e.store.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	return e.store.FamilyDecisions(ctx, row.Key)
}
