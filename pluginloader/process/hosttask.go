package process

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// inSession adds the session of the call to parameters that name none. It inserts the member into
// the JSON, so that the method's strict decoding still sees every member of the plugin.
func inSession(do performed) performed {
	return func(ctx context.Context, g *grant, raw json.RawMessage) (any, error) {
		var named ofSession
		_ = json.Unmarshal(raw, &named) // the method reports invalid parameters
		if rest, ok := bytes.CutPrefix(bytes.TrimSpace(raw), []byte("{")); ok && named.SessionID == "" {
			raw = slices.Concat([]byte(`{"sessionId":`), encoded(g.seat.of.build.SessionID), []byte(","), rest)
		}
		return do(ctx, g, raw)
	}
}

// encoded returns an ID as JSON.
func encoded(id protocol.SessionID) []byte {
	text, err := json.Marshal(id)
	if err != nil {
		return []byte(`""`) // strings always encode
	}
	return text
}

// taskAnswer is a task after a change.
type taskAnswer struct {
	Task protocol.Task `json:"task"`
}

// onTask calls the task service with p.
func onTask[P, R any](ctx context.Context, g *grant, p P, do func(plugin.TaskService, context.Context, P) (R, error)) (R, error) {
	s, err := g.host.NeedTasks()
	if err != nil {
		var none R
		return none, err
	}
	return do(s, ctx, p)
}

// changed is onTask for requests that change one task.
func changed[P any](ctx context.Context, g *grant, p P, do func(plugin.TaskService, context.Context, P) (protocol.Task, error)) (*taskAnswer, error) {
	t, err := onTask(ctx, g, p, do)
	return &taskAnswer{t}, err
}

// ofOwn is changed for requests that only the plugin that owns the task may send.
func ofOwn[P any](ctx context.Context, g *grant, p P, id protocol.TaskParams, do func(plugin.TaskService, context.Context, P) (protocol.Task, error)) (*taskAnswer, error) {
	r, err := onTask(ctx, g, &protocol.TaskReadParams{TaskParams: id}, plugin.TaskService.ReadTask)
	if err == nil && r.Task.Spec.Plugin != g.life.config.ID {
		return nil, &plugin.UnavailableError{Capability: "changing a task of another plugin"}
	}
	return changed(ctx, g, p, do) // changed reports the error of a task that cannot be read
}

// tooMuchError rejects requests that the plugin sends too often.
type tooMuchError struct{ what string }

// Error names what there was too much of.
func (e *tooMuchError) Error() string {
	return "too many " + e.what + " per second; try again later"
}

// Kind implements worded.
func (*tooMuchError) Kind() protocol.ErrorKind { return protocol.KindOverloaded }

// taskStart implements host/taskStart. The task belongs to the plugin: a handler of the plugin runs
// it. The same task ID with the same spec returns the existing task, so a repeated request is safe.
func taskStart(ctx context.Context, g *grant, p *struct {
	granted
	plugin.TaskStart
}) (*protocol.TaskResult, error) {
	p.Spec.Plugin = g.life.config.ID
	return onTask(ctx, g, &p.TaskStart, plugin.TaskService.StartTask)
}

// taskComplete implements host/taskComplete: it reports the outcome of a task that the process runs
// by itself, or of an external task of the plugin.
func taskComplete(ctx context.Context, g *grant, p *struct {
	granted
	protocol.TaskCompleteParams
}) (*taskAnswer, error) {
	if g.task != nil && p.TaskID == g.task.id {
		return g.task.complete(ctx, g, &p.Outcome)
	}
	return ofOwn(ctx, g, &p.TaskCompleteParams, p.TaskParams, plugin.TaskService.CompleteTask)
}

// taskTransition implements host/taskTransition: the task starts to wait for something, or goes on.
// An idle task does not count against the limit of running tasks.
func taskTransition(ctx context.Context, g *grant, p *struct {
	granted
	plugin.TaskTransition
}) (*taskAnswer, error) {
	return ofOwn(ctx, g, &p.TaskTransition, p.TaskParams, plugin.TaskService.TransitionTask)
}

// taskTell implements host/taskTell: an event of the task, which may wake its session. Each event
// is stored, so the rate is limited.
func taskTell(ctx context.Context, g *grant, p *struct {
	granted
	plugin.TaskTold
}) (*taskAnswer, error) {
	if !g.life.tells.another(tellsPerSec) {
		return nil, &tooMuchError{"events of tasks"}
	}
	return ofOwn(ctx, g, &p.TaskTold, p.TaskParams, plugin.TaskService.TellTask)
}

// taskAwait implements host/taskAwait: it waits for tasks to end.
func taskAwait(ctx context.Context, g *grant, p *struct {
	granted
	protocol.TaskWaitParams
}) (*protocol.TaskWaitResult, error) {
	return onTask(ctx, g, &p.TaskWaitParams, plugin.TaskService.AwaitTasks)
}

// taskSignal implements host/taskSignal: it sends a signal to a task, which its handler receives.
func taskSignal(ctx context.Context, g *grant, p *struct {
	granted
	protocol.TaskSignalParams
}) (*taskAnswer, error) {
	return changed(ctx, g, &p.TaskSignalParams, plugin.TaskService.SignalTask)
}

// taskList implements host/taskList.
func taskList(ctx context.Context, g *grant, p *struct {
	granted
	protocol.TaskListParams
}) (*protocol.TaskListResult, error) {
	return onTask(ctx, g, &p.TaskListParams, plugin.TaskService.ListTasks)
}

// taskRead implements host/taskRead.
func taskRead(ctx context.Context, g *grant, p *struct {
	granted
	protocol.TaskReadParams
}) (*protocol.TaskReadResult, error) {
	return onTask(ctx, g, &p.TaskReadParams, plugin.TaskService.ReadTask)
}

// taskOutput implements host/taskOutput: the stored output of a task.
func taskOutput(ctx context.Context, g *grant, p *struct {
	granted
	protocol.TaskOutputParams
}) (*protocol.TaskOutputResult, error) {
	return onTask(ctx, g, &p.TaskOutputParams, plugin.TaskService.TaskOutput)
}

// taskCancel implements host/taskCancel. It asks a task to end; the task may still complete.
func taskCancel(ctx context.Context, g *grant, p *struct {
	granted
	protocol.TaskCancelParams
}) (*taskAnswer, error) {
	return changed(ctx, g, &p.TaskCancelParams, plugin.TaskService.CancelTask)
}

// taskCancelAll implements host/taskCancelAll: it cancels all live tasks of a session, except
// hidden ones and those that the request keeps.
func taskCancelAll(ctx context.Context, g *grant, p *struct {
	granted
	protocol.TaskCancelAllParams
}) (*list[protocol.Task], error) {
	all, err := onTask(ctx, g, &p.TaskCancelAllParams, plugin.TaskService.CancelTasks)
	return &list[protocol.Task]{all}, err
}

// validateHandles implements host/validateHandles: it fails unless all tasks are live and visible.
func validateHandles(ctx context.Context, g *grant, p *struct {
	ofSession
	TaskIDs []protocol.TaskID `json:"taskIds"`
}) (struct{}, error) {
	return struct{}{}, g.host.ValidateHandles(ctx, p.SessionID, p.TaskIDs)
}

// transferHandles implements host/transferHandles: it moves live tasks to another session, all or
// none.
func transferHandles(ctx context.Context, g *grant, p *struct {
	granted
	protocol.TaskTransferParams
}) (*list[protocol.Task], error) {
	all, err := g.host.TransferHandles(ctx, &p.TaskTransferParams)
	return &list[protocol.Task]{all}, err
}
