// Package shell is the plugin with the shell tool: one command at a time, which dies with everything it started when it
// ends, takes too long or is cancelled; and with tools for commands that outlive their turn, which are tasks of the session. A process that left the command's group dies too if it still holds the output;
// to look for others after each command would cost more than most commands.
//
// The tools may be used by several goroutines at once.
package shell

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"lashd/engine/capture"
	"lashd/engine/proc"
	"lashd/engine/tool"
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

const (
	defaultTimeout = 10 * time.Minute
	maxTimeout     = time.Hour
)

// errTimeout is the cause with which a command is stopped that took too long.
var errTimeout = errors.New("timeout")

const describe = "Run a command with sh in the workspace, and return its output, standard error included, and its exit code. " +
	"The command gets no input and no terminal. Every process it started ends with it; only one that detaches itself and lets " +
	"go of the output can stay, until the daemon ends. For what shall go on beside you there is start_command."

type args struct {
	Command   string `json:"command" jsonschema:"what sh shall run"`
	Workdir   string `json:"workdir,omitempty" jsonschema:"directory to run it in, relative to the workspace or absolute inside it; the workspace if not given"`
	TimeoutMs int64  `json:"timeoutMs,omitempty" jsonschema:"milliseconds after which it is stopped; 600000 if not given, at most 3600000"`
}

// value is the structured result.
type value struct {
	ExitCode   int    `json:"exitCode"` // -1 if a signal ended it
	Signal     string `json:"signal,omitempty"`
	Truncated  bool   `json:"truncated"`
	Escaped    bool   `json:"escaped,omitempty"` // a process left the group, and could not be found to be stopped
	DurationMs int64  `json:"durationMs"`
}

// shell is the provider of one session.
type shell struct {
	cwd     string
	environ []string
	nonce   string
	reading chan struct{} // shared by all sessions
}

// command is the tool shell.
func (s *shell) command(ctx context.Context, call tool.Invocation, a args) protocol.ToolOutput {
	if err := a.check(); err != nil {
		return refused("invalid_arguments", fmt.Sprintf("arguments of shell: %v", err))
	}
	dir, at, err := s.directory(call, a.Workdir)
	if err != nil {
		return refused("invalid_workdir", fmt.Sprintf("workdir %s: %v", cmp.Or(a.Workdir, "."), err))
	}
	defer dir.Close()
	return s.run(ctx, call.Host, a, proc.Command{OpenDir: dir, Dir: at})
}

func (a args) check() error {
	if a.TimeoutMs < 0 || a.TimeoutMs > maxTimeout.Milliseconds() {
		return fmt.Errorf("timeoutMs must be between 0 and %d", maxTimeout.Milliseconds())
	}
	return checkScript(a.Command)
}

func checkScript(command string) error {
	switch {
	case strings.TrimSpace(command) == "":
		return errors.New("the command is empty")
	case strings.ContainsRune(command, 0):
		return errors.New("the command contains a NUL byte")
	}
	return nil
}

// directory opens the directory to run in. It keeps an honest model in the workspace; a command can go elsewhere by itself, which
// is for the permission to run it to consider. The command starts in what was opened, wherever the path leads by then.
func (s *shell) directory(call tool.Invocation, workdir string) (dir *os.File, at string, err error) {
	dir, at, err = pathresolve.OpenDir(s.cwd, cmp.Or(workdir, "."))
	if err == nil && workdir != "" && call.Places != nil && !slices.Contains(call.Places, at) {
		return nil, "", errors.Join(errElsewhere, dir.Close())
	}
	return dir, at, err
}

// errElsewhere refuses a directory that is not the one for which the call was allowed.
var errElsewhere = errors.New("since the call was allowed, the path has changed to lead elsewhere; check where it leads and call again")

func (s *shell) run(ctx context.Context, host tool.Host, a args, c proc.Command) protocol.ToolOutput {
	out := capture.New(host)
	defer out.Close()
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
	// The output of a cancelled command is worth as much as that of another.
	text, ref := out.Result(context.WithoutCancel(ctx), s.reading)
	if exit.Escaped {
		text += "[A process left the command's group and held its output; it could not be stopped.]\n"
	}
	result := verdict(exit, limit)
	result.Text = text + result.Text
	result.Artifact = ref
	data, err := json.Marshal(value{exit.Code, exit.Signal, out.Truncated(), exit.Escaped, took.Milliseconds()})
	if err != nil {
		return protocol.Fail(protocol.FailInternal, "encode", err.Error(), protocol.FromTool)
	}
	result.Value = data
	return result
}

// await runs a command in the directory of c to its end, whatever ends it.
func (s *shell) await(ctx context.Context, command string, c proc.Command, limit time.Duration, out *capture.Output) (proc.Exit, error) {
	limited, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	c.Argv, c.Nonce = []string{"sh", "-c", command}, s.nonce
	c.Env = append(capture.Environment(s.environ), "TERM=dumb", "PWD="+c.Dir)
	return capture.Run(limited, c, out)
}

// verdict says how the command ended, without its output.
func verdict(exit proc.Exit, limit time.Duration) protocol.ToolOutput {
	switch {
	case errors.Is(exit.Cause, errTimeout):
		out := protocol.Fail(protocol.FailTimeout, "timeout", fmt.Sprintf("the command was stopped after %s", limit), protocol.FromTool)
		out.Text = fmt.Sprintf("[Stopped after %s. This is the output until then.]\n", limit)
		return out
	case exit.Cause != nil:
		return protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "[Cancelled. This is the output until then.]\n"}
	case exit.Signal != "":
		return protocol.Succeed(fmt.Sprintf("[Ended by %s.]\n", exit.Signal))
	}
	return protocol.Succeed(fmt.Sprintf("[Exit code %d.]\n", exit.Code))
}
