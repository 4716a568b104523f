package background

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"lashd/engine/proc"
	"lashd/engine/sandbox"
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

// grace is how long a command may take to end after SIGTERM before it is killed.
const grace = 2 * time.Second

// Commands runs the commands of tasks. It has no state of its own and is safe for
// concurrent use.
type Commands struct {
	// Environ is the environment of every command, before the variables of its task.
	Environ []string
	// Nonce is the prefix of the mark in the environment of each process. proc.Sweep finds
	// the processes by the mark.
	Nonce string
	// Sandbox has the places for sandboxes of commands.
	Sandbox sandbox.Places
	// Outputs stores the output of all commands.
	Outputs *Outputs
}

// Run runs the command of a task and returns its outcome when it has ended. Cancelling ctx
// stops the command. Run delivers signals until the command ends.
//
// When Run returns, no process of the command is left, with one exception: if the command
// ended by itself, processes that closed its output may continue.
func (c *Commands) Run(ctx context.Context, t *protocol.Task, cwd string, signals <-chan Signal) *protocol.TaskOutcome {
	out, err := c.Outputs.Writer(t)
	if err != nil {
		return failed("output", err)
	}
	defer out.Close()
	cmd, box, err := c.command(t.Spec.Command, cwd)
	if err != nil {
		return failed("not_started", err)
	}
	defer cmd.OpenDir.Close()
	in, err := attach(&cmd, t.Spec.Command.PTY, out)
	if err != nil {
		return failed("no_terminal", err)
	}
	defer in.close()
	p, err := proc.Start(ctx, cmd)
	in.begun()
	if err != nil {
		return notStarted(ctx, err)
	}
	to := &receiver{process: p, in: in}
	var delivery sync.WaitGroup
	delivery.Go(func() { to.receive(signals) })
	exit, err := p.Wait()
	delivery.Wait()
	refusal := c.note(out, box, t, startAgain(t), exit)
	if err := sweep(&cmd, exit, in.held(), err); err != nil {
		return failed("not_reaped", err)
	}
	outcome := to.outcome(exit)
	outcome.Refusal = refusal
	return outcome
}

// sweep ends processes that left the process group of a command. It does so only if the
// command was stopped, if proc saw a process escape, or if a process still has the terminal
// open.
func sweep(c *proc.Command, exit proc.Exit, held bool, err error) error {
	if exit.Cause == nil && !exit.Escaped && !held {
		return err
	}
	_, failed := proc.Sweep(c.Nonce)
	return errors.Join(err, failed)
}

// watchGrace is how long the command of a monitor may take to end after SIGTERM.
const watchGrace = 200 * time.Millisecond

// Watch runs the command of a monitor and returns its outcome when it has ended. Cancelling
// ctx stops the command. cwd is the workspace. The command gets no input. Its lines go to
// the output file and to lines; lines has all of them when Watch returns. spec is that of the monitor.
func (c *Commands) Watch(ctx context.Context, t *protocol.Task, spec *protocol.MonitorSpec, cwd string, lines *LineBuffer) *protocol.TaskOutcome {
	file, err := c.Outputs.Writer(t)
	if err != nil {
		return failed("output", err)
	}
	defer file.Close()
	out, errs := &splitter{lines: lines}, &splitter{lines: lines, err: true}
	cmd, box, err := c.command(t.Spec.Command, cwd)
	if err != nil {
		return failed("not_started", err)
	}
	defer cmd.OpenDir.Close()
	if t.Origin.Plugin != "" {
		box.ShowPlugin(t.Origin.Plugin, spec.Env["PLUGIN_ROOT"])
	}
	cmd.Stdout, cmd.Stderr, cmd.Grace = io.MultiWriter(file, out), io.MultiWriter(file, errs), watchGrace
	p, err := proc.Start(ctx, cmd)
	if err != nil {
		return notStarted(ctx, err)
	}
	exit, err := p.Wait()
	out.end()
	errs.end()
	refusal := c.note(file, box, t, watchAgain(spec), exit)
	if err := sweep(&cmd, exit, false, err); err != nil {
		return failed("not_reaped", err)
	}
	outcome := Outcome(exit)
	outcome.Refusal = refusal
	return outcome
}

// command prepares the process of a task, without its streams, and its sandbox if it has one. The caller closes OpenDir. A
// directory below cwd, the workspace, must not lead out of it.
func (c *Commands) command(s *protocol.TaskShell, cwd string) (proc.Command, *sandbox.Box, error) {
	opened, dir, err := pathresolve.OpenWorkdir(cwd, cmp.Or(s.Workdir, cwd))
	if err != nil {
		return proc.Command{}, nil, fmt.Errorf("working directory: %w", err)
	}
	term := "dumb"
	if s.PTY != nil {
		term = "xterm-256color"
	}
	env := append(slices.Clip(c.Environ), "TERM="+term, "PWD="+dir)
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		env = append(env, name+"="+s.Env[name])
	}
	cmd := proc.Command{Argv: []string{"sh", "-c", s.Script}, Dir: dir, OpenDir: opened, Env: env, Nonce: c.Nonce + "/" + rand.Text(), Grace: grace}
	box, err := c.Sandbox.For(s.Sandbox, cwd)
	if err == nil {
		err = box.Reach(s.Network)
	}
	if err != nil {
		return proc.Command{}, nil, errors.Join(fmt.Errorf("sandbox: %w", err), opened.Close())
	}
	box.Apply(&cmd)
	return cmd, box, nil
}

// Outcome converts the exit of a process. A process that lashd stopped gets TaskStopped;
// the caller sets By to the requester.
func Outcome(exit proc.Exit) *protocol.TaskOutcome {
	switch {
	case exit.Signal != "" && exit.Cause != nil:
		return &protocol.TaskOutcome{Kind: protocol.TaskStopped, Signal: exit.Signal}
	case exit.Signal != "":
		return &protocol.TaskOutcome{Kind: protocol.TaskSignal, Signal: exit.Signal}
	case exit.Cause != nil && exit.Code != 0:
		return &protocol.TaskOutcome{Kind: protocol.TaskStopped, ExitCode: &exit.Code}
	}
	return &protocol.TaskOutcome{Kind: protocol.TaskExited, ExitCode: &exit.Code}
}

// notStarted returns the outcome of a command that failed to start, or that was stopped
// before it started.
func notStarted(ctx context.Context, err error) *protocol.TaskOutcome {
	if ctx.Err() != nil {
		return &protocol.TaskOutcome{Kind: protocol.TaskStopped}
	}
	return failed("not_started", err)
}

// failed returns a TaskError outcome.
func failed(code string, err error) *protocol.TaskOutcome {
	return &protocol.TaskOutcome{Kind: protocol.TaskError, Code: code, Message: err.Error()}
}
