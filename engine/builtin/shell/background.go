package shell

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

const (
	describeStart = "Start a command with sh that goes on after this turn, as a task with its own id, and return what it has put out after a " +
		"moment. Read more with read_output, write to it with write_stdin, end it with stop_command. Unless it is rerunnable or " +
		"detached it ends with lashd. A detached one outlives lashd, and has no input: it can be looked at, read and stopped."
	describeWrite = "Write to the input of a command that start_command has started, and return what it has put out after a moment. With " +
		"interrupt it gets what Ctrl-C is to a command, with closeStdin the end of its input, both after the text."
	describeRead = "Read what a task has put out: from an offset in bytes, or the newest if that is negative. With waitMs it first waits so " +
		"long for the end of the task."
	describeList = "List the tasks that this session may see: commands in the background, monitors, subagents."
	describeStop = "Ask that a task ends, with everything that it started. The answer tells whether it has."
)

type startArgs struct {
	Command    string `json:"command" jsonschema:"what sh shall run"`
	Label      string `json:"label,omitempty" jsonschema:"what people shall call it; the command if not given"`
	Workdir    string `json:"workdir,omitempty" jsonschema:"directory to run it in, relative to the workspace or absolute inside it; the workspace if not given"`
	TimeoutMs  int64  `json:"timeoutMs,omitempty" jsonschema:"milliseconds after which it is stopped; never if not given"`
	PTY        bool   `json:"pty,omitempty" jsonschema:"give it a terminal of 80 columns and 24 rows"`
	Wake       bool   `json:"wake,omitempty" jsonschema:"wake this session when it ends"`
	Rerunnable bool   `json:"rerunnable,omitempty" jsonschema:"it may be run again from the beginning if lashd is restarted while it runs"`
	Detach     bool   `json:"detach,omitempty" jsonschema:"run it in a session of its own that outlives lashd"`
}

type writeArgs struct {
	Task       protocol.TaskID `json:"task" jsonschema:"id of the task"`
	Text       string          `json:"text,omitempty" jsonschema:"what to write, with its line ends"`
	CloseStdin bool            `json:"closeStdin,omitempty"`
	Interrupt  bool            `json:"interrupt,omitempty"`
}

type readArgs struct {
	Task   protocol.TaskID `json:"task" jsonschema:"id of the task"`
	Offset int64           `json:"offset,omitempty" jsonschema:"of the first byte; negative: from the end; 0 if not given"`
	Limit  int             `json:"limit,omitempty" jsonschema:"how many bytes; 16384 if not given, at most 65536"`
	WaitMs int64           `json:"waitMs,omitempty" jsonschema:"milliseconds to wait for the end of the task, at most 600000"`
}

type listArgs struct {
	Kind protocol.TaskKind `json:"kind,omitempty" jsonschema:"only those of a kind: command, monitor, subagent, observer or other"`
	Over bool              `json:"over,omitempty" jsonschema:"also those that are over"`
}

type stopArgs struct {
	Task   protocol.TaskID `json:"task" jsonschema:"id of the task"`
	Reason string          `json:"reason,omitempty"`
}

// command is what is told of a task, as the structured result.
type command struct {
	Task       protocol.TaskID       `json:"task"`
	State      protocol.TaskState    `json:"state"`
	Kind       protocol.TaskKind     `json:"kind"`
	Label      string                `json:"label,omitempty"`
	Ref        string                `json:"ref,omitempty"`
	Outcome    *protocol.TaskOutcome `json:"outcome,omitempty"`
	NextOffset int64                 `json:"nextOffset,omitempty"`
}

const (
	defaultPart = 16 << 10
	maxPart     = 64 << 10
	maxWaitMs   = 600_000
	maxListed   = 200
	maxLabel    = 80 // of a command that has none, in bytes

	moment     = 300 * time.Millisecond // for a command to put something out
	stopMoment = 3 * time.Second        // for a command to end: it has two seconds before it is killed
)

