package engine

import (
	"context"
	"slices"

	"lashd/engine/change"
	"lashd/engine/decision"
	"lashd/rpc/protocol"
)

// publisher notifies clients that do not read the session's own feed: subscribers of the daemon, and subscribers
// of parent sessions. The session's actor owns it.
type publisher struct {
	session *session
	last    outline // as last seen by subscribers of the daemon; zero: nothing yet
}

// outline is the part of a session whose changes are published to subscribers of the daemon.
type outline struct {
	state    protocol.SessionState
	title    string
	archived bool
	turns    int64
	leaf     protocol.NodeID
}

// publish sends the session to subscribers of the daemon if its outline has changed since the last call. The first
// call after a load only records the outline.
func (p *publisher) publish(s protocol.Session) {
	o := outline{s.State, s.Title, s.Archived, s.TurnIndex, s.Head.Leaf}
	changed := p.last != (outline{}) && p.last != o
	p.last = o
	if changed && p.session.eng.Events.Watched() {
		p.session.eng.Events.Session(s)
	}
}

// notifyParents sends decisions that need a person, and their answers, from a child session to the subscribers of
// its parents, because the child may have no client. The parents do not store these events: a client that attaches
// later gets the open decisions.
func (p *publisher) notifyParents(ctx context.Context, relation protocol.Relation, events []change.Event) {
	events = slices.DeleteFunc(slices.Clone(events), func(e change.Event) bool { return e.Decision == nil || !decision.ForPerson(*e.Decision) })
	if relation.Kind != protocol.RelationChild || len(events) == 0 {
		return
	}
	p.session.eng.childDecisionsChanged.Notify()
	above := p.above(context.WithoutCancel(ctx))
	for _, e := range events {
		p.session.eng.notifyParents(above, e.Event)
	}
}

// withdrawFromParents prepares the cancellation of a child's open decisions at its parents. It reads the parents
// before the child is deleted; the caller calls tell after the deletion is stored.
func (p *publisher) withdrawFromParents(ctx context.Context, relation protocol.Relation, open []*decision.Open) (tell func()) {
	if relation.Kind != protocol.RelationChild || len(open) == 0 {
		return func() {}
	}
	above := p.above(ctx)
	return func() {
		for _, o := range open {
			if d := o.Decision; o.ForPerson() {
				d.Answer = &protocol.DecisionAnswer{Choice: protocol.ChooseCancelled, By: "internal:session", AtMs: now()}
				p.session.eng.notifyParents(above, protocol.Event{Type: protocol.EventDecisionResolved, Decision: &d})
			}
		}
	}
}

// above returns the ids of the parents, their parents, and so on. If the store fails it logs that, and parents are
// not notified.
func (p *publisher) above(ctx context.Context) []protocol.SessionID {
	above, err := p.session.eng.store.Ancestors(ctx, p.session.key)
	if err != nil {
		p.session.eng.Log.Error("parent sessions were not notified of a decision", "session", p.session.id, "error", err)
	}
	return above
}

// notifyParents sends an event to the subscribers of those sessions that are in memory. A session that is not
// loaded has no subscribers.
func (e *Engine) notifyParents(above []protocol.SessionID, event protocol.Event) {
	for _, id := range above {
		e.mu.Lock()
		s := e.sessions[id]
		e.mu.Unlock()
		if s != nil {
			s.feed.Surface(event)
		}
	}
}
