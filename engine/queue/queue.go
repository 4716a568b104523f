// Package queue decides which inputs of a session wait, which turn reads them, and which
// wakes share a turn. A queue holds the turns that have not ended and the inputs that no
// ended turn has consumed. The session's actor owns it and changes it through drafts of
// changes. The package does no I/O of its own.
package queue

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"lashd/engine/change"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Limits of the waiting inputs of a session. Input is accepted while both are below; the
// last may exceed maxBytes.
const (
	maxInputs = 256
	maxBytes  = 8 << 20
)

// ErrFull means that the session has too many waiting inputs.
var ErrFull = errors.New("input queue is full (256 inputs or 8 MiB); wait for a turn to finish or remove inputs with queue/cancel")

// Queue is the stored state of the queue. Only its drafts change it.
type Queue struct {
	// turns are in the order in which they run. A turn that has started comes first.
	turns []persistence.StoredTurn
	// inputs are in order of arrival.
	inputs []protocol.QueuedInput
	// wakePending means that a wake was queued since TakeWake.
	wakePending bool
	// begun is a turn that its change started and that no driver runs yet. Empty: none.
	begun protocol.TurnID
}

// New returns the queue of a loaded session. It moves a turn that has started to the front:
// a turn that continues another one in a new frame is the newest, but runs next.
func New(turns []persistence.StoredTurn, inputs []protocol.QueuedInput) *Queue {
	slices.SortStableFunc(turns, func(a, b persistence.StoredTurn) int { return cmp.Compare(rank(a), rank(b)) })
	return &Queue{turns: turns, inputs: inputs}
}

// rank is 0 for a turn that has started, and 1 for a queued one.
func rank(t persistence.StoredTurn) int {
	if t.State == protocol.TurnQueued {
		return 1
	}
	return 0
}

// Turns returns the turns that have not ended, in the order in which they run. The caller
// must not modify the slice.
func (q *Queue) Turns() []persistence.StoredTurn { return q.turns }

// Inputs returns the inputs that no ended turn has consumed, in order of arrival. The
// caller must not modify the slice.
func (q *Queue) Inputs() []protocol.QueuedInput { return q.inputs }

// Turn returns a turn that has not ended.
func (q *Queue) Turn(id protocol.TurnID) (persistence.StoredTurn, bool) {
	i := slices.IndexFunc(q.turns, func(t persistence.StoredTurn) bool { return t.ID == id })
	if i < 0 {
		return persistence.StoredTurn{}, false
	}
	return q.turns[i], true
}

// Withdrawable returns which of the inputs can be withdrawn: those that no turn has read.
// answers has one result for each id; gone is the set of inputs that can be withdrawn.
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

// BeginsWith returns the inputs with which a turn starts. Steered inputs are not among
// them; they enter at a checkpoint.
func (q *Queue) BeginsWith(id protocol.TurnID) (ids []protocol.InputID) {
	for _, in := range of(id, q.inputs) {
		if in.State == protocol.InputQueued || in.State == protocol.InputDeferred {
			ids = append(ids, in.ID)
		}
	}
	return ids
}

// Settings is what inputs set for their turn. The zero value sets nothing.
type Settings struct {
	Options *protocol.TurnOptions // for the driver; nil: those of the frame
	Effort  string                // reasoning effort; "": the session's
	// Iterations is the maximum number of model calls; 0: that of the session.
	Iterations int
	Schema     json.RawMessage // JSON Schema of the turn's value; nil: the turn ends with text
}

// ForTurn returns what the given inputs set for their turn. If several inputs set the same thing, the last one counts.
func ForTurn(inputs []protocol.QueuedInput, ids []protocol.InputID) (s Settings) {
	for _, in := range inputs {
		if !slices.Contains(ids, in.ID) {
			continue
		}
		s.Options, s.Effort = cmp.Or(in.TurnOptions, s.Options), cmp.Or(in.Effort, s.Effort)
		s.Iterations = cmp.Or(in.Iterations, s.Iterations)
		if len(in.Schema) > 0 {
			s.Schema = in.Schema
		}
	}
	return s
}

// Switches returns how many switches of frames in a row led to a turn.
func (q *Queue) Switches(id protocol.TurnID) (n int) {
	for _, in := range of(id, q.inputs) {
		n = max(n, in.Switches)
	}
	return n
}

// Begun reports whether the first turn has started, in this daemon or an earlier one.
func (q *Queue) Begun() bool { return len(q.turns) > 0 && rank(q.turns[0]) == 0 }

// CheckRoom returns ErrFull if no further input may be queued. Wakes have a separate limit.
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

// Waiting returns the inputs that have not entered a turn, as queue/changed reports them.
// It never returns nil.
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

// TakeBegun reports whether a turn was started by the change that added it. It returns true
// once.
func (q *Queue) TakeBegun(id protocol.TurnID) bool {
	begun := q.begun != "" && q.begun == id
	q.begun = ""
	return begun
}

// Steered reports whether inputs wait for a checkpoint of the running turn.
func (q *Queue) Steered() bool {
	return slices.ContainsFunc(q.inputs, func(in protocol.QueuedInput) bool { return in.State == protocol.InputPendingActive })
}

// TakeWake reports whether a wake was queued since the last call. If so, a turn may have to
// start.
func (q *Queue) TakeWake() bool {
	pending := q.wakePending
	q.wakePending = false
	return pending
}

// NewTurn returns a queued turn with a new id. It is in no queue yet.
func NewTurn(session protocol.SessionID, incarnation string, atMs int64) persistence.StoredTurn {
	return persistence.StoredTurn{Session: session, Turn: persistence.Turn{
		ID: protocol.NewTurnID(), State: protocol.TurnQueued, Incarnation: incarnation, AcceptedMs: atMs,
	}}
}

// of returns the inputs of a turn.
func of(id protocol.TurnID, inputs []protocol.QueuedInput) (its []protocol.QueuedInput) {
	for _, in := range inputs {
		if in.TurnID == id {
			its = append(its, in)
		}
	}
	return its
}

// accepted returns the event that a turn with these inputs was accepted.
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
