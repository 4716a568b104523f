// Package shell is the plugin with the shell tool and the tools for background commands.
//
// The shell tool runs one command. When the command ends, times out or is cancelled, all
// processes that it started end as well. That includes processes that left its group, if
// they still hold the output; searching for others after each command would cost more than
// most commands. Background commands outlive their turn and are tasks of the session.
//
// The tools are safe for concurrent use.
package shell

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lashd/engine/capture"
	"lashd/engine/proc"
	"lashd/engine/sandbox"
	"lashd/engine/tool"
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

const (
	// defaultTimeout and maxTimeout limit the run time of a command.
	defaultTimeout = 10 * time.Minute
	maxTimeout     = time.Hour
)

// errTimeout is the cause with which a command that exceeds its time limit is stopped.
var errTimeout = errors.New("timeout")

// describe is the description of the shell tool that the model reads.
const describe = "Run a command with sh in the workspace, and return its output, including standard error, and its exit code. " +
	"The command has no input and no terminal. All processes that it started end with it. Only a process that detaches itself " +
	"and closes the output can stay, until the daemon ends. To run a command in the background, use start_command."

// args are the arguments of the shell tool.
type args struct {
	Command   string `json:"command" jsonschema:"command for sh"`
	Workdir   string `json:"workdir,omitempty" jsonschema:"working directory, relative to the workspace or absolute inside it (default: the workspace)"`
	TimeoutMs int64  `json:"timeoutMs,omitempty" jsonschema:"time limit in milliseconds, at most 3600000 (default: 600000)"`
	Plain     bool   `json:"plain,omitempty" jsonschema:"for code: return only the output, without the line with the exit code, which the value has"`
	Outside   bool   `json:"outside,omitempty" jsonschema:"run it outside the sandbox, if the session has one; a person is asked"`
	// Hosts are the hosts that a command in a sandbox reaches besides those that rules allow.
	Hosts []string `json:"hosts,omitempty" jsonschema:"hosts that the command needs to reach from the sandbox by HTTP or HTTPS, such as registry.npmjs.org, *.github.com or example.com:8080; a person is asked unless rules allow them"`
}

// value is the structured result of the shell tool.
type value struct {
	// ExitCode is -1 if a signal ended the command.
	ExitCode int    `json:"exitCode"`
	Signal   string `json:"signal,omitempty"`
	// Truncated means that the text of the result is only a part of the output.
	Truncated bool `json:"truncated"`
	// Escaped means that a process left the group and could not be found and stopped.
	Escaped bool `json:"escaped,omitempty"`
	// Sandbox is the mode of the sandbox in which the command ran.
	Sandbox protocol.SandboxMode `json:"sandbox,omitempty"`
	// Refused are the hosts that the sandbox refused.
	Refused    []protocol.RefusedHost `json:"refusedHosts,omitempty"`
	DurationMs int64                  `json:"durationMs"`
}

// shell provides the tools of one session.
type shell struct {
	cwd       string
	sandboxes sandbox.Places
	environ   []string
	nonce     string
	// readable are copies of plugins that commands in a sandbox may read.
	readable []string
	// reading is shared by all sessions, see Factory.
	reading chan struct{}
}

// command is the shell tool.
func (s *shell) command(ctx context.Context, call tool.Invocation, a args) protocol.ToolOutput {
	if err := a.check(); err != nil {
		return rejected("invalid_arguments", fmt.Sprintf("arguments of shell: %v", err))
	}
	dir, at, err := s.directory(call, a.Workdir)
	if err != nil {
		return badDirectory(a.Workdir, err)
	}
	defer dir.Close()
	return s.run(ctx, call, a, proc.Command{OpenDir: dir, Dir: at})
}

// check validates the arguments beyond the schema.
func (a args) check() error {
	if err := checkHosts(a.Hosts, a.Outside, false); err != nil {
		return err
	}
	if a.TimeoutMs < 0 || a.TimeoutMs > maxTimeout.Milliseconds() {
		return fmt.Errorf("timeoutMs must be between 0 and %d", maxTimeout.Milliseconds())
	}
	return checkScript(a.Command)
}

// checkScript rejects a command that sh cannot run.
func checkScript(command string) error {
	switch {
	case strings.TrimSpace(command) == "":
		return errors.New("the command is empty")
	case strings.ContainsRune(command, 0):
		return errors.New("the command contains a NUL byte")
	}
	return nil
}

// directory opens the working directory of a call and returns its path. It keeps a
// cooperative model in the workspace. A command can still change directory by itself, which
// the approval of the command has to consider. The command starts in the opened directory,
// even if the path changes later. The caller closes dir.
func (s *shell) directory(call tool.Invocation, workdir string) (dir *os.File, at string, err error) {
	dir, at, err = pathresolve.OpenDir(s.cwd, cmp.Or(workdir, "."))
	if err == nil && workdir != "" && call.Places != nil && !slices.Contains(call.Places, at) {
		return nil, "", errors.Join(errElsewhere, dir.Close())
	}
	return dir, at, err
}

