// Package queue decides which inputs of a session wait, which turn answers them, and which wakes share a turn. It holds the turns that
// have not ended and the inputs that no committed turn has consumed. The session's actor owns a queue and changes it by drafts of
// changes; the package does no I/O of its own.
package queue

import (
	"cmp"
	"errors"
	"slices"

	"lashd/engine/change"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Limits of the inputs that wait in a session. The last input may exceed the second.
const (
	maxInputs = 256
	maxBytes  = 8 << 20
)

// ErrFull means that a session has as many inputs as it may.
var ErrFull = errors.New("as much waits in the session as may: 256 inputs, or 8 MiB; wait for a turn to end, or withdraw some with queue/cancel")

// Queue is what is stored. Only its drafts change it.
type Queue struct {
	turns       []persistence.StoredTurn // in order of acceptance; a turn that has begun comes first
	inputs      []protocol.QueuedInput   // in order of arrival
	wakePending bool
	begun       protocol.TurnID // by the change that brought it, and driven by nobody yet; empty: none
}

// New makes the queue of a session that is loaded. A turn that has begun comes first: one that follows another in a new frame is the
// newest.
func New(turns []persistence.StoredTurn, inputs []protocol.QueuedInput) *Queue {
	slices.SortStableFunc(turns, func(a, b persistence.StoredTurn) int { return cmp.Compare(rank(a), rank(b)) })
	return &Queue{turns: turns, inputs: inputs}
}

func rank(t persistence.StoredTurn) int {
	if t.State == protocol.TurnQueued {
		return 1
	}
	return 0
}

// Turns are the turns that have not ended, in the order in which they run. The slice is the queue's own.
func (q *Queue) Turns() []persistence.StoredTurn { return q.turns }

// Inputs are the inputs that no committed turn has consumed, in order of arrival. The slice is the queue's own.
func (q *Queue) Inputs() []protocol.QueuedInput { return q.inputs }

// Turn finds a turn that has not ended.
func (q *Queue) Turn(id protocol.TurnID) (persistence.StoredTurn, bool) {
	i := slices.IndexFunc(q.turns, func(t persistence.StoredTurn) bool { return t.ID == id })
	if i < 0 {
		return persistence.StoredTurn{}, false
	}
	return q.turns[i], true
}

// Withdrawable decides which of the inputs can be withdrawn: those that no turn has taken in. answers says of each what becomes of it.
func (q *Queue) Withdrawable(inputs []protocol.QueuedInput) (answers []protocol.CancelledInput, gone map[protocol.InputID]bool) {
	gone = map[protocol.InputID]bool{}
	for _, in := range inputs {
		status := protocol.CancelDone
		if t, ok := q.Turn(in.TurnID); in.State != protocol.InputPendingActive && (!ok || t.State != protocol.TurnQueued) {
			status = protocol.CancelAlreadyClaimed
		} else {
			gone[in.ID] = true
		}
		answers = append(answers, protocol.CancelledInput{InputID: in.ID, Status: status})
	}
	return answers, gone
}

// BeginsWith are the inputs that a turn begins with. Those that were steered at it come in at a checkpoint.
func (q *Queue) BeginsWith(id protocol.TurnID) (ids []protocol.InputID) {
	for _, in := range of(id, q.inputs) {
		if in.State == protocol.InputQueued || in.State == protocol.InputDeferred {
			ids = append(ids, in.ID)
		}
	}
	return ids
}

// Switches is how many switches of frames in a row led to a turn.
func (q *Queue) Switches(id protocol.TurnID) (n int) {
	for _, in := range of(id, q.inputs) {
		n = max(n, in.Switches)
	}
	return n
}

// Begun reports whether the first turn was begun, by this daemon or an earlier one.
func (q *Queue) Begun() bool { return len(q.turns) > 0 && rank(q.turns[0]) == 0 }

// CheckRoom fails with ErrFull if no further input may be queued. Wakes have a limit of their own.
func (q *Queue) CheckRoom() error {
	size := 0
	for _, in := range q.inputs {
		size += protocol.InputSize(in.Input)
	}
	if len(q.inputs) >= maxInputs || size >= maxBytes {
		return ErrFull
	}
	return nil
}

// Waiting are the inputs that have not entered a turn: what queue/changed tells of.
func (q *Queue) Waiting() []protocol.QueuedInput { return waiting(q.inputs, q.turns) }

func waiting(inputs []protocol.QueuedInput, turns []persistence.StoredTurn) []protocol.QueuedInput {
	queue := []protocol.QueuedInput{}
	for _, in := range inputs {
		queued := slices.ContainsFunc(turns, func(t persistence.StoredTurn) bool {
			return t.ID == in.TurnID && t.State == protocol.TurnQueued
		})
		if in.State == protocol.InputPendingActive || queued {
			queue = append(queue, in)
		}
	}
	return queue
}

// TakeBegun reports whether a turn was begun by the change that brought it, and was not asked about since.
func (q *Queue) TakeBegun(id protocol.TurnID) bool {
	begun := q.begun != "" && q.begun == id
	q.begun = ""
	return begun
}

// Steered reports whether inputs wait for a checkpoint of the running turn.
func (q *Queue) Steered() bool {
	return slices.ContainsFunc(q.inputs, func(in protocol.QueuedInput) bool { return in.State == protocol.InputPendingActive })
}

// TakeWake reports whether a wake was queued since it was asked last: then a turn may start.
func (q *Queue) TakeWake() bool {
	pending := q.wakePending
	q.wakePending = false
	return pending
}

// NewTurn makes a turn that waits. It is in no queue yet.
func NewTurn(session protocol.SessionID, incarnation string, atMs int64) persistence.StoredTurn {
	return persistence.StoredTurn{Session: session, Turn: persistence.Turn{
		ID: protocol.NewTurnID(), State: protocol.TurnQueued, Incarnation: incarnation, AcceptedMs: atMs,
	}}
}

// of are those of the inputs that a turn answers.
func of(id protocol.TurnID, inputs []protocol.QueuedInput) (its []protocol.QueuedInput) {
	for _, in := range inputs {
		if in.TurnID == id {
			its = append(its, in)
		}
	}
	return its
}

func accepted(id protocol.TurnID, inputs ...protocol.QueuedInput) change.Event {
	e := protocol.Event{Type: protocol.EventTurnAccepted, TurnID: id}
	for _, in := range inputs {
		e.Input, e.InputIDs = append(e.Input, in.Input...), append(e.InputIDs, in.ID)
		if in.Wake != nil {
			e.Causes = append(e.Causes, in.Wake.Cause)
		}
	}
	return change.Event{Event: e}
}
