package engine

import (
	"bytes"
	"context"
	"errors"

	"lashd/engine/monitor"
	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/engine/task"
	"lashd/engine/task/live"
	"lashd/internal/pathresolve"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Monitors is the API of a session's monitors, for clients and, through monitorService, for plugins. A monitor
// runs as a task; its state and that of its task change in the same commits.
type Monitors struct{ eng *Engine }

// MonitorRunningError means that the monitor already runs with another spec. Nothing was changed; the client may
// stop the monitor and start it again.
type MonitorRunningError struct{ ID string }

func (e *MonitorRunningError) Error() string {
	return "monitor " + e.ID + " runs with another spec; stop it first, or choose another id"
}

// noMonitor is the error for an unknown monitor id.
func noMonitor(id string) error { return &persistence.NotFoundError{What: "monitor", ID: id} }

// Start stores a monitor and starts it. If it already runs with the same spec, nothing changes and Existing is
// set; with another spec, Start fails with *MonitorRunningError. A spec with only an id starts a known monitor,
// which a plugin may declare.
func (ms *Monitors) Start(ctx context.Context, client protocol.ClientID, p *protocol.MonitorStartParams) (*protocol.MonitorResult, error) {
	return ms.start(ctx, protocol.TaskOrigin{ClientID: client}, p)
}

// start is Start with the origin that the monitor's task records; its ceiling limits what wakes of the monitor may
// do.
func (ms *Monitors) start(ctx context.Context, by protocol.TaskOrigin, p *protocol.MonitorStartParams) (*protocol.MonitorResult, error) {
	if p.Spec.Command != "" {
		if wrong, ok := errors.AsType[*task.SpecError](task.CheckMonitor(&p.Spec)); ok {
			return nil, param.Bad("/spec/"+wrong.Field, "%s", wrong.Reason)
		}
	} else if !bytes.Equal(encode(p.Spec), encode(protocol.MonitorSpec{ID: p.Spec.ID})) {
		return nil, param.Bad("/spec/command", "is missing; omit it only to start an existing monitor, and then set only monitorId")
	}
	if p.Spec.Command == "" { // a plugin may declare it
		l, err := ms.eng.lend(ctx, p.SessionID)
		if err != nil {
			return receipt.Repeated[protocol.MonitorResult](ctx, ms.eng.store, "monitor/start", p.Key(), p, err)
		}
		l.release()
	}
	return mutate(ctx, ms.eng, p.SessionID, "monitor/start", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.MonitorResult, error) {
		next, err := st.monitors.resolveSpec(p.Spec)
		if err != nil {
			return nil, err
		}
		return st.monitors.start(ctx, next, by, rc)
	})
}

// resolveSpec returns the monitor that a start request describes, with defaults filled in. A spec without a
// command stands for a known monitor. It refuses a monitor over the limit, a running one with another spec, and a
// directory in which no command may run.
func (ms sessionMonitors) resolveSpec(spec protocol.MonitorSpec) (e monitor.Entry, err error) {
	e, known := ms.Find(spec.ID)
	switch {
	case spec.Command == "" && !known:
		return e, noMonitor(spec.ID)
	case spec.Command == "":
		spec = e.Spec
	case !known && ms.Count() >= task.MaxMonitors:
		return e, param.Bad("/spec/monitorId", "is over the limit of %d monitors for a session; reuse the id of a monitor that you no longer need", task.MaxMonitors)
	}
	spec = task.Monitor(spec)
	if e.State == protocol.MonitorRunning && !monitor.Same(spec, e.Spec) {
		return e, &MonitorRunningError{spec.ID}
	}
	e.Spec = spec
	return e, ms.checkCwd(spec.Cwd)
}

// checkCwd reports early that a command could not start in a directory. The check is only a courtesy: the
// directory is opened again at the start, and the command runs in what was opened then.
func (ms sessionMonitors) checkCwd(name string) error {
	at := absIn(ms.st.row.Cwd, name)
	dir, _, err := pathresolve.OpenWorkdir(ms.st.row.Cwd, at)
	if err != nil {
		return param.Bad("/spec/cwd", "%.200q is not a directory in which the session may run a command: %v", at, err)
	}
	return dir.Close()
}

// start commits the start of a monitor with the receipt of the request. It runs on the actor; the task's process
// starts after the commit.
func (ms sessionMonitors) start(ctx context.Context, e monitor.Entry, by protocol.TaskOrigin, rc receipt.Request) (*protocol.MonitorResult, error) {
	if e.State == protocol.MonitorRunning {
		r := &protocol.MonitorResult{Monitor: ms.Shown(e), Existing: true, Seq: ms.st.row.Seq}
		return r, ms.st.storeReceipt(ctx, rc, r)
	}
	if ms.st.eng.group.Closed() {
		return nil, ErrShuttingDown
	}
	c := ms.st.change(persistence.Commit{})
	d := ms.In(c)
	d.Start(e, by)
	r := &protocol.MonitorResult{Monitor: d.Find(e.Spec.ID).Monitor, Seq: c.Seq()}
	c.Receipt = rc.With(r)
	return r, ms.st.commit(ctx, c)
}

