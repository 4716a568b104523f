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
	// Descriptions of the tools for background commands.
	describeStart = "Start a command with sh that continues after this turn, as a task with its own id. Return its output after a short " +
		"moment. Read more with read_output, write to it with write_stdin, stop it with stop_command. The command ends with lashd " +
		"unless it is rerunnable or detached. A detached command outlives lashd and has no input; you can read its output and stop it."
	describeWrite = "Write to the input of a command started with start_command, and return its new output after a short moment. " +
		"interrupt sends Ctrl-C and closeStdin ends the input, both after the text."
	describeRead = "Read the output of a task from an offset in bytes. A negative offset counts from the end. With waitMs, first wait " +
		"up to that long for the task to end."
	describeList = "List the tasks of this session: background commands, monitors, subagents."
	describeStop = "Stop a task and everything that it started. The result says whether it has ended."
)

// startArgs are the arguments of start_command. The schema of the tool is inferred from the
// struct.
type startArgs struct {
	Command    string `json:"command" jsonschema:"command for sh"`
	Label      string `json:"label,omitempty" jsonschema:"name shown to people (default: the command)"`
	Workdir    string `json:"workdir,omitempty" jsonschema:"working directory, relative to the workspace or absolute inside it (default: the workspace)"`
	TimeoutMs  int64  `json:"timeoutMs,omitempty" jsonschema:"milliseconds after which it is stopped (default: no limit)"`
	PTY        bool   `json:"pty,omitempty" jsonschema:"run it in a terminal of 80 columns and 24 rows"`
	Wake       bool   `json:"wake,omitempty" jsonschema:"wake this session when it ends"`
	Rerunnable bool   `json:"rerunnable,omitempty" jsonschema:"run it again from the beginning if lashd restarts while it runs"`
	Detach     bool   `json:"detach,omitempty" jsonschema:"run it as a detached process that outlives lashd; never in a sandbox"`
	Outside    bool   `json:"outside,omitempty" jsonschema:"run it outside the sandbox, if the session has one; a person is asked"`
	// Hosts are the hosts that a command in a sandbox reaches besides those that rules allow.
	Hosts []string `json:"hosts,omitempty" jsonschema:"hosts that the command needs to reach from the sandbox by HTTP or HTTPS, such as registry.npmjs.org, *.github.com or example.com:8080; a person is asked unless rules allow them"`
}

// writeArgs are the arguments of write_stdin.
type writeArgs struct {
	Task       protocol.TaskID `json:"task" jsonschema:"id of the task"`
	Text       string          `json:"text,omitempty" jsonschema:"text to write, including line ends"`
	CloseStdin bool            `json:"closeStdin,omitempty"`
	Interrupt  bool            `json:"interrupt,omitempty"`
}

// readArgs are the arguments of read_output.
type readArgs struct {
	Task   protocol.TaskID `json:"task" jsonschema:"id of the task"`
	Offset int64           `json:"offset,omitempty" jsonschema:"first byte to read; negative counts from the end (default: 0)"`
	Limit  int             `json:"limit,omitempty" jsonschema:"number of bytes, at most 65536 (default: 16384)"`
	WaitMs int64           `json:"waitMs,omitempty" jsonschema:"milliseconds to wait for the task to end, at most 600000 (default: 0)"`
}

// listArgs are the arguments of list_processes.
type listArgs struct {
	Kind protocol.TaskKind `json:"kind,omitempty" jsonschema:"list only this kind: command, monitor, subagent, observer or other"`
	Over bool              `json:"over,omitempty" jsonschema:"include tasks that have ended"`
}

// stopArgs are the arguments of stop_command.
type stopArgs struct {
	Task   protocol.TaskID `json:"task" jsonschema:"id of the task"`
	Reason string          `json:"reason,omitempty"`
}

// command describes a task in the structured result of a tool.
type command struct {
	// Task identifies the task in later calls.
	Task  protocol.TaskID    `json:"task"`
	State protocol.TaskState `json:"state"`
	Kind  protocol.TaskKind  `json:"kind"`
	Label string             `json:"label,omitempty"`
	// Ref describes a detached command to people, such as its process group.
	Ref     string                `json:"ref,omitempty"`
	Outcome *protocol.TaskOutcome `json:"outcome,omitempty"`
	// NextOffset is the offset at which read_output continues.
	NextOffset int64 `json:"nextOffset,omitempty"`
}

const (
	// defaultPart and maxPart are the default and the maximum number of bytes that
	// read_output returns.
	defaultPart = 16 << 10
	maxPart     = 64 << 10
	maxWaitMs   = 600_000
	maxListed   = 200
	// maxLabel is the size in bytes of a label that is made from the command.
	maxLabel = 80

	// moment is how long start_command and write_stdin wait for output.
	moment = 300 * time.Millisecond
	// stopMoment is how long stop_command waits for the end. A command has two seconds
	// before it is killed.
	stopMoment = 3 * time.Second
)

