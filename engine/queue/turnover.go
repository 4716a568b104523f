package queue

import (
	"slices"

	"lashd/engine/change"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// TurnOver decides what becomes of a turn's inputs when it ends. Inputs that it took in are completed. An input that a person steered at
// it too late goes to the next turn, which is made if there is none; a wake gets a turn as if it came now.
func (d *Draft) TurnOver(c *change.Change, id protocol.TurnID) {
	d.turns = without(d.turns, id)
	all, known, late := d.inputs, len(d.turns), false
	d.inputs = d.inputs[:0:0]
	for _, in := range all {
		switch {
		case in.TurnID != id:
			d.inputs = append(d.inputs, in)
			continue
		case in.State != protocol.InputPendingActive:
			in.State = protocol.InputCompleted
		case expired(in):
			in.State, in.Refused, late = protocol.InputCancelled, protocol.WakeExpired, true
		default:
			d.postpone(c, &in)
			d.inputs, late = append(d.inputs, in), true
		}
		c.Inputs = append(c.Inputs, in)
	}
	for _, t := range d.turns[known:] {
		c.Tell(accepted(t.ID, of(t.ID, d.inputs)...))
	}
	if late {
		d.TellWaiting(c)
	}
}

// postpone gives an input that came too late for a turn another one, which it answers if it had to be made.
func (d *Draft) postpone(c *change.Change, in *protocol.QueuedInput) {
	in.State = protocol.InputDeferred
	switch {
	case in.Wake != nil:
		if t := d.place(in); t != nil {
			d.addTurn(c, *t)
		}
	case len(d.turns) > 0 && in.Ceiling == nil: // a turn is not held to what the input of another one is held to
		in.TurnID = d.turns[0].ID
	default:
		t := d.newTurn()
		in.TurnID = t.ID
		d.addTurn(c, t)
	}
}

// GoOn is TurnOver for a turn that another one goes on from: what was steered at the one is steered at the other. The rows of the next
// turn are in the change already.
func (d *Draft) GoOn(c *change.Change, id protocol.TurnID, next persistence.StoredTurn, input protocol.QueuedInput) {
	all := d.inputs
	d.inputs = d.inputs[:0:0]
	for _, in := range all {
		switch {
		case in.TurnID != id:
		case in.State == protocol.InputPendingActive:
			in.TurnID = next.ID
			c.Inputs = append(c.Inputs, in)
		default:
			in.State = protocol.InputCompleted
			c.Inputs = append(c.Inputs, in)
			continue
		}
		d.inputs = append(d.inputs, in)
	}
	d.turns = slices.Insert(without(d.turns, id), 0, next)
	d.inputs = append(d.inputs, input)
	c.Tell(accepted(next.ID, input))
	if len(waiting(d.inputs, d.turns)) > 0 {
		d.TellWaiting(c)
	}
}
