package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// withTasks gives f the session's tasks; what goes wrong becomes the call's failure.
func withTasks(call tool.Invocation, f func(plugin.TaskService) (protocol.ToolOutput, error)) protocol.ToolOutput {
	tasks, err := plugin.ForTool(call).NeedTasks()
	if err != nil {
		return protocol.Fail(protocol.FailUnavailable, "no_tasks", err.Error(), protocol.FromTool)
	}
	out, err := f(tasks)
	if err != nil {
		return refused("task_refused", err.Error())
	}
	return out
}

// quiet is how long a command that has put something out may go on doing so, at least, before that is read.
const quiet = 75 * time.Millisecond

// recent is what a command has put out since an offset once it is quiet, but no later than the limit, or when it is over.
func recent(ctx context.Context, tasks plugin.TaskService, id protocol.TaskID, since int64, limit time.Duration) (protocol.ToolOutput, error) {
	for last, end := since, time.Now().Add(limit); time.Now().Before(end); {
		if err := await(ctx, tasks, id, quiet); err != nil {
			return protocol.ToolOutput{}, err
		}
		r, err := tasks.TaskOutput(ctx, &protocol.TaskOutputParams{TaskParams: protocol.TaskParams{TaskID: id}, Offset: since, Limit: 1})
		if err != nil {
			return protocol.ToolOutput{}, err
		}
		if r.Ended || r.Size > since && r.Size == last {
			break
		}
		last = r.Size
	}
	return part(ctx, tasks, id, since, defaultPart)
}

// await waits for the end of a task. That it does not end in time is no error.
func await(ctx context.Context, tasks plugin.TaskService, id protocol.TaskID, limit time.Duration) error {
	_, err := tasks.AwaitTasks(ctx, &protocol.TaskWaitParams{TaskIDs: []protocol.TaskID{id}, TimeoutMs: limit.Milliseconds()})
	return err
}

// part is a part of what a task has put out, and how the task is.
func part(ctx context.Context, tasks plugin.TaskService, id protocol.TaskID, offset int64, limit int) (protocol.ToolOutput, error) {
	at := protocol.TaskParams{TaskID: id}
	read, err := tasks.ReadTask(ctx, &protocol.TaskReadParams{TaskParams: at, Limit: 1})
	if err != nil {
		return protocol.ToolOutput{}, err
	}
	r, err := tasks.TaskOutput(ctx, &protocol.TaskOutputParams{TaskParams: at, Offset: offset, Limit: limit})
	if err != nil {
		return protocol.ToolOutput{}, err
	}
	text := r.Text
	if r.Offset > 0 {
		text = fmt.Sprintf("[From byte %d.]\n", r.Offset) + text
	}
	if text != "" && text[len(text)-1] != '\n' {
		text += "\n"
	}
	if r.NextOffset < r.Size {
		text += fmt.Sprintf("[%d bytes more from offset %d.]\n", r.Size-r.NextOffset, r.NextOffset)
	}
	value := told(read.Task)
	value.NextOffset = r.NextOffset
	return succeed(text+fmt.Sprintf("[Task %s: %s.]\n", id, status(read.Task)), value)
}

func succeed(text string, value any) (protocol.ToolOutput, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return protocol.ToolOutput{}, err
	}
	out := protocol.Succeed(text)
	out.Value = data
	return out, nil
}

func told(t protocol.Task) command {
	return command{Task: t.ID, State: t.State, Kind: t.Spec.Kind, Label: t.Spec.Label, Ref: t.Ref, Outcome: t.Outcome}
}

// status is how a task is, in a few words.
func status(t protocol.Task) string {
	o := t.Outcome
	switch {
	case o == nil && t.Spec.Recovery == protocol.RecoverExternal && t.Ref != "":
		return fmt.Sprintf("%s, elsewhere: %s", t.State, t.Ref)
	case o == nil && t.CancelRequested != nil:
		return "asked to end, and still running"
	case o == nil:
		return string(t.State)
	case o.Kind == protocol.TaskExited && o.ExitCode != nil:
		return fmt.Sprintf("exited with %d", *o.ExitCode)
	case o.Kind == protocol.TaskSignal:
		return "ended by " + o.Signal
	case o.Kind == protocol.TaskStopped:
		return "stopped by " + o.By
	case o.Kind == protocol.TaskLost && o.Evidence != nil:
		return "abandoned: " + o.Evidence.Reason
	}
	return fmt.Sprintf("%s %s", t.State, o.Message)
}
