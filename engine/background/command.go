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
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

// grace is how long a command has to end by itself once it is asked to.
const grace = 2 * time.Second

// Commands runs the commands of tasks.
type Commands struct {
	Environ []string // of a command, before its own
	Nonce   string   // begins the mark of its processes, for proc.Sweep
	Outputs *Outputs
}

// Run runs the command of a task to its end, whatever ends it. Nothing that it has started is left then, unless it ended by
// itself and its processes have let go of its output. It takes signals until it returns.
func (c *Commands) Run(ctx context.Context, t *protocol.Task, cwd string, signals <-chan Signal) *protocol.TaskOutcome {
	out, err := c.Outputs.Writer(t)
	if err != nil {
		return failed("output", err)
	}
	defer out.Close()
	cmd, err := c.command(t.Spec.Command, cwd)
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
	to := &taker{process: p, in: in}
	var taking sync.WaitGroup
	taking.Go(func() { to.take(signals) })
	exit, err := p.Wait()
	taking.Wait()
	if err := reaped(&cmd, exit, in.held(), err); err != nil {
		return failed("not_reaped", err)
	}
	return to.outcome(exit)
}

// reaped ends what has left the group of a command that was stopped, or of one whose output somebody still holds.
func reaped(c *proc.Command, exit proc.Exit, held bool, err error) error {
	if exit.Cause == nil && !exit.Escaped && !held {
		return err
	}
	_, failed := proc.Sweep(c.Nonce)
	return errors.Join(err, failed)
}

// watchGrace is how long the command of a monitor has to end by itself once it is asked to.
const watchGrace = 200 * time.Millisecond

// Watch runs the command of a monitor to its end, whatever ends it. As in Run, cwd is the workspace. It gets no input. Its lines go to those that are given, too;
// all are there when it returns.
func (c *Commands) Watch(ctx context.Context, t *protocol.Task, cwd string, lines *LineBuffer) *protocol.TaskOutcome {
	file, err := c.Outputs.Writer(t)
	if err != nil {
		return failed("output", err)
	}
	defer file.Close()
	out, errs := &splitter{lines: lines}, &splitter{lines: lines, err: true}
	cmd, err := c.command(t.Spec.Command, cwd)
	if err != nil {
		return failed("not_started", err)
	}
	defer cmd.OpenDir.Close()
	cmd.Stdout, cmd.Stderr, cmd.Grace = io.MultiWriter(file, out), io.MultiWriter(file, errs), watchGrace
	p, err := proc.Start(ctx, cmd)
	if err != nil {
		return notStarted(ctx, err)
	}
	exit, err := p.Wait()
	out.end()
	errs.end()
	if err := reaped(&cmd, exit, false, err); err != nil {
		return failed("not_reaped", err)
	}
	return Outcome(exit)
}

// command opens the directory of a command, which the caller closes. One that is below cwd, the workspace, must not lead out of it.
func (c *Commands) command(s *protocol.TaskShell, cwd string) (proc.Command, error) {
	opened, dir, err := pathresolve.OpenWorkdir(cwd, cmp.Or(s.Workdir, cwd))
	if err != nil {
		return proc.Command{}, fmt.Errorf("its directory: %w", err)
	}
	term := "dumb"
	if s.PTY != nil {
		term = "xterm-256color"
	}
	env := append(slices.Clip(c.Environ), "TERM="+term, "PWD="+dir)
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		env = append(env, name+"="+s.Env[name])
	}
	return proc.Command{
		Argv: []string{"sh", "-c", s.Script}, Dir: dir, OpenDir: opened, Env: env, Nonce: c.Nonce + "/" + rand.Text(), Grace: grace,
	}, nil
}

// Outcome is how a process ended. One that lashd stopped is told as stopped, by nobody yet.
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

// notStarted is the outcome of a command that could not be started, or that somebody stopped before it was.
func notStarted(ctx context.Context, err error) *protocol.TaskOutcome {
	if ctx.Err() != nil {
		return &protocol.TaskOutcome{Kind: protocol.TaskStopped}
	}
	return failed("not_started", err)
}

func failed(code string, err error) *protocol.TaskOutcome {
	return &protocol.TaskOutcome{Kind: protocol.TaskError, Code: code, Message: err.Error()}
}
