package engine

import (
	"reflect"
	"slices"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Wakes that may share a turn do so within these limits.
const (
	maxMerged    = 64
	maxMergeAge  = 30_000 // ms, of the oldest
	mergeReserve = 2      // together they take at most one part in so many of what the model can be told
)

// place gives a wake a turn: the newest one if it may share that, or else one of its own, which it answers. What has begun is
// joined by nothing, so that a turn which is driven again consists of what it did.
func (st *state) place(in *protocol.QueuedInput, turns []persistence.StoredTurn, inputs []protocol.QueuedInput) *persistence.StoredTurn {
	if n := len(turns); n > 0 && turns[n-1].State == protocol.TurnQueued && st.row.Config.Drain != protocol.DrainOne {
		if with := ofTurn(turns[n-1].ID, inputs); shares(*in, with) && size(*in)+size(with...) <= st.roomForWakes()/mergeReserve {
			in.TurnID = turns[n-1].ID
			return nil
		}
	}
	t := st.newTurn()
	in.TurnID = t.ID
	return &t
}

func ofTurn(id protocol.TurnID, inputs []protocol.QueuedInput) (its []protocol.QueuedInput) {
	for _, in := range inputs {
		if in.TurnID == id {
			its = append(its, in)
		}
	}
	return its
}

// shares tells whether a wake may come to the model together with others: only if those who cause them may do the same.
func shares(in protocol.QueuedInput, with []protocol.QueuedInput) bool {
	if in.Wake.Merge == "" || len(with) == 0 || len(with) >= maxMerged || in.AtMs-with[0].AtMs > maxMergeAge {
		return false
	}
	return !slices.ContainsFunc(with, func(o protocol.QueuedInput) bool {
		return o.Wake == nil || o.Wake.Merge != in.Wake.Merge || o.Wake.Delivery != in.Wake.Delivery || !reflect.DeepEqual(o.Ceiling, in.Ceiling)
	})
}

func size(inputs ...protocol.QueuedInput) (n int) {
	for _, in := range inputs {
		for _, p := range in.Input {
			n += len(p.Text)
		}
	}
	return n
}

// entering are those of the inputs that enter a running turn at a checkpoint: all that people sent, and of the wakes as many from
// the oldest on as the policy lets in together.
func entering(policy protocol.DrainPolicy, admitted []protocol.QueuedInput) (enter []protocol.QueuedInput) {
	var wakes []protocol.QueuedInput
	shut := false
	for _, in := range admitted {
		switch {
		case in.Wake == nil:
		case lapsed(in), shut:
			continue
		case len(wakes) > 0 && (policy == protocol.DrainOne || !shares(in, wakes)):
			shut = true
			continue
		default:
			wakes = append(wakes, in)
		}
		enter = append(enter, in)
	}
	return enter
}

// lapsed tells whether a wake came too late to be of use.
func lapsed(in protocol.QueuedInput) bool {
	return in.Wake != nil && in.Wake.ExpiresAtMs > 0 && in.Wake.ExpiresAtMs <= now()
}

// dropLapsed takes the wakes out of a turn that is to start which came too late. If nothing is left of it, it ends, and does not
// start.
func (st *state) dropLapsed(turn persistence.StoredTurn) (ended bool, err error) {
	c := &persistence.Commit{}
	left := slices.Clone(st.inputs)
	left = slices.DeleteFunc(left, func(in protocol.QueuedInput) bool {
		if in.TurnID != turn.ID || !lapsed(in) {
			return false
		}
		in.State, in.Refused = protocol.InputCancelled, protocol.WakeExpired
		c.Inputs = append(c.Inputs, in)
		return true
	})
	if len(c.Inputs) == 0 {
		return false, nil
	}
	events := st.emptied(c, left, "its wake has expired")
	events = append(events, queueChanged(waitingOf(left, st.turns)))
	if _, err := st.commit(st.ctx, c, events...); err != nil {
		return false, err
	}
	st.inputs = left
	st.withoutEmptied(c)
	return len(c.Turns) > 0, nil
}
