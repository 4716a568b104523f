package engine

import (
	"lashd/engine/change"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// turnOver says what becomes of the inputs when a turn ends: those it took in are completed, and those that a person steered at it too
// late go to the next turn, which is made if there is none; a wake gets a turn as if it came now. If another turn goes on in its
// place, they are steered at that.
func (q *queueDraft) turnOver(c *change.Change, id protocol.TurnID, next *following) {
	q.turns = turnsWithout(q.turns, id)
	if next != nil {
		q.steerOn(c, id, next)
		return
	}
	all, known, late := q.inputs, len(q.turns), false
	q.inputs = q.inputs[:0:0]
	for _, in := range all {
		switch {
		case in.TurnID != id:
			q.inputs = append(q.inputs, in)
			continue
		case in.State != protocol.InputPendingActive:
			in.State = protocol.InputCompleted
		case lapsed(in):
			in.State, in.Refused, late = protocol.InputCancelled, protocol.WakeExpired, true
		default:
			if made := q.deferTo(&in); made != nil {
				q.addTurn(c, *made)
			}
			q.inputs, late = append(q.inputs, in), true
		}
		c.Inputs = append(c.Inputs, in)
	}
	for _, t := range q.turns[known:] {
		c.Tell(acceptedEvent(t.ID, ofTurn(t.ID, q.inputs)...))
	}
	if late {
		q.tellWaiting(c)
	}
}

// deferTo gives an input that came too late for a turn another one, which it answers if it had to be made.
func (q *queueDraft) deferTo(in *protocol.QueuedInput) *persistence.StoredTurn {
	in.State = protocol.InputDeferred
	if in.Wake != nil {
		return q.place(in)
	}
	if len(q.turns) > 0 && in.Ceiling == nil { // nobody's turn is held to what another one's input is held to
		in.TurnID = q.turns[0].ID
		return nil
	}
	t := q.st.newTurn()
	in.TurnID = t.ID
	return &t
}

// steerOn is turnOver for a turn that another one goes on from.
func (q *queueDraft) steerOn(c *change.Change, id protocol.TurnID, next *following) {
	all := q.inputs
	q.inputs = q.inputs[:0:0]
	for _, in := range all {
		switch {
		case in.TurnID != id:
		case in.State == protocol.InputPendingActive:
			in.TurnID = next.turn.ID
			c.Inputs = append(c.Inputs, in)
		default:
			in.State = protocol.InputCompleted
			c.Inputs = append(c.Inputs, in)
			continue
		}
		q.inputs = append(q.inputs, in)
	}
	q.turns = append([]persistence.StoredTurn{next.turn}, q.turns...)
	q.inputs = append(q.inputs, next.input)
	c.Tell(acceptedEvent(next.turn.ID, next.input))
	if waiting := waitingOf(q.inputs, q.turns); len(waiting) > 0 {
		c.Tell(queueChanged(waiting))
	}
}