func (s *shell) startCommand(ctx context.Context, call tool.Invocation, a startArgs) protocol.ToolOutput {
	if err := checkScript(a.Command); err != nil {
		return refused("invalid_arguments", fmt.Sprintf("arguments of start_command: %v", err))
	}
	if a.Rerunnable && a.Detach {
		return refused("invalid_arguments", "arguments of start_command: what is detached is not rerunnable: lashd does not run it")
	}
	opened, dir, err := s.directory(call, a.Workdir)
	if err != nil {
		return refused("invalid_workdir", fmt.Sprintf("workdir %s: %v", cmp.Or(a.Workdir, "."), err))
	}
	opened.Close() // the task opens it when it runs, which may be after a restart
	// The id is of the call: made again after a crash, it finds the task that it has started.
	id := protocol.TaskID("tsk_" + protocol.DigestOf(fmt.Appendf(nil, "%s\n%s", call.TurnID, call.CallID))[:16])
	return withTasks(call, func(tasks plugin.TaskService) (protocol.ToolOutput, error) {
		if _, err := tasks.StartTask(ctx, &plugin.TaskStart{TaskID: id, Spec: a.spec(dir)}); err != nil {
			return protocol.ToolOutput{}, err
		}
		out, err := recent(ctx, tasks, id, 0, moment)
		if err != nil {
			return out, err
		}
		return cutOff(ctx, tasks, id, out)
	})
}

// cutOff is a failure if the command is one that was cut off by the end of a daemon before this call had its result.
func cutOff(ctx context.Context, tasks plugin.TaskService, id protocol.TaskID, out protocol.ToolOutput) (protocol.ToolOutput, error) {
	read, err := tasks.ReadTask(ctx, &protocol.TaskReadParams{TaskParams: protocol.TaskParams{TaskID: id}, Limit: 1})
	if err != nil || read.Task.Outcome == nil || read.Task.Outcome.Kind != protocol.TaskLost {
		return out, err
	}
	failed := protocol.Fail(protocol.FailExecution, "interrupted", "The command was started, and was killed when lashd ended while it ran. It may have done part of its work, "+
		"and lashd does not run it again. Its output until then:\n"+out.Text, protocol.FromTool)
	failed.Value = out.Value
	return failed, nil
}

func (a startArgs) spec(dir string) protocol.TaskSpec {
	spec := protocol.TaskSpec{
		Kind: protocol.TaskCommand, Label: cmp.Or(a.Label, label(a.Command)), Recovery: protocol.RecoverOwner, Close: protocol.CloseCancel,
		TimeoutMs: a.TimeoutMs, Command: &protocol.TaskShell{Script: a.Command, Workdir: dir, Detach: a.Detach},
	}
	switch {
	case a.Detach:
		spec.Recovery, spec.Close = protocol.RecoverExternal, protocol.CloseKeep
	case a.Rerunnable:
		spec.Recovery = protocol.RecoverRerun
	}
	if a.PTY {
		spec.Command.PTY = &protocol.TaskTerminal{Columns: 80, Rows: 24}
	}
	if a.Wake {
		spec.Ended = &protocol.TaskWake{}
	}
	return spec
}

// label is the first line of a command, if it is not too long.
func label(script string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(script), "\n")
	if len(line) > maxLabel {
		line = line[:maxLabel]
	}
	for !utf8.ValidString(line) && line != "" {
		line = line[:len(line)-1]
	}
	return line
}

func (s *shell) writeStdin(ctx context.Context, call tool.Invocation, a writeArgs) protocol.ToolOutput {
	return withTasks(call, func(tasks plugin.TaskService) (protocol.ToolOutput, error) {
		at := protocol.TaskParams{TaskID: a.Task}
		before, err := tasks.TaskOutput(ctx, &protocol.TaskOutputParams{TaskParams: at, Offset: -1, Limit: 1})
		if err != nil {
			return protocol.ToolOutput{}, err
		}
		for i, sig := range a.signals() {
			sig.TaskParams = at
			if _, err := tasks.SignalTask(ctx, &sig); i > 0 && ended(err) {
				break // it may have ended for what it has taken
			} else if err != nil {
				return protocol.ToolOutput{}, err
			}
		}
		return recent(ctx, tasks, a.Task, before.Size, moment)
	})
}

