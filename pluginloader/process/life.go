package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"lashd/engine/proc"
	"lashd/engine/sandbox"
	"lashd/pluginloader/child"
)

// life is one run of the process, from its start until nothing of it is left. It embeds peer, the
// JSON-RPC connection.
//
// A life ends in two steps. First end makes calls fail, for one of several reasons: the process
// exits, it breaks the protocol, it hangs, or lashd stops it. The first reason counts. Then over is
// closed, when the process, everything it started and all goroutines of the run have ended. The
// supervisor starts the next life only after that.
type life struct {
	*peer
	config   *Config
	log      *slog.Logger
	heed     listener // receives the plugin's notifications
	grants   *grants  // what the plugin may currently ask of lashd
	box      *sandbox.Box
	process  *proc.Process
	mark     string         // an environment variable's value in all its processes; proc.Sweep finds them by it
	in, out  *os.File       // lashd's ends of its stdin and stdout
	calls    sync.WaitGroup // requests of the plugin in progress
	busy     chan struct{}  // limits concurrent requests of the plugin
	over     chan struct{}  // closed when nothing is left
	began    time.Time
	refusals tally        // limits log lines about rejected requests
	tells    tally        // limits task events
	tasks    atomic.Int32 // number of tasks that the process runs by itself

	ending sync.Once
	ended  func(*life) // called when the process ends unexpectedly
	asked  bool        // lashd stopped it; valid once over is closed
}

// listener receives what the plugin sends unasked. The calls come from one goroutine in the order
// of the plugin's messages.
type listener interface {
	noted(ctx context.Context, l *life, m *message) error
	said(level slog.Level, text string)
}

const (
	exitDelay  = time.Second            // wait after the end of stdout for the process to exit
	drainDelay = 100 * time.Millisecond // wait after the exit for the rest of a pipe
	heardDelay = 2 * time.Second        // after sweep: wait to process the rest of the output
)

// errClosed means that the process closed its stdout but did not exit.
var errClosed = errors.New("closed its stdout")

// run serves the process until nothing of it is left, and then closes over. patience limits one
// write to its stdin.
func (l *life) run(ctx context.Context, patience time.Duration) {
	defer close(l.over)
	var streams sync.WaitGroup
	heard := make(chan struct{})
	streams.Go(func() {
		if err := l.peer.out.Run(l.in, patience, func() { l.abort(TimedOut, child.ErrStalled) }); err != nil {
			l.silent()
		}
		l.in.Close() // the end of stdin asks the plugin to exit
	})
	streams.Go(func() {
		defer close(heard)
		l.listen(ctx)
	})
	exit, err := l.process.Wait()
	if err != nil {
		l.log.Warn("the plugin's output was lost", "error", err)
	}
	if !child.DoneWithin(heard, drainDelay) { // another process holds stdout, or the last output is still being read
		l.sweep()
		child.DoneWithin(heard, heardDelay)
	}
	l.end(Crashed, fmt.Errorf("the process ended: %s", child.ExitText(exit)))
	l.in.Close()
	l.out.Close()
	streams.Wait()
	l.calls.Wait()
	l.sweep()
}

// silent handles a failed write: either the process is exiting, or it closed its stdin, which is an
// error.
func (l *life) silent() {
	if !child.DoneWithin(l.process.Done(), exitDelay) {
		l.abort(Protocol, errors.New("closed its stdin"))
	}
}

// sweep ends processes that left the plugin's process group. It finds them by the mark in their
// environment, so it misses a process that has changed its environment.
func (l *life) sweep() {
	if l.mark == "" {
		return
	}
	if pids, err := proc.Sweep(l.mark); err != nil || len(pids) > 0 {
		l.log.Warn("processes of the plugin outlived it", "pids", pids, "error", err)
	}
}

// end makes current and later calls fail and revokes all grants. The first reason counts. Unless
// the code is Stopped, it reports the failure.
func (l *life) end(code Code, why error) {
	l.ending.Do(func() {
		l.asked = code == Stopped
		l.peer.end(l.fail(code, why))
		l.grants.revoke()
		if !l.asked {
			l.log.Warn("plugin failed", "code", code, "reason", why)
			l.ended(l)
		}
	})
}

// abort ends the process by force because of what the plugin did.
func (l *life) abort(code Code, why error) {
	l.end(code, why)
	l.process.Stop(why)
}

// stop asks the process to exit: with a shutdown message and the end of its stdin, then after
// patience with signals. Calls fail from the start. It returns when nothing is left, or soon after
// ctx ends.
func (l *life) stop(ctx context.Context, patience time.Duration) {
	l.tell("shutdown", struct{}{})
	l.end(Stopped, child.ErrShutDown)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-l.over:
		return
	case <-timer.C:
	case <-ctx.Done():
	}
	l.process.Stop(errors.New("did not exit in time"))
	<-l.over
}

// Reason returns why the process takes no more calls; nil: it works.
func (l *life) Reason() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.peer.ended
}

// report reports what a call changed in the workspace that could start programs: to the model, if it is a tool call, and in the plugin's log.
func (l *life) report(method, found string, g *grant) {
	if found == "" {
		return
	}
	l.log.Warn("a call of the plugin changed files that start programs", "method", method, "found", found)
	l.config.Output.Note(slog.LevelWarn, "lashd: "+method+": "+found)
	if g != nil {
		g.found = "\n" + found
	}
}

// Alive, Over, Began and Reason implement child.Life.
func (l *life) Alive() bool { return l.alive() }

func (l *life) Over() <-chan struct{} { return l.over }

func (l *life) Began() time.Time { return l.began }
