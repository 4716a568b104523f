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
	"lashd/pluginloader/child"
)

// life is one run of the process, from its start until nothing is left of it.
type life struct {
	*peer
	config   *Config
	log      *slog.Logger
	heed     listener
	grants   *grants
	process  *proc.Process
	mark     string   // of its processes
	in, out  *os.File // our ends of its stdin and stdout
	calls    sync.WaitGroup
	busy     chan struct{} // has room for the calls that the plugin may make at once
	over     chan struct{} // closed when nothing is left
	began    time.Time
	refusals tally
	tells    tally
	tasks    atomic.Int32 // at which the process works by itself

	ending sync.Once
	ended  func(*life) // is told when it ends by itself
	asked  bool        // whether it was to end; good once over is closed
}

// listener hears what the plugin says by itself. Both are called in the order of the plugin's messages.
type listener interface {
	noted(ctx context.Context, l *life, m *message) error
	said(level slog.Level, text string)
}

const (
	exitDelay  = time.Second            // from the end of stdout to that of the process, if it ends
	drainDelay = 100 * time.Millisecond // for what is left in a pipe, until somebody else is taken to hold it
	heardDelay = 2 * time.Second        // for all that it has said to be heard, once nobody holds it
)

var errClosed = errors.New("has closed its stdout")

// run serves the life until nothing is left of it.
func (l *life) run(ctx context.Context, patience time.Duration) {
	defer close(l.over)
	var streams sync.WaitGroup
	heard := make(chan struct{})
	streams.Go(func() {
		if err := l.peer.out.Run(l.in, patience, func() { l.abort(TimedOut, child.ErrStalled) }); err != nil {
			l.silent()
		}
		l.in.Close() // the end of its stdin asks the plugin to end
	})
	streams.Go(func() {
		defer close(heard)
		l.listen(ctx)
	})
	exit, err := l.process.Wait()
	if err != nil {
		l.log.Warn("the plugin's output was lost", "error", err)
	}
	if !child.DoneWithin(heard, drainDelay) { // somebody holds its stdout, or what it has said last is still being heard
		l.sweep()
		child.DoneWithin(heard, heardDelay)
	}
	l.end(Crashed, fmt.Errorf("has ended: %s", child.ExitText(exit)))
	l.in.Close()
	l.out.Close()
	streams.Wait()
	l.calls.Wait()
	l.sweep()
}

// silent is what it means that the plugin cannot be written to: it ends, or it has closed its stdin.
func (l *life) silent() {
	if !child.DoneWithin(l.process.Done(), exitDelay) {
		l.abort(Protocol, errors.New("has closed its stdin"))
	}
}

// sweep ends what has left the process's group. A process that has lost its environment is not found.
func (l *life) sweep() {
	if l.mark == "" {
		return
	}
	if pids, err := proc.Sweep(l.mark); err != nil || len(pids) > 0 {
		l.log.Warn("processes of the plugin outlived it", "pids", pids, "error", err)
	}
}

// end fails all calls that wait, and those that come. The first reason counts.
func (l *life) end(code Code, why error) {
	l.ending.Do(func() {
		l.asked = code == Stopped
		l.peer.end(l.fail(code, why))
		l.grants.revoke()
		if !l.asked {
			l.log.Warn("the plugin has failed", "code", code, "reason", why)
			l.ended(l)
		}
	})
}

// abort ends the life because of what the plugin did, and the process with it.
func (l *life) abort(code Code, why error) {
	l.end(code, why)
	l.process.Stop(why)
}

// stop asks the process to end: by a word and the end of its stdin, then by signals. It returns when nothing is left, or soon
// after ctx is done.
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
	l.process.Stop(errors.New("does not end by itself"))
	<-l.over
}

// Reason is why the life has ended; nil: it has not.
func (l *life) Reason() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.peer.ended
}

// Alive, Over and Began are for the supervisor, as Reason is.
func (l *life) Alive() bool { return l.alive() }

func (l *life) Over() <-chan struct{} { return l.over }

func (l *life) Began() time.Time { return l.began }
