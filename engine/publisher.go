package engine

import (
	"context"
	"slices"

	"lashd/engine/change"
	"lashd/engine/decision"
	"lashd/rpc/protocol"
)

// publisher tells clients that watch the daemon, or a parent session, what changes in a session. Clients of the session itself read its feed.
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

// publish sends a session to watchers of the daemon if its outline has changed. The first outline after a load is no change.
func (p *publisher) publish(s protocol.Session) {
	o := outline{s.State, s.Title, s.Archived, s.TurnIndex, s.Head.Leaf}
	changed := p.last != (outline{}) && p.last != o
	p.last = o
	if changed && p.session.eng.Events.Watched() {
		p.session.eng.Events.Session(s)
	}
}

// notifyParents sends the decisions of a child that ask a person, and their answers, to subscribers of the sessions above it: its own may have no client.
// These events are not durable there. A client that attaches above later is given what is open then.
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

// withdrawFromParents prepares the cancelling of a child's open decisions for the sessions above, before the child is deleted.
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

// above returns the sessions that the session works for.
func (p *publisher) above(ctx context.Context) []protocol.SessionID {
	above, err := p.session.eng.store.Ancestors(ctx, p.session.key)
	if err != nil {
		p.session.eng.Log.Error("parent sessions were not notified of a decision", "session", p.session.id, "error", err)
	}
	return above
}

// notifyParents sends an event to the subscribers of those sessions that are in memory.
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
