package queue

import (
	"slices"

	"lashd/engine/change"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// TurnOver handles the inputs of a turn that ends. Inputs that it has read are completed. A
// steered input that arrived too late moves to the next turn, which is created if there is
// none. A late wake gets a turn as if it arrived now.
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

// postpone moves a late input to another turn.
func (d *Draft) postpone(c *change.Change, in *protocol.QueuedInput) {
	in.State = protocol.InputDeferred
	switch {
	case in.Wake != nil:
		if t := d.place(in); t != nil {
			d.addTurn(c, *t)
		}
	case len(d.turns) > 0 && in.Ceiling == nil: // an input with a ceiling must not limit a turn of other inputs
		in.TurnID = d.turns[0].ID
	default:
		t := d.newTurn()
		in.TurnID = t.ID
		d.addTurn(c, t)
	}
}

// GoOn is TurnOver for a turn that next continues in another frame. Waiting steered inputs
// move to next. The rows of next and its input must already be in the change.
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
