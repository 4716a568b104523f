package task

import (
	"lashd/rpc/protocol"
	"slices"
)

// Wakes is how an event of a task wakes its session; nil: it does not. Nobody waits for what ends with its parent.
func Wakes(t *protocol.Task, e *protocol.TaskEvent) *protocol.TaskWake {
	switch e.Kind {
	case protocol.TaskWasEnded:
		if by := e.Outcome.By; e.Outcome.Kind == protocol.TaskStopped && (by == ParentEnd || by == SessionClosed) {
			return nil // who ends a turn or closes a session does not want it woken by that
		}
		return t.Spec.Ended
	case protocol.TaskTold:
		if i := slices.IndexFunc(t.Spec.Events, func(d protocol.TaskEventType) bool { return d.Name == e.Name }); i >= 0 {
			return t.Spec.Events[i].Wake
		}
	}
	return nil
}