// startCommand is start_command. The task runs until it ends, is stopped, or its session is
// closed. Its first output is returned after a moment, so that the model sees a command
// that fails at once. The task id derives from the call, so a call that is repeated after a
// crash finds the task that it started.
func (s *shell) startCommand(ctx context.Context, call tool.Invocation, a startArgs) protocol.ToolOutput {
	if err := cmp.Or(checkScript(a.Command), checkHosts(a.Hosts, a.Outside, a.Detach)); err != nil {
		return rejected("invalid_arguments", fmt.Sprintf("arguments of start_command: %v", err))
	}
	if a.Rerunnable && a.Detach {
		return rejected("invalid_arguments", "arguments of start_command: a detached command cannot be rerunnable, because lashd does not run it")
	}
	opened, dir, err := s.directory(call, a.Workdir)
	if err != nil {
		return badDirectory(a.Workdir, err)
	}
	opened.Close() // the task opens the directory again when it runs, which may be after a restart
	// A repeated call after a crash has the same id and finds its task.
	id := protocol.TaskID("tsk_" + protocol.DigestOf(fmt.Appendf(nil, "%s\n%s", call.TurnID, call.CallID))[:16])
	return withTasks(call, func(tasks plugin.TaskService) (protocol.ToolOutput, error) {
		if _, err := tasks.StartTask(ctx, &plugin.TaskStart{TaskID: id, Spec: a.spec(dir, call)}); err != nil {
			return protocol.ToolOutput{}, err
		}
		out, err := recent(ctx, tasks, id, 0, moment)
		if err != nil {
			return out, err
		}
		return reportInterrupted(ctx, tasks, id, out)
	})
}

// reportInterrupted returns a failure if the command was killed at the end of an earlier
// daemon before this call returned. Otherwise it returns out.
func reportInterrupted(ctx context.Context, tasks plugin.TaskService, id protocol.TaskID, out protocol.ToolOutput) (protocol.ToolOutput, error) {
	read, err := tasks.ReadTask(ctx, &protocol.TaskReadParams{TaskParams: protocol.TaskParams{TaskID: id}, Limit: 1})
	if err != nil || read.Task.Outcome == nil || read.Task.Outcome.Kind != protocol.TaskLost {
		return out, err
	}
	failed := protocol.Fail(protocol.FailExecution, "interrupted", "The command was killed because lashd ended while it ran. It may have done part of its work, "+
		"and lashd does not run it again. Its output:\n"+out.Text, protocol.FromTool)
	failed.Value = out.Value
	return failed, nil
}

// spec returns the spec of the task. An ordinary command is bound to the daemon and is
// cancelled with its session. A rerunnable one starts again after a restart. A detached one
// runs outside of the daemon and stays when the session is closed.
func (a startArgs) spec(dir string, call tool.Invocation) protocol.TaskSpec {
	spec := protocol.TaskSpec{
		Kind: protocol.TaskCommand, Label: cmp.Or(a.Label, label(a.Command)), Recovery: protocol.RecoverOwner, Close: protocol.CloseCancel,
		TimeoutMs: a.TimeoutMs, Command: &protocol.TaskShell{Script: a.Command, Workdir: dir, Detach: a.Detach, Sandbox: call.Sandbox, Network: call.Network},
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

// label returns the first line of a command, shortened to maxLabel bytes.
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

// writeStdin is write_stdin. If a command ends after a first signal, later signals are not
// an error.
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
				break // the command may have ended because of the previous signal
			} else if err != nil {
				return protocol.ToolOutput{}, err
			}
		}
		return recent(ctx, tasks, a.Task, before.Size, moment)
	})
}

// ended reports whether a signal failed because the task has ended.
func ended(err error) bool {
	k, ok := errors.AsType[interface {
		error
		Kind() protocol.ErrorKind
	}](err)
	return ok && k.Kind() == protocol.KindTaskEnded
}

// signals returns the signals to send, in order: text, interrupt, end of input.
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

// readOutput is read_output. A wait that times out is not an error: the result has the
// output so far and the state of the task.
func (s *shell) readOutput(ctx context.Context, call tool.Invocation, a readArgs) protocol.ToolOutput {
	switch {
	case a.Limit < 0 || a.Limit > maxPart:
		return rejected("invalid_arguments", fmt.Sprintf("limit must be between 1 and %d", maxPart))
	case a.WaitMs < 0 || a.WaitMs > maxWaitMs:
		return rejected("invalid_arguments", fmt.Sprintf("waitMs must be between 0 and %d", maxWaitMs))
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

// listProcesses is list_processes. It lists the oldest task first.
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
			all = append(all, describeTask(t))
		}
		switch {
		case len(all) == 0:
			text.WriteString("[No tasks.]\n")
		case r.More:
			fmt.Fprintf(&text, "[There are more than %d.]\n", maxListed)
		}
		return succeed(text.String(), all)
	})
}

// stopCommand is stop_command. It waits for a moment until the task has ended and returns
// the end of its output. The state in the result says whether it has. Stopping a task that
// has already ended is not an error.
func (s *shell) stopCommand(ctx context.Context, call tool.Invocation, a stopArgs) protocol.ToolOutput {
	return withTasks(call, func(tasks plugin.TaskService) (protocol.ToolOutput, error) {
		t, err := tasks.CancelTask(ctx, &protocol.TaskCancelParams{TaskParams: protocol.TaskParams{TaskID: a.Task}, Reason: a.Reason})
		if err != nil {
			// A task that has ended cannot be cancelled, which is fine here. Other errors also fail the read.
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
