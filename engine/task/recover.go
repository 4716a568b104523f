package task

import (
	"cmp"
	"fmt"

	"lashd/rpc/protocol"
)

// Attempts is how often a rerunnable task is begun if it does not say itself.
const Attempts = 3

// Verdict is what is to be done with a task that nobody works at.
type Verdict struct {
	Run bool                  // an attempt is to begin
	End *protocol.TaskOutcome // the task is over
}

// Recover tells what is to be done with a live task that no worker of this daemon works at: nothing, if it runs elsewhere or
// is over. Elapsed time never matters.
func Recover(t *protocol.Task) Verdict {
	switch {
	case t.State.Final(), t.Spec.Recovery == protocol.RecoverExternal && t.AbandonWish == nil:
		return Verdict{}
	case t.AbandonWish != nil:
		return Verdict{End: Abandoned(t, protocol.WriterRequest, cmp.Or(t.AbandonWish.Reason, "it was given up"))}
	case t.CancelRequested != nil && t.Attempt > 0 && t.Spec.Subagent != nil: // whoever works at it stops the turn of the child
		return Verdict{Run: true}
	case t.CancelRequested != nil && (t.Attempt == 0 || t.Spec.Recovery == protocol.RecoverRerun):
		return Verdict{End: &protocol.TaskOutcome{Kind: protocol.TaskStopped, By: t.CancelRequested.By, Message: t.CancelRequested.Reason}}
	case t.Attempt == 0:
		return Verdict{Run: true}
	case t.Spec.Recovery == protocol.RecoverOwner:
		return Verdict{End: Abandoned(t, protocol.WriterSweep, "the daemon in which it ran has ended, and its processes with it")}
	case t.Attempt >= Limit(&t.Spec) && t.Spec.Subagent == nil: // each attempt at a subagent goes on with the same turn
		return Verdict{End: Abandoned(t, protocol.WriterExhausted, fmt.Sprintf("none of %d attempts came to an end", t.Attempt))}
	}
	return Verdict{Run: true}
}

// Limit is how often a task may be begun.
func Limit(s *protocol.TaskSpec) int {
	if s.Recovery != protocol.RecoverRerun {
		return 1
	}
	return cmp.Or(s.MaxAttempts, Attempts)
}

// Abandoned is the outcome of a task of which nobody can say how it ended.
func Abandoned(t *protocol.Task, writer protocol.TaskWriter, reason string) *protocol.TaskOutcome {
	return &protocol.TaskOutcome{Kind: protocol.TaskLost, Evidence: &protocol.TaskEvidence{
		Writer: writer, Incarnation: t.Incarnation, Attempts: t.Attempt, Reason: reason,
	}}
}

// SessionClosed is who ends the tasks that go with their session when that is closed.
const SessionClosed = "internal:sessionClosed"

// Pruned is what is left of a task that is over, once it is let go. Of a subagent that is also whose work it was, and what it said of
// itself: agents are known by their tasks.
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

// Asks tells whether a task was started with a spec, also if it is pruned.
func Asks(t *protocol.Task, s *protocol.TaskSpec) bool {
	return cmp.Or(t.Fingerprint, Fingerprint(&t.Spec)) == Fingerprint(s)
}

// ParentEnd is who stops a task because what started it is over.
const ParentEnd = "internal:parentEnd"
