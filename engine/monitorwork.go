package engine

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

	"lashd/engine/background"
	"lashd/engine/monitor"
	"lashd/rpc/protocol"
)

// monitorWorker returns the worker that runs a monitor's command and stores its lines. If the daemon stops and the
// spec asks for a restart, the task stays open and the next daemon runs the command again.
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
		telling.Go(func() {
			if err := monitor.Store(lines, ended, w.storeOutput); err != nil {
				w.cancel(&taskStop{by: "internal:session", reason: err.Error()})
			}
		})
		out := w.eng.commands.Watch(ctx, &t, &spec, row.Cwd, lines)
		close(ended)
		telling.Wait()
		return out
	}
}

// absIn returns the clean absolute path of dir, which a request may give relative to the session's directory cwd.
func absIn(cwd, dir string) string {
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(cwd, dir)
}

// storeOutput commits lines to the session, and retries until it succeeds, the session is gone, or the daemon
// stops. Output has a number, so lines whose commit succeeded without an answer are not stored twice.
func (w *work) storeOutput(h monitor.Output) error {
	ctx := w.eng.actorContext()
	for {
		_, err := do(ctx, w.eng, w.owner(), func(ctx context.Context, st *state) (struct{}, error) {
			if !st.monitors.Accepts(w.id, h) {
				return struct{}{}, nil
			}
			return struct{}{}, st.monitors.move(ctx, func(d *monitor.Draft) { d.Record(w.id, h) })
		})
		if err == nil || isGone(err) || errors.Is(err, ErrShuttingDown) || ctx.Err() != nil {
			return err
		}
		if pause(ctx, reloadDelay) != nil {
			return context.Cause(ctx)
		}
	}
}
