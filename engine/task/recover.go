package task

import (
	"cmp"
	"fmt"

	"lashd/rpc/protocol"
)

// Attempts is the default number of attempts at a rerunnable task.
const Attempts = 3

// Verdict is the decision about a task that no worker runs. The zero value leaves the task
// alone.
type Verdict struct {
	// Run means to start an attempt.
	Run bool
	// End is the outcome with which to end the task. Nil: it does not end.
	End *protocol.TaskOutcome
}

// Recover decides what to do with a live task that no worker of this daemon runs, as after
// a restart. It leaves final tasks and tasks that run elsewhere alone. The decision never
// depends on elapsed time, so every daemon decides the same.
func Recover(t *protocol.Task) Verdict {
	switch {
	case t.State.Final(), t.Spec.Recovery == protocol.RecoverExternal && t.AbandonWish == nil:
		return Verdict{}
	case t.AbandonWish != nil:
		return Verdict{End: Abandoned(t, protocol.WriterRequest, cmp.Or(t.AbandonWish.Reason, "it was abandoned on request"))}
	case t.CancelRequested != nil && t.Attempt > 0 && t.Spec.Subagent != nil: // the new attempt stops the turn of the child
		return Verdict{Run: true}
	case t.CancelRequested != nil && (t.Attempt == 0 || t.Spec.Recovery == protocol.RecoverRerun):
		return Verdict{End: &protocol.TaskOutcome{Kind: protocol.TaskStopped, By: t.CancelRequested.By, Message: t.CancelRequested.Reason}}
	case t.Attempt == 0:
		return Verdict{Run: true}
	case t.Spec.Recovery == protocol.RecoverOwner:
		return Verdict{End: Abandoned(t, protocol.WriterSweep, "the daemon that ran it has ended, and its processes with it")}
	case t.Attempt >= Limit(&t.Spec) && t.Spec.Subagent == nil: // each attempt at a subagent continues the same turn
		return Verdict{End: Abandoned(t, protocol.WriterExhausted, fmt.Sprintf("none of %d attempts finished", t.Attempt))}
	}
	return Verdict{Run: true}
}

// Limit returns the number of attempts that a task may have.
func Limit(s *protocol.TaskSpec) int {
	if s.Recovery != protocol.RecoverRerun {
		return 1
	}
	return cmp.Or(s.MaxAttempts, Attempts)
}

// Abandoned returns the outcome of a task whose real outcome cannot be known. reason is for
// people.
func Abandoned(t *protocol.Task, writer protocol.TaskWriter, reason string) *protocol.TaskOutcome {
	return &protocol.TaskOutcome{Kind: protocol.TaskLost, Evidence: &protocol.TaskEvidence{
		Writer: writer, Incarnation: t.Incarnation, Attempts: t.Attempt, Reason: reason,
	}}
}

// SessionClosed is the By of a task that ended because its session was closed.
const SessionClosed = "internal:sessionClosed"

// Pruned returns the part of a final task that is kept when the rest is removed to save
// space. A subagent keeps the sessions and names involved, because agents are found through
// their tasks. The fingerprint still recognizes a repeated request for the same task.
func Pruned(t protocol.Task) protocol.Task {
	t.Fingerprint, t.Pruned = Fingerprint(&t.Spec), true
	left := protocol.TaskSpec{Kind: t.Spec.Kind, Label: t.Spec.Label, Recovery: t.Spec.Recovery, Hidden: t.Spec.Hidden, Plugin: t.Spec.Plugin}
	if c := t.Spec.Subagent; c != nil {
		left.Payload = t.Spec.Payload
		left.Subagent = &protocol.TaskChild{SessionID: c.SessionID, TurnID: c.TurnID, Agent: c.Agent, Output: c.Output}
	}
	t.Spec = left
	t.Outcome = &protocol.TaskOutcome{Kind: t.Outcome.Kind, ExitCode: t.Outcome.ExitCode, Signal: t.Outcome.Signal, By: t.Outcome.By, Code: t.Outcome.Code}
	return t
}

// Asks reports whether a task, pruned or not, was started with a spec.
func Asks(t *protocol.Task, s *protocol.TaskSpec) bool {
	return cmp.Or(t.Fingerprint, Fingerprint(&t.Spec)) == Fingerprint(s)
}

// ParentEnd is the By of a task that was stopped because the turn or task that started it
// ended.
const ParentEnd = "internal:parentEnd"
