package engine

import (
	"context"

	"lashd/engine/authority"
	"lashd/engine/change"
	"lashd/engine/monitor"
	"lashd/engine/queue"
	"lashd/engine/task"
	"lashd/engine/task/live"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// sessionTasks are the live tasks of a session, with the state that commits their changes. Its
// methods run on the actor.
type sessionTasks struct {
	*live.Tasks
	st *state
}

// sessionMonitors are the monitors of a session, with the state that commits their changes. Its
// methods run on the actor.
type sessionMonitors struct {
	*monitor.Book
	st *state
}

// taskHost is the view of a session that its tasks and monitors have: it implements live.Host and
// monitor.Host.
type taskHost struct{ st *state }

// At implements live.Host. Workers belong to the engine, so a reloaded session finds the attempts
// that still run.
func (h taskHost) At(id protocol.TaskID) live.Attempt {
	if w := h.st.eng.workers.of(h.st.id, id); w != nil {
		return w
	}
	return nil
}

// Again implements live.Host: it creates the attempt that continues a task after a restart.
// Detached commands are only watched, never started again.
func (h taskHost) Again(t *protocol.Task) live.Attempt {
	if task.Detached(&t.Spec) {
		return h.st.eng.Tasks.newWork(t, watchDetached)
	}
	return h.st.eng.Tasks.newWork(t, nil)
}

// WakeCeiling implements live.Host: what the turn that a task wakes may do at most.
func (h taskHost) WakeCeiling(t *protocol.Task) *protocol.Ceiling {
	return h.st.eng.wakeCeiling(h.st.ctx, t, &h.st.row)
}

// Wake implements live.Host. A refused wake, for example because the queue is full, is logged.
func (h taskHost) Wake(c *change.Change, w queue.Wake) error {
	_, refused, err := h.st.queue.In(c).Wake(h.st.ctx, c, h.st.eng.store, w)
	if err == nil && refused != "" {
		h.st.eng.Log.Warn("a task cannot wake its session", "session", h.st.id, "source", w.Source, "because", refused)
	}
	return err
}

// Over implements live.Host: the commit that ends a task also updates its monitor and cancels the
// losers of a race.
func (h taskHost) Over(d *live.Draft, t protocol.Task) {
	h.st.monitors.In(d.Change()).RunOver(t)
	h.st.tasks.cancelRaceLosers(d, t)
}

// Moved implements live.Host: it makes waits for tasks look again.
func (h taskHost) Moved() { h.st.eng.tasksChanged.Notify() }

// Watch implements monitor.Host.
func (h taskHost) Watch(spec protocol.MonitorSpec) func(*protocol.Task) live.Attempt {
	return h.st.eng.Tasks.attempts(monitorWorker(spec))
}

// Dir implements monitor.Host.
func (h taskHost) Dir(name string) string { return absIn(h.st.row.Cwd, name) }

// Mode implements monitor.Host.
func (h taskHost) Mode() protocol.SandboxMode {
	return authority.SandboxOf(h.st.row.Config.Approval, h.st.row.Authority.Ceiling)
}

// Room implements monitor.Host: the number of bytes of wakes that fit into one turn.
func (h taskHost) Room() int { return roomForWakes(&h.st.row.Config) }

// loadTasks reads the session's live tasks. It starts nothing; wakeUp resumes them.
func (st *state) loadTasks() error {
	stored, err := st.eng.store.LiveTasks(st.ctx, st.key)
	st.tasks = sessionTasks{live.New(st.id, st.eng.incarnation, taskHost{st}, stored), st}
	st.monitors = sessionMonitors{monitor.New(st.id, taskHost{st}, st.tasks.Tasks, st.queue.Queue), st}
	return err
}

// move commits a change of tasks and monitors that f makes, and nothing else. If f changes nothing
// that is stored, it commits nothing and still runs what the change has to do afterwards.
func (ts sessionTasks) move(ctx context.Context, f func(*live.Draft)) error {
	c := ts.st.change(persistence.Commit{})
	f(ts.In(c))
	if len(c.Tasks) == 0 && c.Receipt == nil && !ts.st.monitors.In(c).Changed() {
		c.Land(persistence.Result{}) // nothing to store, for example a task that only begins to wait for a slot
		return nil
	}
	return ts.st.commit(ctx, c)
}

// move commits a change of monitors and of the tasks that run them, and nothing else.
func (ms sessionMonitors) move(ctx context.Context, f func(*monitor.Draft)) error {
	return ms.st.tasks.move(ctx, func(d *live.Draft) { f(ms.In(d.Change())) })
}

// wakeUp resumes tasks, monitors, rewinds and turns that an earlier daemon or an earlier state
// left. The actor calls it once before it serves functions.
func (st *state) wakeUp() {
	if err := st.tasks.move(st.ctx, (*live.Draft).Resume); err != nil {
		st.eng.Log.Error("cannot resume tasks", "session", st.id, "error", err)
	}
	st.monitors.resume()
	st.history.resumeRewinds()
	st.turns.startNext()
}
