package proc

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Process is a running or finished child.
type Process struct {
	pid        int
	stop       context.CancelCauseFunc
	interrupts chan struct{}
	done       chan struct{}
	exit       Exit  // set before done is closed
	err        error // set before done is closed
}

// Exit is how a child ended.
type Exit struct {
	Code    int    // exit status; -1 if a signal ended it
	Signal  string // "SIGKILL"; empty if it exited by itself
	Escaped bool   // a process outside the group still held an output pipe (not a file) when Drain ran out
	Cause   error  // why it was stopped; nil if it ended before anyone asked
}

// errStopped is the cause of a Stop that gives none.
var errStopped = errors.New("stopped")

// Pid is for logs. Never signal it: after the child has exited it may belong to anyone.
func (p *Process) Pid() int { return p.pid }

// Done is closed when the child is reaped, its group is dead and its output is complete.
func (p *Process) Done() <-chan struct{} { return p.done }

// Stop asks the group to end, with SIGTERM at once and SIGKILL after the grace time. It returns immediately and does nothing
// to a child that has exited. The first cause wins and comes back in Exit.Cause.
func (p *Process) Stop(cause error) {
	if cause == nil {
		cause = errStopped
	}
	p.stop(cause)
}

// Interrupt sends SIGINT to the group, which may do with it what it likes. It does nothing to a child that has exited.
func (p *Process) Interrupt() {
	select {
	case p.interrupts <- struct{}{}:
	default: // one is on its way
	}
}

// Wait returns how the child ended, once Done is closed; any number of callers may wait. The error is a failure to carry its
// output or to reap it, not a bad exit status.
func (p *Process) Wait() (Exit, error) {
	<-p.done
	return p.exit, p.err
}

// alive counts the children that are not reaped yet.
var alive atomic.Int64

// Alive tells how many children run.
func Alive() int { return int(alive.Load()) }

// run is the life of the child.
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

// signalled is a process group that can be asked to end.
type signalled interface {
	interrupt()
	terminate()
	kill()
}

// endOn stops the group when ctx ends, and says why; it returns nil if the leader exits first. Until then it passes interrupts on.
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
	case <-exited: // before anybody asked
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
