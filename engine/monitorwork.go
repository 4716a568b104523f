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
	monitorMoment    = 50 * time.Millisecond // lines that come within it are told of together
	maxMonitorMoment = 10 * time.Second      // of a command that floods
)

// watching runs a monitor. One that is to be restarted is left to the next daemon, if this one stops.
func watching(spec protocol.MonitorSpec) worker {
	return func(ctx context.Context, w *work) *protocol.TaskOutcome {
		w.keepOnStop = spec.Restart
		row, err := w.sessionRow(ctx)
		if err != nil {
			return noSession(err)
		}
		t := w.now()
		lines, ended := background.NewLineBuffer(), make(chan struct{})
		var telling sync.WaitGroup
		telling.Go(func() { w.tellLines(lines, ended) })
		out := w.eng.commands.Watch(ctx, &t, row.Cwd, lines)
		close(ended)
		telling.Wait()
		return out
	}
}

// placeIn is a directory as it is named in a session.
func placeIn(cwd, dir string) string {
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(cwd, dir)
}

// tellLines tells the session of lines until the command has ended and all are told. A session that is slow holds up only its
// own monitor, and one that floods is listened to more seldom.
func (w *work) tellLines(lines *background.LineBuffer, ended <-chan struct{}) {
	h, moment := monitor.Output{}, monitorMoment
	for over := false; !over; {
		select {
		case <-lines.Ready():
			over = waitFor(moment, ended)
		case <-ended:
			over = true
		}
		h.Lines, h.Dropped = lines.Take()
		if len(h.Lines) == 0 {
			continue
		}
		h.Number++
		if err := w.tellHeard(h); err != nil {
			w.cancel(&taskStop{by: "internal:session", reason: err.Error()})
			return
		}
		if moment = min(moment*2, maxMonitorMoment); h.Dropped == 0 {
			moment = monitorMoment
		}
	}
}

// waitFor waits, and tells whether that has come to an end.
func waitFor(moment time.Duration, ended <-chan struct{}) bool {
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-ended:
		return true
	}
}

// tellHeard has the session take lines. It goes on trying as long as there is a session: what was heard was heard.
func (w *work) tellHeard(h monitor.Output) error {
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
