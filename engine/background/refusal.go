package background

import (
	"encoding/json"
	"io"

	"lashd/engine/proc"
	"lashd/engine/sandbox"
	"lashd/rpc/protocol"
)

// explained is how much of the end of an output is searched for refusals of the sandbox, in bytes.
const explained = 8 << 10

// note adds to the output of a command that has ended what its sandbox refused, and what it did to files that start programs. It returns
// the refusal with the call that starts the command again; nil: none. A command that was stopped did not fail by itself.
func (c *Commands) note(out io.Writer, box *sandbox.Box, t *protocol.Task, again call, exit proc.Exit) *protocol.SandboxRefusal {
	if box == nil {
		return nil
	}
	end := sandbox.Ended{Command: t.Spec.Command.Script}
	if exit.Cause == nil {
		end.Code = exit.Code
	}
	if read, err := c.Outputs.Read(t, -explained, explained); err == nil { // without it, only the proxy knows refusals
		end.Output = read.Text
	}
	_, _ = io.WriteString(out, box.Explain(end)+box.Changes()) // the output reports its own errors
	r := box.Refusal(again.arguments(t), end)
	if r != nil {
		r.Tool = again.tool
	}
	return r
}

// call has the arguments of the tools that start commands in the background, which package shell and package monitor define.
type call struct {
	tool       string
	ID         string `json:"id,omitempty"`
	Command    string `json:"command"`
	Label      string `json:"label,omitempty"`
	Workdir    string `json:"workdir,omitempty"`
	Cwd        string `json:"cwd,omitempty"`
	TimeoutMs  int64  `json:"timeoutMs,omitempty"`
	PTY        bool   `json:"pty,omitempty"`
	Wake       bool   `json:"wake,omitempty"`
	Rerunnable bool   `json:"rerunnable,omitempty"`
	Persistent bool   `json:"persistent,omitempty"`
	NotifyOnly bool   `json:"notifyOnly,omitempty"`
}

// startAgain returns the call that starts the command of a task again.
func startAgain(t *protocol.Task) call {
	s := &t.Spec
	return call{
		tool: "start_command", Command: s.Command.Script, Label: s.Label, Workdir: s.Command.Workdir, TimeoutMs: s.TimeoutMs,
		PTY: s.Command.PTY != nil, Wake: s.Ended != nil, Rerunnable: s.Recovery == protocol.RecoverRerun,
	}
}

// watchAgain returns the call that starts a monitor again.
func watchAgain(m *protocol.MonitorSpec) call {
	return call{
		tool: "start_monitor", ID: m.ID, Command: m.Command, Cwd: m.Cwd, TimeoutMs: m.TimeoutMs, Persistent: m.Persistent, NotifyOnly: m.Wake == protocol.WakeNotify,
	}
}

// arguments returns the arguments as JSON; nil if the task has variables, which no tool sets.
func (c call) arguments(t *protocol.Task) json.RawMessage {
	if len(t.Spec.Command.Env) > 0 {
		return nil
	}
	args, err := json.Marshal(c)
	if err != nil {
		panic("strings and numbers are always JSON: " + err.Error())
	}
	return args
}
