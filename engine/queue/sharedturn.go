package queue

import (
	"reflect"
	"slices"
	"time"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Wakes that may share a turn do so within these limits.
const (
	maxMerged    = 64
	maxMergeAge  = 30_000 // ms, of the oldest
	mergeReserve = 2      // together they take at most one part in so many of what the model can be told
)

// place gives a wake a turn: the newest one if the wake may share it, or else a new one, which is returned. A turn that has begun gets
// no more wakes, so that a turn which is driven again consists of what it did.
func (d *Draft) place(in *protocol.QueuedInput) *persistence.StoredTurn {
	if n := len(d.turns); n > 0 && d.turns[n-1].State == protocol.TurnQueued && d.policy.Drain != protocol.DrainOne {
		if with := of(d.turns[n-1].ID, d.inputs); shares(*in, with) && textSize(*in)+textSize(with...) <= d.policy.Room/mergeReserve {
			in.TurnID = d.turns[n-1].ID
			return nil
		}
	}
	t := d.newTurn()
	in.TurnID = t.ID
	return &t
}

// shares reports whether a wake may come to the model together with others: only if those who cause them may do the same.
func shares(in protocol.QueuedInput, with []protocol.QueuedInput) bool {
	if in.Wake.Merge == "" || len(with) == 0 || len(with) >= maxMerged || in.AtMs-with[0].AtMs > maxMergeAge {
		return false
	}
	return !slices.ContainsFunc(with, func(o protocol.QueuedInput) bool {
		return o.Wake == nil || o.Wake.Merge != in.Wake.Merge || o.Wake.Delivery != in.Wake.Delivery || !reflect.DeepEqual(o.Ceiling, in.Ceiling)
	})
}

func textSize(inputs ...protocol.QueuedInput) (n int) {
	for _, in := range inputs {
		for _, p := range in.Input {
			n += len(p.Text)
		}
	}
	return n
}

// Entering are the inputs that enter a running turn at a checkpoint which admits some boundaries: all that people sent, and of the wakes as
// many from the oldest on as the policy lets in together.
func (q *Queue) Entering(id protocol.TurnID, policy protocol.DrainPolicy, admits func(protocol.Boundary) bool) (enter []protocol.QueuedInput) {
	var wakes []protocol.QueuedInput
	shut := false
	for _, in := range of(id, q.inputs) {
		switch {
		case in.State != protocol.InputPendingActive || !admits(in.Boundary):
			continue
		case in.Wake == nil:
		case expired(in), shut:
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

// expired reports whether a wake came too late to be of use.
func expired(in protocol.QueuedInput) bool {
	return in.Wake != nil && in.Wake.ExpiresAtMs > 0 && in.Wake.ExpiresAtMs <= time.Now().UnixMilli()
}
