package queue

import (
	"reflect"
	"slices"
	"time"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Limits of wakes that share a turn.
const (
	// maxMerged is the number of wakes in one turn.
	maxMerged = 64
	// maxMergeAge is the age in milliseconds of the oldest wake up to which others may join
	// it.
	maxMergeAge = 30_000
	// mergeReserve divides the room of the model: together the wakes take at most half of
	// it.
	mergeReserve = 2
)

// place assigns a turn to a wake: the newest one if the wake may share it, else a new one,
// which it returns. A turn that has started gets no more wakes, so that a repetition of the
// turn sees the same input.
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

// shares reports whether a wake may join others. All must have the same key, delivery and
// ceiling, so that none gets more authority through another.
func shares(in protocol.QueuedInput, with []protocol.QueuedInput) bool {
	if in.Wake.Merge == "" || len(with) == 0 || len(with) >= maxMerged || in.AtMs-with[0].AtMs > maxMergeAge {
		return false
	}
	return !slices.ContainsFunc(with, func(o protocol.QueuedInput) bool {
		return o.Wake == nil || o.Wake.Merge != in.Wake.Merge || o.Wake.Delivery != in.Wake.Delivery || !reflect.DeepEqual(o.Ceiling, in.Ceiling)
	})
}

// textSize returns the bytes of text in inputs.
func textSize(inputs ...protocol.QueuedInput) (n int) {
	for _, in := range inputs {
		for _, p := range in.Input {
			n += len(p.Text)
		}
	}
	return n
}

// Entering returns the inputs that enter a running turn at a checkpoint. These are all
// inputs of people whose boundary the checkpoint admits, and the oldest wakes that may
// share a turn under the policy.
func (q *Queue) Entering(id protocol.TurnID, policy protocol.DrainPolicy, admits func(protocol.Boundary) bool) (enter []protocol.QueuedInput) {
	var wakes []protocol.QueuedInput
	wakesDone := false
	for _, in := range of(id, q.inputs) {
		switch {
		case in.State != protocol.InputPendingActive || !admits(in.Boundary):
			continue
		case in.Wake == nil:
		case expired(in), wakesDone:
			continue
		case len(wakes) > 0 && (policy == protocol.DrainOne || !shares(in, wakes)):
			wakesDone = true
			continue
		default:
			wakes = append(wakes, in)
		}
		enter = append(enter, in)
	}
	return enter
}

// expired reports whether a wake has expired.
func expired(in protocol.QueuedInput) bool {
	return in.Wake != nil && in.Wake.ExpiresAtMs > 0 && in.Wake.ExpiresAtMs <= time.Now().UnixMilli()
}