// ended tells whether a task did not take something as it is over.
func ended(err error) bool {
	k, ok := errors.AsType[interface {
		error
		Kind() protocol.ErrorKind
	}](err)
	return ok && k.Kind() == protocol.KindTaskEnded
}

func (a writeArgs) signals() (all []protocol.TaskSignalParams) {
	if a.Text != "" {
		text, err := json.Marshal(map[string]string{"text": a.Text})
		if err != nil {
			panic("a string is always JSON: " + err.Error())
		}
		all = append(all, protocol.TaskSignalParams{Name: "stdin", Payload: text})
	}
	if a.Interrupt {
		all = append(all, protocol.TaskSignalParams{Name: "interrupt"})
	}
	if a.CloseStdin {
		all = append(all, protocol.TaskSignalParams{Name: "closeStdin"})
	}
	return all
}

func (s *shell) readOutput(ctx context.Context, call tool.Invocation, a readArgs) protocol.ToolOutput {
	switch {
	case a.Limit < 0 || a.Limit > maxPart:
		return refused("invalid_arguments", fmt.Sprintf("limit must be between 1 and %d", maxPart))
	case a.WaitMs < 0 || a.WaitMs > maxWaitMs:
		return refused("invalid_arguments", fmt.Sprintf("waitMs must be between 0 and %d", maxWaitMs))
	}
	return withTasks(call, func(tasks plugin.TaskService) (protocol.ToolOutput, error) {
		if a.WaitMs > 0 {
			if err := await(ctx, tasks, a.Task, time.Duration(a.WaitMs)*time.Millisecond); err != nil {
				return protocol.ToolOutput{}, err
			}
		}
		return part(ctx, tasks, a.Task, a.Offset, cmp.Or(a.Limit, defaultPart))
	})
}

func (s *shell) listProcesses(ctx context.Context, call tool.Invocation, a listArgs) protocol.ToolOutput {
	return withTasks(call, func(tasks plugin.TaskService) (protocol.ToolOutput, error) {
		r, err := tasks.ListTasks(ctx, &protocol.TaskListParams{Kind: a.Kind, Live: !a.Over, Limit: maxListed})
		if err != nil {
			return protocol.ToolOutput{}, err
		}
		var text strings.Builder
		all := make([]command, 0, len(r.Data))
		for _, t := range slices.Backward(r.Data) {
			fmt.Fprintf(&text, "%s %s %s: %s\n", t.ID, t.Spec.Kind, status(t), t.Spec.Label)
			all = append(all, told(t))
		}
		switch {
		case len(all) == 0:
			text.WriteString("[There are none.]\n")
		case r.More:
			fmt.Fprintf(&text, "[There are more than %d.]\n", maxListed)
		}
		return succeed(text.String(), all)
	})
}

func (s *shell) stopCommand(ctx context.Context, call tool.Invocation, a stopArgs) protocol.ToolOutput {
	return withTasks(call, func(tasks plugin.TaskService) (protocol.ToolOutput, error) {
		t, err := tasks.CancelTask(ctx, &protocol.TaskCancelParams{TaskParams: protocol.TaskParams{TaskID: a.Task}, Reason: a.Reason})
		if err != nil {
			// What is over needs not be stopped; all else is an error of reading as well.
			read, readErr := tasks.ReadTask(ctx, &protocol.TaskReadParams{TaskParams: protocol.TaskParams{TaskID: a.Task}, Limit: 1})
			if readErr != nil || !read.Task.State.Final() {
				return protocol.ToolOutput{}, err
			}
			t = read.Task
		}
		if !t.State.Final() && (t.Spec.Recovery != protocol.RecoverExternal || t.Spec.Command != nil) {
			if err := await(ctx, tasks, a.Task, stopMoment); err != nil {
				return protocol.ToolOutput{}, err
			}
		}
		return part(ctx, tasks, a.Task, -defaultPart, defaultPart)
	})
}
