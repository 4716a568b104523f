package plugin

import (
	"context"

	"lashd/rpc/protocol"
)

// of returns s restricted to the access a, or nil.
func (a Tasks) of(s TaskService) TaskService {
	switch {
	case s == nil || a == NoTasks:
		return nil
	case a == ReadTasks:
		return readTasks{s}
	default:
		return s
	}
}

// readTasks is a TaskService whose changing methods fail with errReadOnlyTasks.
type readTasks struct{ TaskReadService }

func (readTasks) StartTask(context.Context, *TaskStart) (*protocol.TaskResult, error) {
	return nil, errReadOnlyTasks
}

func (readTasks) CompleteTask(context.Context, *protocol.TaskCompleteParams) (protocol.Task, error) {
	return protocol.Task{}, errReadOnlyTasks
}

func (readTasks) TransitionTask(context.Context, *TaskTransition) (protocol.Task, error) {
	return protocol.Task{}, errReadOnlyTasks
}

func (readTasks) TellTask(context.Context, *TaskTold) (protocol.Task, error) {
	return protocol.Task{}, errReadOnlyTasks
}

func (readTasks) AwaitTasks(context.Context, *protocol.TaskWaitParams) (*protocol.TaskWaitResult, error) {
	return nil, errReadOnlyTasks
}

func (readTasks) SignalTask(context.Context, *protocol.TaskSignalParams) (protocol.Task, error) {
	return protocol.Task{}, errReadOnlyTasks
}

func (readTasks) CancelTask(context.Context, *protocol.TaskCancelParams) (protocol.Task, error) {
	return protocol.Task{}, errReadOnlyTasks
}

func (readTasks) CancelTasks(context.Context, *protocol.TaskCancelAllParams) ([]protocol.Task, error) {
	return nil, errReadOnlyTasks
}

func (readTasks) TransferTasks(context.Context, *protocol.TaskTransferParams) ([]protocol.Task, error) {
	return nil, errReadOnlyTasks
}

func (readTasks) AwaitHidden(context.Context, protocol.SessionID) error { return errReadOnlyTasks }
