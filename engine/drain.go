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
func (q *queueDraft) place(in *protocol.QueuedInput) *persistence.StoredTurn {
	if n := len(q.turns); n > 0 && q.turns[n-1].State == protocol.TurnQueued && q.st.row.Config.Drain != protocol.DrainOne {
		if with := ofTurn(q.turns[n-1].ID, q.inputs); shares(*in, with) && size(*in)+size(with...) <= q.st.roomForWakes()/mergeReserve {
			in.TurnID = q.turns[n-1].ID
			return nil
		}
	}
	t := q.st.newTurn()
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
	c := st.change(persistence.Commit{})
	q := st.queueIn(c)
	n := q.cancelInputs(c, protocol.WakeExpired, func(in protocol.QueuedInput) bool { return in.TurnID == turn.ID && lapsed(in) })
	if n == 0 {
		return false, nil
	}
	q.endEmptied(c, "its wake has expired")
	q.tellWaiting(c)
	return len(c.Turns) > 0, st.commit(st.ctx, c)
}
