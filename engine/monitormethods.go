package engine

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"

	"lashd/engine/task"
	"lashd/internal/pathresolve"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// MonitorRunningError means that a monitor runs with another spec than the one it is to be started with.
type MonitorRunningError struct{ ID string }

func (e *MonitorRunningError) Error() string {
	return "monitor " + e.ID + " runs with another spec; stop it first, or choose another id"
}

func noMonitor(id string) error { return &persistence.NotFoundError{What: "monitor", ID: id} }

// StartMonitor makes a monitor durable and begins it. One that runs already is not begun again.
func (e *Engine) StartMonitor(ctx context.Context, client protocol.ClientID, p *protocol.MonitorStartParams) (*protocol.MonitorResult, error) {
	return e.startMonitor(ctx, protocol.TaskOrigin{ClientID: client}, p)
}

func (e *Engine) startMonitor(ctx context.Context, by protocol.TaskOrigin, p *protocol.MonitorStartParams) (*protocol.MonitorResult, error) {
	if p.Spec.Command != "" {
		if wrong, ok := errors.AsType[*task.SpecError](task.CheckMonitor(&p.Spec)); ok {
			return nil, bad("/spec/"+wrong.Field, "%s", wrong.Reason)
		}
	} else if !bytes.Equal(encode(p.Spec), encode(protocol.MonitorSpec{ID: p.Spec.ID})) {
		return nil, bad("/spec/command", "is missing; without one only the monitorId is given, of a monitor that there is")
	}
	return mutate(ctx, e, p.SessionID, "monitor/start", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.MonitorResult, error) {
		next, err := st.wanted(p.Spec)
		if err != nil {
			return nil, err
		}
		return st.startMonitor(ctx, next, by, rc)
	})
}

// wanted is the monitor that somebody wants to start.
func (st *state) wanted(spec protocol.MonitorSpec) (e monitor, err error) {
	if spec.Command == "" {
		if _, err := st.openTools(st.row.Config); err != nil { // a plugin may declare it
			return e, err
		}
	}
	e, known := st.monitors.get(spec.ID)
	switch {
	case spec.Command == "" && !known:
		return e, noMonitor(spec.ID)
	case spec.Command == "":
		spec = e.Spec
	case !known && st.monitors.count() >= task.MaxMonitors:
		return e, bad("/spec/monitorId", "is one too many: a session has at most %d monitors", task.MaxMonitors)
	}
	spec = task.Monitor(spec)
	if e.State == protocol.MonitorRunning && !sameMonitor(spec, e.Spec) {
		return e, &MonitorRunningError{spec.ID}
	}
	e.Spec = spec
	return e, st.checkCwd(spec.Cwd)
}

// checkCwd refuses early what a command would not be started in. Whoever starts it opens the directory, and starts it in what was opened.
func (st *state) checkCwd(name string) error {
	at := placeIn(st.row.Cwd, name)
	dir, _, err := pathresolve.OpenWorkdir(st.row.Cwd, at)
	if err != nil {
		return bad("/spec/cwd", "%.200q is no directory that the session may run a command in: %v", at, err)
	}
	return dir.Close()
}

func sameMonitor(a, b protocol.MonitorSpec) bool { return bytes.Equal(encode(a), encode(b)) }

func (st *state) startMonitor(ctx context.Context, e monitor, by protocol.TaskOrigin, rc receipt) (*protocol.MonitorResult, error) {
	if e.State == protocol.MonitorRunning {
		r := &protocol.MonitorResult{Monitor: st.shown(e), Existing: true, Seq: st.row.Seq}
		return r, st.remembered(ctx, rc, r)
	}
	if st.eng.stopping() {
		return nil, ErrShuttingDown
	}
	c := st.change(persistence.Commit{})
	m := st.tasksIn(c)
	e.Ceiling = by.Ceiling
	m.watch().Entries[e.Spec.ID] = e
	if err := m.run(e.Spec.ID, by); err != nil {
		c.Drop()
		return nil, err
	}
	r := &protocol.MonitorResult{Monitor: m.monitors.Entries[e.Spec.ID].Monitor, Seq: c.Seq()}
	c.Receipt = rc.with(r)
	return r, st.commit(ctx, c)
}

// StopMonitor has a monitor end, with all that its command has started, and waits for that. It is not armed any more.
func (e *Engine) StopMonitor(ctx context.Context, client protocol.ClientID, p *protocol.MonitorStopParams) (*protocol.MonitorResult, error) {
	return e.stopMonitor(ctx, asker(client), p)
}

