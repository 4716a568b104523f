package task

import (
	"lashd/rpc/protocol"
	"slices"
)

// Wakes returns how an event wakes the session of its task, or nil if it does not. The spec
// decides for the end and for each declared event. A task that ends together with its
// parent wakes nothing.
func Wakes(t *protocol.Task, e *protocol.TaskEvent) *protocol.TaskWake {
	switch e.Kind {
	case protocol.TaskWasEnded:
		if by := e.Outcome.By; e.Outcome.Kind == protocol.TaskStopped && (by == ParentEnd || by == SessionClosed) {
			return nil // the end of a turn or session must not start another turn
		}
		return t.Spec.Ended
	case protocol.TaskTold:
		if i := slices.IndexFunc(t.Spec.Events, func(d protocol.TaskEventType) bool { return d.Name == e.Name }); i >= 0 {
			return t.Spec.Events[i].Wake
		}
	}
	return nil
}
