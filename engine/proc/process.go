package proc

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Process is a running or finished child. A goroutine of its own starts it, waits for it and reaps it.
type Process struct {
	pid        int
	stop       context.CancelCauseFunc
	interrupts chan struct{} // has room for one
	done       chan struct{}
	exit       Exit  // set before done is closed
	err        error // set before done is closed
}

// Exit describes how a child ended.
type Exit struct {
	Code   int    // exit status; -1 if a signal ended the child
	Signal string // such as "SIGKILL"; empty if the child exited by itself
	// Escaped means that a process outside of the group still held an output pipe (not a file) when Drain ran out.
	Escaped bool
	Cause   error // why the child was stopped; nil if it ended by itself
}

// errStopped is the cause of a Stop without one.
var errStopped = errors.New("stopped")

// Pid returns the process id, for logs. Never signal it: after the child has exited, the id may belong to another
// process.
func (p *Process) Pid() int { return p.pid }

// Done returns a channel that is closed when the child is reaped, its group is dead and its output is complete.
func (p *Process) Done() <-chan struct{} { return p.done }

// Stop sends SIGTERM to the group, and SIGKILL after Command.Grace. It returns immediately and does nothing to a child
// that has exited. The first cause wins and is returned in Exit.Cause.
func (p *Process) Stop(cause error) {
	if cause == nil {
		cause = errStopped
	}
	p.stop(cause)
}

// Interrupt sends SIGINT to the group, which may handle or ignore it. It does nothing to a child that has exited.
// Interrupts in quick succession count as one.
func (p *Process) Interrupt() {
	select {
	case p.interrupts <- struct{}{}:
	default: // one is already pending
	}
}

// Wait waits for Done and returns how the child ended. Any number of callers may wait. The error means that output
// could not be copied or the child not reaped; a bad exit status is no error.
func (p *Process) Wait() (Exit, error) {
	<-p.done
	return p.exit, p.err
}

// alive is the number of children that are not reaped.
var alive atomic.Int64

// Alive returns the number of running children.
func Alive() int { return int(alive.Load()) }

// run starts the child, reports that on started, and waits for its end.
func (p *Process) run(ctx context.Context, c Command, started chan<- error) {
	defer p.stop(nil)
	defer close(p.done)

	l, err := launch(c)
	if err != nil {
		started <- err
		return
	}
	p.pid = l.pid()
	alive.Add(1)
	defer alive.Add(-1)
	started <- nil
	p.exit, p.err = l.await(ctx, c, p.interrupts)
}

// signalled is a process group that can be signalled: a group, or a supervisor that passes signals on.
type signalled interface {
	interrupt()
	terminate()
	kill()
}

// endOn stops the group when ctx ends and returns the cause, or returns nil if the leader exits first. Until then it
// passes interrupts on.
func endOn(ctx context.Context, group signalled, exited, interrupts <-chan struct{}, grace time.Duration) error {
	for running := true; running; {
		select {
		case <-exited:
			return nil
		case <-interrupts:
			group.interrupt()
		case <-ctx.Done():
			running = false
		}
	}
	select {
	case <-exited: // it ended by itself just before
		return nil
	default:
	}
	group.terminate()
	select {
	case <-exited:
	case <-time.After(grace):
		group.kill()
	}
	return context.Cause(ctx)
}
