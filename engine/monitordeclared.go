package engine

import (
	"context"

	"lashd/engine/monitor"
	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// pollMonitors opens the session's plugins, so that they declare their monitors, starts the armed monitors, and
// returns what look reads on the actor. It is for requests that read monitors: a client that polls thereby keeps
// them running.
func pollMonitors[T any](ctx context.Context, e *Engine, id protocol.SessionID, look func(*state) *T) (*T, error) {
	l, err := e.lend(ctx, id)
	if err != nil {
		return nil, err
	}
	defer l.release()
	return onState(l.owner, func(ctx context.Context, st *state) (*T, error) {
		if err := st.monitors.startArmed(ctx, true); err != nil {
			return nil, err
		}
		return look(st), nil
	})
}

// startArmed starts the armed monitors that do not run, in one commit. declared includes monitors that plugins
// declare; it must be false unless the plugins are open. It runs on the actor, and does nothing while the daemon
// stops.
func (ms sessionMonitors) startArmed(ctx context.Context, declared bool) error {
	ids := ms.Waiting(declared)
	if len(ids) == 0 || ms.st.eng.group.Closed() {
		return nil
	}
	return ms.move(ctx, func(d *monitor.Draft) {
		for _, id := range ids {
			d.Run(id, protocol.TaskOrigin{})
		}
	})
}

// resume restarts the monitors that an earlier run of the daemon cut off and whose spec asks for a restart. It
// runs on the actor after a load. If plugins declared some of them, it opens the plugins on another goroutine
// first; if that fails, only the other monitors restart.
func (ms sessionMonitors) resume() {
	if !ms.TakeInterrupted() {
		return
	}
	if len(ms.Waiting(true)) == len(ms.Waiting(false)) {
		ms.restartArmed(true)
		return
	}
	ms.st.eng.group.GoActor(func() {
		l, opened := ms.st.plugins.lend(ms.st.ctx, nil)
		defer l.release()
		if opened != nil {
			ms.st.eng.Log.Error("plugins that declare monitors did not open; their monitors are not restarted", "session", ms.st.id, "error", opened)
		}
		// An error means that this state was dropped: the next one restarts the monitors.
		_, _ = onState(ms.st, func(context.Context, *state) (struct{}, error) {
			ms.restartArmed(opened == nil)
			return struct{}{}, nil
		})
	})
}

// restartArmed is startArmed for callers that cannot return an error. The next poll or turn tries again.
func (ms sessionMonitors) restartArmed(declared bool) {
	if err := ms.startArmed(ms.st.ctx, declared); err != nil {
		ms.st.eng.Log.Error("monitors are not restarted yet; the next turn tries again", "session", ms.st.id, "error", err)
	}
}

// declare takes over the monitors that plugins declare, right after the plugins were opened. It runs on the actor.
// In a session that a sandboxed plugin created they are not armed: a command could run in a wider sandbox than the plugin's.
func (ms sessionMonitors) declare(plugins *plugin.Session) error {
	held := ms.st.row.Authority.Ceiling
	return ms.move(ms.st.ctx, func(d *monitor.Draft) { d.Declare(plugins.Monitors(), held == nil || !held.Sandboxed) })
}
