// Package live holds the tasks of a session that have not ended. It decides what else
// changes, in the same commit, when a task starts, is cancelled or ends.
//
// Package task defines tasks and their events; the engine runs them. All functions must be
// called from the session's actor.
package live

import (
	"cmp"
	"maps"
	"slices"

	"lashd/engine/change"
	"lashd/engine/queue"
	"lashd/rpc/protocol"
)

// Host is the session of the tasks, and the part of the daemon that runs them.
type Host interface {
	// At returns the running attempt at a task, or nil if this daemon runs none.
	At(protocol.TaskID) Attempt
	// Again creates an attempt at a task that was started before.
	Again(*protocol.Task) Attempt
	// WakeCeiling returns the ceiling that wakes of a task have, or nil.
	WakeCeiling(*protocol.Task) *protocol.Ceiling
	// Wake queues a wake. It logs a rejected wake; an error fails the change.
	Wake(*change.Change, queue.Wake) error
	// Over adds whatever else changes in the session when a task has ended.
	Over(*Draft, protocol.Task)
	// Moved is called after changes of tasks are stored.
	Moved()
}

// Attempt is the work of this daemon on one task. It may be waiting for a slot.
type Attempt interface {
	// Claim takes a slot without waiting, and reports whether it got one.
	Claim() bool
	// Release returns a slot that Claim took, if the change is not stored.
	Release()
	// Go starts the work. begun reports whether the start is already recorded; if not, Go
	// waits for a slot first.
	Go(t protocol.Task, begun bool)
	// End asks the work to end. It does not block.
	End(by, reason string)
}

// Tasks holds the live tasks of a session. Only Draft.Land and transfers change them.
type Tasks struct {
	session protocol.SessionID
	// incarnation identifies the daemon. Events of attempts record it.
	incarnation string
	host        Host
	live        map[protocol.TaskID]protocol.Task
	// leaving has tasks in transfer to another session. They are not in live.
	leaving map[protocol.TaskID]bool
	// failedHidden is the first hidden task that failed since TakeFailedHidden, or nil.
	failedHidden *protocol.Task
}

// New returns Tasks with the live tasks from the store.
func New(session protocol.SessionID, incarnation string, host Host, stored []protocol.Task) *Tasks {
	ts := &Tasks{session: session, incarnation: incarnation, host: host, live: map[protocol.TaskID]protocol.Task{}, leaving: map[protocol.TaskID]bool{}}
	for _, t := range stored {
		ts.live[t.ID] = t
	}
	return ts
}

// Find returns a live task.
func (ts *Tasks) Find(id protocol.TaskID) (protocol.Task, bool) {
	t, ok := ts.live[id]
	return t, ok
}

// All returns the live tasks, oldest first. It never returns nil.
func (ts *Tasks) All() []protocol.Task {
	all := slices.AppendSeq([]protocol.Task{}, maps.Values(ts.live))
	slices.SortFunc(all, func(a, b protocol.Task) int {
		return cmp.Or(cmp.Compare(a.CreatedAtMs, b.CreatedAtMs), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// Listed returns the live tasks that clients see, oldest first.
func (ts *Tasks) Listed() []protocol.Task {
	return slices.DeleteFunc(ts.All(), func(t protocol.Task) bool { return t.Spec.Hidden })
}

// AnyHidden reports whether a hidden task other than apart is live.
func (ts *Tasks) AnyHidden(apart protocol.TaskID) bool {
	for _, t := range ts.live {
		if t.Spec.Hidden && t.ID != apart {
			return true
		}
	}
	return false
}

// TakeFailedHidden returns the first hidden task that failed since the last call, or nil.
func (ts *Tasks) TakeFailedHidden() *protocol.Task {
	failed := ts.failedHidden
	ts.failedHidden = nil
	return failed
}

// Leaving reports whether a task is in transfer to another session.
func (ts *Tasks) Leaving(id protocol.TaskID) bool { return ts.leaving[id] }

// HandOver removes tasks from the session before they are transferred. HandedOver must
// follow.
func (ts *Tasks) HandOver(moving []protocol.Task) {
	for _, t := range moving {
		delete(ts.live, t.ID)
		ts.leaving[t.ID] = true
	}
}

// HandedOver completes a transfer. gone reports whether the other session has stored the
// tasks; if not, they return to this session.
func (ts *Tasks) HandedOver(moving []protocol.Task, gone bool) {
	for _, t := range moving {
		delete(ts.leaving, t.ID)
		if gone {
			delete(ts.live, t.ID) // reloading the session during the transfer has added it again
		} else {
			ts.live[t.ID] = t
		}
	}
}
