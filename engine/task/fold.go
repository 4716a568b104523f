// Package task defines tasks as the fold of their events: which events are allowed, what
// they change, and how a task recovers after a restart. All functions are pure, so that the
// store, the engine and tests compute the same task from the same events.
package task

import (
	"fmt"
	"slices"

	"lashd/rpc/protocol"
)

// Fold returns the task that results from its events. It fails unless the events are those
// of one task, complete and in order from its creation on.
func Fold(id protocol.TaskID, events []protocol.TaskEvent) (protocol.Task, error) {
	t := protocol.Task{ID: id}
	for _, e := range events {
		next, ok := Apply(t, e)
		if !ok {
			return t, fmt.Errorf("task %s: event %d, %s, cannot follow event %d in state %q", id, e.Ordinal, e.Kind, t.Ordinal, t.State)
		}
		t = next
	}
	return t, nil
}

// Apply returns the task after an event. If the event is not allowed now, it returns t
// unchanged and ok is false. A final task allows no events, and a repeated request changes
// nothing. Apply does not modify t, so callers can keep the old value until the new one is
// stored.
func Apply(t protocol.Task, e protocol.TaskEvent) (next protocol.Task, ok bool) {
	if e.Ordinal != t.Ordinal+1 || !allowed(&t, &e) {
		return t, false
	}
	next = t
	next.Ordinal, next.UpdatedAtMs = e.Ordinal, e.AtMs
	change(&next, &e)
	return next, true
}

// Next returns e with the ordinal after the newest event of t. Its time is never before
// that event, even if the clock was set back. Only commands that lashd runs in a sandbox keep a refusal of it: a plugin or a client could
// offer a person a call of its own with one.
func Next(t *protocol.Task, e protocol.TaskEvent, atMs int64) protocol.TaskEvent {
	e.Ordinal, e.AtMs = t.Ordinal+1, max(atMs, t.UpdatedAtMs)
	if o := e.Outcome; o != nil && o.Refusal != nil && !confined(&t.Spec) {
		own := *o
		own.Refusal, e.Outcome = nil, &own
	}
	return e
}

// confined reports whether lashd runs the command of a task in a sandbox.
func confined(s *protocol.TaskSpec) bool {
	return s.Command != nil && s.Command.Sandbox.Confines() && s.Recovery != protocol.RecoverExternal
}

// allowed reports whether an event may happen to a task in its present state. Only the
// first event creates a task. An attempt at an owner-bound task can start once; a
// rerunnable one can start again.
func allowed(t *protocol.Task, e *protocol.TaskEvent) bool {
	if (e.Kind == protocol.TaskWasCreated) != (t.State == "") || t.State.Final() {
		return false
	}
	switch e.Kind {
	case protocol.TaskWasCreated:
		return e.Spec != nil && e.Origin != nil
	case protocol.TaskWasStarted:
		return t.Spec.Recovery != protocol.RecoverExternal && (t.Attempt == 0 || t.Spec.Recovery == protocol.RecoverRerun)
	case protocol.TaskWasWaiting:
		return t.State == protocol.TaskRunning
	case protocol.TaskWasResumed:
		return t.State == protocol.TaskIdle
	case protocol.TaskGotRef:
		return t.Spec.Recovery == protocol.RecoverExternal && t.Ref != e.Ref
	case protocol.TaskGotCancelRequest:
		return t.CancelRequested == nil
	case protocol.TaskGotAbandonRequest:
		return t.AbandonWish == nil
	case protocol.TaskLostCaller:
		return !t.CallerDeparted
	case protocol.TaskGotObserver:
		return !slices.Contains(t.Observers, e.SessionID)
	case protocol.TaskLostObserver:
		return slices.Contains(t.Observers, e.SessionID)
	case protocol.TaskWasTransferred:
		return e.SessionID != t.SessionID
	case protocol.TaskWasEnded:
		return e.Outcome != nil
	}
	return e.Kind == protocol.TaskTold
}

// change applies an allowed event to the state of a task: its attempts, waits and end.
// Other events go to relate.
func change(t *protocol.Task, e *protocol.TaskEvent) {
	switch e.Kind {
	case protocol.TaskWasCreated:
		t.SessionID, t.Spec, t.Origin, t.State, t.CreatedAtMs = e.SessionID, *e.Spec, *e.Origin, protocol.TaskPending, e.AtMs
		if t.Spec.Recovery == protocol.RecoverExternal {
			t.State = protocol.TaskRunning // lashd cannot observe external tasks
		}
	case protocol.TaskWasStarted:
		t.Attempt, t.Incarnation, t.Waiting, t.State = t.Attempt+1, e.Incarnation, "", live(t, protocol.TaskRunning)
		if t.StartedAtMs == 0 {
			t.StartedAtMs = e.AtMs
		}
	case protocol.TaskWasWaiting:
		t.State, t.Waiting = protocol.TaskIdle, e.Reason
	case protocol.TaskWasResumed:
		t.State, t.Waiting = protocol.TaskRunning, ""
	case protocol.TaskWasEnded:
		t.State, t.Outcome, t.EndedAtMs, t.Waiting = final(e.Outcome), e.Outcome, e.AtMs, ""
	default:
		relate(t, e)
	}
}

// relate applies the events that concern others: requests, callers, observers and the
// owner.
func relate(t *protocol.Task, e *protocol.TaskEvent) {
	request := &protocol.TaskRequest{By: e.By, Reason: e.Reason, AtMs: e.AtMs}
	switch e.Kind {
	case protocol.TaskGotRef:
		t.Ref = e.Ref
	case protocol.TaskGotCancelRequest:
		t.CancelRequested, t.State, t.Waiting = request, protocol.TaskCancelRequested, ""
	case protocol.TaskGotAbandonRequest:
		t.AbandonWish = request
	case protocol.TaskLostCaller:
		t.CallerDeparted = true
	case protocol.TaskGotObserver:
		t.Observers = append(slices.Clip(t.Observers), e.SessionID)
	case protocol.TaskLostObserver:
		t.Observers = slices.DeleteFunc(slices.Clone(t.Observers), func(id protocol.SessionID) bool { return id == e.SessionID })
	case protocol.TaskWasTransferred:
		t.SessionID = e.SessionID
	}
}

// live returns the state of a task that works: cancel-requested if it was asked to end,
// else state.
func live(t *protocol.Task, state protocol.TaskState) protocol.TaskState {
	if t.CancelRequested != nil {
		return protocol.TaskCancelRequested
	}
	return state
}

// TimeLimit is the By of a task that was stopped because it exceeded its time limit.
const TimeLimit = "internal:timeLimit"

// final returns the state for an outcome. A stopped task is cancelled, or failed if it
// exceeded its time limit. A task that ended by itself keeps its own result, even if a
// request to stop it was pending.
func final(o *protocol.TaskOutcome) protocol.TaskState {
	switch o.Kind {
	case protocol.TaskDone:
		return protocol.TaskCompleted
	case protocol.TaskExited:
		if o.ExitCode != nil && *o.ExitCode == 0 {
			return protocol.TaskCompleted
		}
	case protocol.TaskStopped:
		if o.By != TimeLimit {
			return protocol.TaskCancelled
		}
	case protocol.TaskLost:
		return protocol.TaskAbandoned
	}
	return protocol.TaskFailed
}
