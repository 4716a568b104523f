package proc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
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

// run is the life of the child. The kernel sends the parent-death signal when the *thread* that forked ends, so start and
// wait are one goroutine bound to one thread. That costs no thread: waiting for a child blocks one anyway.
func (p *Process) run(ctx context.Context, c Command, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer p.stop(nil)
	defer close(p.done)

	ch, err := c.spawn()
	if err != nil {
		started <- err
		return
	}
	p.pid = ch.cmd.Process.Pid
	alive.Add(1)
	defer alive.Add(-1)
	started <- nil
	p.exit, p.err = ch.await(ctx, c, p.interrupts)
}

func (ch *child) await(ctx context.Context, c Command, interrupts <-chan struct{}) (Exit, error) {
	var ladder sync.WaitGroup
	var cause error
	exited := make(chan struct{})
	ladder.Go(func() { cause = ch.endOn(ctx, exited, interrupts, c.Grace) })

	// The leader stays unreaped until the group is killed: its zombie keeps the group's number from being used again.
	ch.group.awaitLeader()
	close(exited)
	ladder.Wait()
	ch.group.kill()

	escaped, err := ch.output.finish(c.Drain)
	if err != nil {
		err = fmt.Errorf("copy output of %s: %w", c.Argv[0], err)
	}
	reaped := ch.cmd.Wait()
	ch.group.close()
	if ch.cmd.ProcessState == nil {
		return Exit{Code: -1, Escaped: escaped, Cause: cause}, fmt.Errorf("wait for %s: %w", c.Argv[0], reaped)
	}
	exit := exitOf(ch.cmd.ProcessState)
	exit.Escaped, exit.Cause = escaped, cause
	return exit, err
}

// endOn stops the group when ctx ends, and says why; it returns nil if the leader exits first. Until then it passes interrupts on.
func (ch *child) endOn(ctx context.Context, exited, interrupts <-chan struct{}, grace time.Duration) error {
	for running := true; running; {
		select {
		case <-exited:
			return nil
		case <-interrupts:
			ch.group.interrupt()
		case <-ctx.Done():
			running = false
		}
	}
	select {
	case <-exited: // before anybody asked
		return nil
	default:
	}
	ch.group.terminate()
	select {
	case <-exited:
	case <-time.After(grace):
		ch.group.kill()
	}
	return context.Cause(ctx)
}
