// Package live keeps the tasks of a session that have not ended, and decides what happens to them, in the same change, when one of them
// starts, is cancelled or ends. What a task is, and which events it takes, the package task says; who works at it, the engine. The
// session's actor owns the tasks: only it may call them.
package live

import (
	"cmp"
	"maps"
	"slices"

	"lashd/engine/change"
	"lashd/engine/queue"
	"lashd/rpc/protocol"
)

// Host is the session of the tasks, and the daemon that works at them.
type Host interface {
	// At is the attempt at a task; nil: this daemon makes none.
	At(protocol.TaskID) Attempt
	// Again makes an attempt at a task that was started before.
	Again(*protocol.Task) Attempt
	// WakeCeiling is what the wakes of a task are held to.
	WakeCeiling(*protocol.Task) *protocol.Ceiling
	// Wake queues a wake, or logs why it is refused.
	Wake(*change.Change, queue.Wake) error
	// Over decides what else changes in the session because a task is over.
	Over(*Draft, protocol.Task)
	// Moved is called once changes of tasks are stored.
	Moved()
}

// Attempt is work at a task, or is about to be.
type Attempt interface {
	// Claim takes a place if one is free, and tells whether the attempt needs to wait for none.
	Claim() bool
	// Release gives the place back.
	Release()
	// Go begins the attempt. begun tells whether it is stored that it has begun.
	Go(t protocol.Task, begun bool)
	// End asks the attempt to end.
	End(by, reason string)
}

// Tasks are the live tasks of a session.
type Tasks struct {
	session      protocol.SessionID
	incarnation  string
	host         Host
	live         map[protocol.TaskID]protocol.Task
	leaving      map[protocol.TaskID]bool // on their way to another session: no task in live
	failedHidden *protocol.Task           // the first one that failed since TakeFailedHidden; nil: none
}

// New makes Tasks of those that the store has as live. incarnation is the daemon's.
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

// All returns the live tasks in the order of their creation; never nil.
func (ts *Tasks) All() []protocol.Task {
	all := slices.AppendSeq([]protocol.Task{}, maps.Values(ts.live))
	slices.SortFunc(all, func(a, b protocol.Task) int {
		return cmp.Or(cmp.Compare(a.CreatedAtMs, b.CreatedAtMs), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// Listed returns the live tasks that clients see.
func (ts *Tasks) Listed() []protocol.Task {
	return slices.DeleteFunc(ts.All(), func(t protocol.Task) bool { return t.Spec.Hidden })
}

// AnyHidden tells whether a hidden task is live, apart from one.
func (ts *Tasks) AnyHidden(apart protocol.TaskID) bool {
	for _, t := range ts.live {
		if t.Spec.Hidden && t.ID != apart {
			return true
		}
	}
	return false
}

// TakeFailedHidden returns the first hidden task that failed since the last call; nil: none did.
func (ts *Tasks) TakeFailedHidden() *protocol.Task {
	failed := ts.failedHidden
	ts.failedHidden = nil
	return failed
}

// Leaving tells whether a task is on its way to another session.
func (ts *Tasks) Leaving(id protocol.TaskID) bool { return ts.leaving[id] }

// HandOver takes tasks out of the session. It is the first half of a transfer, which HandedOver ends.
func (ts *Tasks) HandOver(moving []protocol.Task) {
	for _, t := range moving {
		delete(ts.live, t.ID)
		ts.leaving[t.ID] = true
	}
}

// HandedOver ends a transfer. gone tells whether the tasks are another session's now; otherwise they are this one's again.
func (ts *Tasks) HandedOver(moving []protocol.Task, gone bool) {
	for _, t := range moving {
		delete(ts.leaving, t.ID)
		if gone {
			delete(ts.live, t.ID) // it is there again if the session was loaded again meanwhile
		} else {
			ts.live[t.ID] = t
		}
	}
}