// Stop stops a monitor with all processes of its command, disarms it, and waits until its task has ended or ctx is
// done. The stop is durable before the wait: it happens even if the caller gives up. A monitor that does not run
// is only disarmed.
func (ms *Monitors) Stop(ctx context.Context, client protocol.ClientID, p *protocol.MonitorStopParams) (*protocol.MonitorResult, error) {
	return ms.stop(ctx, asker(client), p)
}

// stop is Stop for a named requester, which the task's outcome records. After the wait it reads the monitor again,
// unless another run has started since.
func (ms *Monitors) stop(ctx context.Context, by string, p *protocol.MonitorStopParams) (*protocol.MonitorResult, error) {
	r, err := mutate(ctx, ms.eng, p.SessionID, "monitor/stop", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.MonitorResult, error) {
		return st.monitors.stop(ctx, by, p, rc)
	})
	if err != nil {
		return nil, err
	}
	if w := ms.eng.workers.of(p.SessionID, r.Monitor.TaskID); w != nil {
		select {
		case <-w.ended:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return do(ctx, ms.eng, p.SessionID, func(_ context.Context, st *state) (*protocol.MonitorResult, error) {
		if now, ok := st.monitors.Find(p.MonitorID); ok && now.TaskID == r.Monitor.TaskID {
			r.Monitor, r.Seq = st.monitors.Shown(now), st.row.Seq
		}
		return r, nil
	})
}

// stop commits the stop of a monitor with the receipt of the request. It runs on the actor and does not wait for
// the process.
func (ms sessionMonitors) stop(ctx context.Context, by string, p *protocol.MonitorStopParams, rc receipt.Request) (*protocol.MonitorResult, error) {
	e, known := ms.Find(p.MonitorID)
	if !known {
		return nil, noMonitor(p.MonitorID)
	}
	r := &protocol.MonitorResult{Monitor: ms.Shown(e), Seq: ms.st.row.Seq}
	if _, runs := ms.st.tasks.Find(e.TaskID); !runs && !e.Armed {
		return r, ms.st.storeReceipt(ctx, rc, r)
	}
	c := ms.st.change(persistence.Commit{})
	d := ms.In(c)
	d.Stop(e, by, p.Reason)
	r.Monitor, r.Seq = d.Find(p.MonitorID).Monitor, c.Seq()
	c.Receipt = rc.With(r)
	return r, ms.st.commit(ctx, c)
}

// Status lists the monitors of a session and starts the armed ones.
func (ms *Monitors) Status(ctx context.Context, p *protocol.SessionParams) (*protocol.MonitorStatusResult, error) {
	return pollMonitors(ctx, ms.eng, p.SessionID, func(st *state) *protocol.MonitorStatusResult {
		return &protocol.MonitorStatusResult{ActiveCount: st.monitors.Active(), Revision: st.monitors.Revision(), Data: st.monitors.List()}
	})
}

// Updates returns the updates that no earlier call has returned, and starts the armed monitors. Updates are kept
// in memory only, and the oldest are dropped when there are too many.
func (ms *Monitors) Updates(ctx context.Context, p *protocol.SessionParams) (*protocol.MonitorUpdatesResult, error) {
	return pollMonitors(ctx, ms.eng, p.SessionID, func(st *state) *protocol.MonitorUpdatesResult {
		return &protocol.MonitorUpdatesResult{
			ActiveCount: st.monitors.Active(), Revision: st.monitors.Revision(), Events: list(st.monitors.TakeUpdates()),
		}
	})
}

// Ack acknowledges wakes: the next line of these monitors wakes the session again. It fails, and changes nothing,
// if one of the ids is unknown.
func (ms *Monitors) Ack(ctx context.Context, p *protocol.MonitorAckParams) (*protocol.SeqResult, error) {
	return mutate(ctx, ms.eng, p.SessionID, "monitor/ackWake", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.SeqResult, error) {
		r := &protocol.SeqResult{Seq: st.row.Seq}
		for _, id := range p.MonitorIDs {
			if _, known := st.monitors.Find(id); !known {
				return nil, noMonitor(id)
			}
		}
		return r, st.tasks.move(ctx, func(d *live.Draft) {
			d.Change().Receipt = rc.With(r)
			st.monitors.In(d.Change()).Ack(p.MonitorIDs)
		})
	})
}