// badDirectory is the output of a call whose directory cannot be opened.
func badDirectory(workdir string, err error) protocol.ToolOutput {
	if errors.Is(err, pathresolve.ErrElsewhere) {
		return protocol.Fail(protocol.FailPermission, tool.WorkspaceElsewhere, err.Error(), protocol.FromTool)
	}
	return rejected("invalid_workdir", fmt.Sprintf("workdir %s: %v", cmp.Or(workdir, "."), err))
}

// errElsewhere means that the path leads to another directory than the one for which the
// call was approved.
var errElsewhere = errors.New("the path leads to another directory than when the call was approved; check the path and call again")

// run runs a command and returns its output and exit code as the result of the call. A
// non-zero exit code is a successful call: the command has run, and the model reads the
// code. A timeout is a failure with the output so far.
func (s *shell) run(ctx context.Context, call tool.Invocation, a args, c proc.Command) protocol.ToolOutput {
	out := capture.New(call.Host)
	defer out.Close()
	box, err := s.confine(&c, call)
	if err != nil {
		return protocol.Fail(protocol.FailUnavailable, "no_sandbox", fmt.Sprintf("the sandbox of the command cannot be prepared: %v", err), protocol.FromTool)
	}
	limit := cmp.Or(time.Duration(a.TimeoutMs)*time.Millisecond, defaultTimeout)
	start := time.Now()
	exit, err := s.await(ctx, a.Command, c, limit, out)
	if err != nil && ctx.Err() != nil {
		return protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "cancelled before the command ran"}
	}
	if err != nil {
		return protocol.Fail(protocol.FailUnavailable, "not_started", fmt.Sprintf("the command could not be run: %v", err), protocol.FromTool)
	}
	took := time.Since(start)
	// Store the output even if the call was cancelled.
	text, ref := out.Result(context.WithoutCancel(ctx), s.reading)
	if exit.Escaped {
		text += "[A process left the command's process group and holds its output. It could not be stopped.]\n"
	}
	result := verdict(exit, limit)
	if a.Plain && exit.Cause == nil {
		result.Text = ""
	}
	ended := sandbox.Ended{Command: a.Command, Output: text[max(0, len(text)-explained):], Code: exit.Code}
	result.Text = text + result.Text + box.Explain(ended) + box.Changes()
	result.Refusal = box.Refusal(call.Args, ended)
	result.Artifact = ref
	data, err := json.Marshal(value{exit.Code, exit.Signal, out.Truncated(), exit.Escaped, call.Sandbox, box.Refused(), took.Milliseconds()})
	if err != nil {
		return protocol.Fail(protocol.FailInternal, "encode", err.Error(), protocol.FromTool)
	}
	result.Value = data
	return result
}

// explained is how much of the end of an output is searched for refusals of the sandbox, in bytes.
const explained = 8 << 10

// confine sets the environment of a command, and the sandbox that the call demands. It returns the sandbox, or nil if there is none.
func (s *shell) confine(c *proc.Command, call tool.Invocation) (*sandbox.Box, error) {
	c.Env = append(capture.Environment(s.environ), "TERM=dumb", "PWD="+c.Dir)
	box, err := s.sandboxes.For(call.Sandbox, s.cwd)
	if err == nil {
		err = box.Reach(call.Network)
	}
	for _, root := range s.readable {
		box.ShowPlugin(filepath.Base(root), root)
	}
	box.Apply(c)
	return box, err
}

// await runs a command in the directory of c until it ends, exceeds limit, or ctx is
// cancelled.
func (s *shell) await(ctx context.Context, command string, c proc.Command, limit time.Duration, out *capture.Output) (proc.Exit, error) {
	limited, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	c.Argv, c.Nonce = []string{"sh", "-c", command}, s.nonce
	return capture.Run(limited, c, out)
}

// verdict returns the result for the end of a command, without its output.
func verdict(exit proc.Exit, limit time.Duration) protocol.ToolOutput {
	switch {
	case errors.Is(exit.Cause, errTimeout):
		out := protocol.Fail(protocol.FailTimeout, "timeout", fmt.Sprintf("the command was stopped after %s", limit), protocol.FromTool)
		out.Text = fmt.Sprintf("[Stopped after %s. This is the output so far.]\n", limit)
		return out
	case exit.Cause != nil:
		return protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "[Cancelled. This is the output so far.]\n"}
	case exit.Signal != "":
		return protocol.Succeed(fmt.Sprintf("[Ended by %s.]\n", exit.Signal))
	}
	return protocol.Succeed(fmt.Sprintf("[Exit code %d.]\n", exit.Code))
}
