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

// withTasks calls f with the task service of the session. An error of f becomes the failure
// of the call, with the text of the error for the model.
func withTasks(call tool.Invocation, f func(plugin.TaskService) (protocol.ToolOutput, error)) protocol.ToolOutput {
	tasks, err := plugin.ForTool(call).NeedTasks()
	if err != nil {
		return protocol.Fail(protocol.FailUnavailable, "no_tasks", err.Error(), protocol.FromTool)
	}
	out, err := f(tasks)
	if err != nil {
		return rejected("task_refused", err.Error())
	}
	return out
}

// quiet is how long a command must print nothing before its output is returned.
const quiet = 75 * time.Millisecond

// recent returns the output since an offset. It polls until the command has printed
// something and is then quiet, or has ended, but at most for limit. So the model gets a
// complete first reaction without waiting for a fixed time.
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

// await waits up to limit for the end of a task. A timeout is not an error.
func await(ctx context.Context, tasks plugin.TaskService, id protocol.TaskID, limit time.Duration) error {
	_, err := tasks.AwaitTasks(ctx, &protocol.TaskWaitParams{TaskIDs: []protocol.TaskID{id}, TimeoutMs: limit.Milliseconds()})
	return err
}

// part returns a part of a task's output together with its state. The text marks an offset
// before it and the bytes after it, and ends with the task's status. A negative offset
// counts from the end.
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
		text += fmt.Sprintf("[%d more bytes from offset %d.]\n", r.Size-r.NextOffset, r.NextOffset)
	}
	value := describeTask(read.Task)
	value.NextOffset = r.NextOffset
	out, err := succeed(text+fmt.Sprintf("[Task %s: %s.]\n", id, status(read.Task)), value)
	if read.Task.Outcome != nil {
		out.Refusal = read.Task.Outcome.Refusal
	}
	return out, err
}

// succeed returns a successful result with a structured value.
func succeed(text string, value any) (protocol.ToolOutput, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return protocol.ToolOutput{}, err
	}
	out := protocol.Succeed(text)
	out.Value = data
	return out, nil
}

// describeTask returns the structured description of a task.
func describeTask(t protocol.Task) command {
	return command{Task: t.ID, State: t.State, Kind: t.Spec.Kind, Label: t.Spec.Label, Ref: t.Ref, Outcome: t.Outcome}
}

// status returns the state of a task in a few words.
func status(t protocol.Task) string {
	o := t.Outcome
	switch {
	case o == nil && t.Spec.Recovery == protocol.RecoverExternal && t.Ref != "":
		return fmt.Sprintf("%s, as %s", t.State, t.Ref)
	case o == nil && t.CancelRequested != nil:
		return "stopping"
	case o == nil:
		return string(t.State)
	case o.Kind == protocol.TaskExited && o.ExitCode != nil:
		return fmt.Sprintf("exited with code %d", *o.ExitCode)
	case o.Kind == protocol.TaskSignal:
		return "ended by " + o.Signal
	case o.Kind == protocol.TaskStopped:
		return "stopped by " + o.By
	case o.Kind == protocol.TaskLost && o.Evidence != nil:
		return "abandoned: " + o.Evidence.Reason
	}
	return fmt.Sprintf("%s %s", t.State, o.Message)
}
