package engine

import (
	"fmt"

	"lashd/rpc/protocol"
)

// TaskConflictError means that a task of that id was started to do something else.
type TaskConflictError struct{ ID protocol.TaskID }

func (e *TaskConflictError) Error() string {
	return fmt.Sprintf("task %s was started with another spec; choose another id", e.ID)
}

// Kind is its word for plugins.
func (*TaskConflictError) Kind() protocol.ErrorKind { return protocol.KindConflict }

// TaskEndedError means that a task is over.
type TaskEndedError struct{ Task protocol.Task }

func (e *TaskEndedError) Error() string {
	return fmt.Sprintf("task %s is over: %s", e.Task.ID, e.Task.State)
}

// Kind is its word for plugins.
func (*TaskEndedError) Kind() protocol.ErrorKind { return protocol.KindTaskEnded }
