package daemon

import (
	"context"
	"fmt"
	"time"

	"lashd/cmd/internal/console"
	"lashd/rpc/protocol"
)

const (
	stopWait = time.Minute           // limit for a daemon to exit
	stopPoll = 50 * time.Millisecond // pause between two looks at its lock
)

// Stop stops the daemon that the link leads to, with the process id pid, and waits until it has exited. Turns that run continue at
// the next start. If another client has started a daemon since, next is its process id, else 0.
func (e *Environment) Stop(ctx context.Context, l *Link, pid int) (next int, err error) {
	if err := l.Call(ctx, "shutdown", protocol.ShutdownParams{Daemon: true}, nil); err != nil {
		return 0, err
	}
	progress := console.Begin(fmt.Sprintf("waiting until lashd (pid %d) has stopped", pid), "Ctrl-C leaves; it stops anyway")
	defer progress.End()
	ctx, cancel := context.WithTimeoutCause(ctx, stopWait, fmt.Errorf("lashd (pid %d) still runs after %s; its log is %s. To end it at once: kill -9 %d; no turn is lost", pid, stopWait, e.LogFile(), pid))
	defer cancel()
	for {
		held := e.holder()
		switch {
		case held == nil:
			return 0, nil
		case held.Pid != 0 && held.Pid != pid:
			return held.Pid, nil
		}
		select {
		case <-time.After(stopPoll):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}
