package engine

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"lashd/engine/background"
	"lashd/engine/monitor"
	"lashd/rpc/protocol"
)

const (
	minBatchDelay = 50 * time.Millisecond // lines that arrive within it share a commit
	maxBatchDelay = 10 * time.Second      // reached by a command that prints faster than lines are stored
)

// monitorWorker runs a monitor. One that is to be restarted is left to the next daemon, if this one stops.
func monitorWorker(spec protocol.MonitorSpec) worker {
	return func(ctx context.Context, w *work) *protocol.TaskOutcome {
		w.keepOnStop = spec.Restart
		row, err := w.sessionRow(ctx)
		if err != nil {
			return noSession(err)
		}
		t := w.now()
		lines, ended := background.NewLineBuffer(), make(chan struct{})
		var telling sync.WaitGroup
		telling.Go(func() { w.sendLines(lines, ended) })
		out := w.eng.commands.Watch(ctx, &t, row.Cwd, lines)
		close(ended)
		telling.Wait()
		return out
	}
}

// absIn is a directory as it is named in a session.
func absIn(cwd, dir string) string {
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(cwd, dir)
}

// sendLines tells the session of lines until the command has ended and all are told. A session that is slow holds up only its
// own monitor, and one that floods is listened to more seldom.
func (w *work) sendLines(lines *background.LineBuffer, ended <-chan struct{}) {
	h, delay := monitor.Output{}, minBatchDelay
	for over := false; !over; {
		select {
		case <-lines.Ready():
			over = waitFor(delay, ended)
		case <-ended:
			over = true
		}
		h.Lines, h.Dropped = lines.Take()
		if len(h.Lines) == 0 {
			continue
		}
		h.Number++
		if err := w.storeOutput(h); err != nil {
			w.cancel(&taskStop{by: "internal:session", reason: err.Error()})
			return
		}
		if delay = min(delay*2, maxBatchDelay); h.Dropped == 0 {
			delay = minBatchDelay
		}
	}
}

// waitFor waits, and tells whether that has come to an end.
func waitFor(delay time.Duration, ended <-chan struct{}) bool {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-ended:
		return true
	}
}

// storeOutput has the session take lines. It goes on trying as long as there is a session: what was heard was heard.
func (w *work) storeOutput(h monitor.Output) error {
	ctx := w.eng.actorContext()
	for {
		_, err := do(ctx, w.eng, w.owner(), func(ctx context.Context, st *state) (struct{}, error) {
			if !st.monitors.Hears(w.id, h) {
				return struct{}{}, nil
			}
			return struct{}{}, st.monitors.move(ctx, func(d *monitor.Draft) { d.Hear(w.id, h) })
		})
		if err == nil || isGone(err) || errors.Is(err, ErrShuttingDown) || ctx.Err() != nil {
			return err
		}
		if pause(ctx, reloadDelay) != nil {
			return context.Cause(ctx)
		}
	}
}