func (e *Engine) stopMonitor(ctx context.Context, by string, p *protocol.MonitorStopParams) (*protocol.MonitorResult, error) {
	r, err := mutate(ctx, e, p.SessionID, "monitor/stop", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.MonitorResult, error) {
		return st.stopMonitor(ctx, by, p, rc)
	})
	if err != nil {
		return nil, err
	}
	if w := e.workers.of(p.SessionID, r.Monitor.TaskID); w != nil {
		select {
		case <-w.ended:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return do(ctx, e, p.SessionID, func(_ context.Context, st *state) (*protocol.MonitorResult, error) {
		if now, ok := st.monitors.get(p.MonitorID); ok && now.TaskID == r.Monitor.TaskID {
			r.Monitor, r.Seq = st.shown(now), st.row.Seq
		}
		return r, nil
	})
}

func (st *state) stopMonitor(ctx context.Context, by string, p *protocol.MonitorStopParams, rc receipt) (*protocol.MonitorResult, error) {
	e, known := st.monitors.get(p.MonitorID)
	if !known {
		return nil, noMonitor(p.MonitorID)
	}
	r := &protocol.MonitorResult{Monitor: st.shown(e), Seq: st.row.Seq}
	t, live := st.tasks[e.TaskID]
	if !live && !e.Armed {
		return r, st.remembered(ctx, rc, r)
	}
	c := st.change(persistence.Commit{})
	m := st.tasksIn(c)
	m.watch().Revision++
	e.Armed = false
	if live {
		m.put(e)
		m.cancel(t, by, p.Reason)
	} else {
		e.State = protocol.MonitorStopped
		m.put(e, protocol.MonitorUpdate{State: e.State, Message: "stopped by " + by})
	}
	r.Monitor = m.monitors.Entries[p.MonitorID].Monitor
	r.Seq = c.Seq()
	c.Receipt = rc.with(r)
	return r, st.commit(ctx, c)
}

// Monitors lists the monitors of a session. Those that are armed are begun.
func (e *Engine) Monitors(ctx context.Context, p *protocol.SessionParams) (*protocol.MonitorStatusResult, error) {
	return do(ctx, e, p.SessionID, func(ctx context.Context, st *state) (*protocol.MonitorStatusResult, error) {
		if err := st.pollMonitors(ctx); err != nil {
			return nil, err
		}
		r := &protocol.MonitorStatusResult{ActiveCount: st.monitors.active(), Data: []protocol.Monitor{}}
		if st.monitors == nil {
			return r, nil
		}
		r.Revision = st.monitors.Revision
		for _, id := range slices.Sorted(maps.Keys(st.monitors.Entries)) {
			r.Data = append(r.Data, st.shown(st.monitors.Entries[id]))
		}
		return r, nil
	})
}

// MonitorUpdates takes what was told of the monitors of a session and was not taken before. Those that are armed are begun.
func (e *Engine) MonitorUpdates(ctx context.Context, p *protocol.SessionParams) (*protocol.MonitorUpdatesResult, error) {
	return do(ctx, e, p.SessionID, func(ctx context.Context, st *state) (*protocol.MonitorUpdatesResult, error) {
		if err := st.pollMonitors(ctx); err != nil {
			return nil, err
		}
		r := &protocol.MonitorUpdatesResult{ActiveCount: st.monitors.active(), Events: list(st.updates)}
		if st.monitors != nil {
			r.Revision = st.monitors.Revision
		}
		st.updates = nil
		return r, nil
	})
}

// AckMonitors takes notice of wakes: the next line of those monitors wakes the session again.
func (e *Engine) AckMonitors(ctx context.Context, p *protocol.MonitorAckParams) (*protocol.SeqResult, error) {
	return mutate(ctx, e, p.SessionID, "monitor/ackWake", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.SeqResult, error) {
		r := &protocol.SeqResult{Seq: st.row.Seq}
		for _, id := range p.MonitorIDs {
			if _, known := st.monitors.get(id); !known {
				return nil, noMonitor(id)
			}
		}
		err := st.moveTasks(ctx, func(m *taskDraft) {
			m.c.Receipt = rc.with(r)
			for _, id := range p.MonitorIDs {
				if e, _ := st.monitors.get(id); e.Waking != "" {
					e.Waking = ""
					m.watch().Entries[id] = e
				}
			}
		})
		return r, err
	})
}

// shown is a monitor as clients see it.
func (st *state) shown(e monitor) protocol.Monitor {
	e.WakeOutstanding = st.outstanding(e)
	return e.Monitor
}

func (w *monitors) get(id string) (monitor, bool) {
	if w == nil {
		return monitor{}, false
	}
	e, ok := w.Entries[id]
	return e, ok
}

func (w *monitors) count() int {
	if w == nil {
		return 0
	}
	return len(w.Entries)
}
