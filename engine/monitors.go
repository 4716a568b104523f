package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"lashd/engine/queue"
	"lashd/engine/task"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// componentMonitors are a session's monitors.
const componentMonitors = "monitors"

// monitors are those of a session, as they are stored. They never change: others take their place, with the commit.
type monitors struct {
	Revision int64              `json:"revision"` // grows with each change but lines and wakes
	Sequence int64              `json:"sequence"` // of the newest update
	Runs     int64              `json:"runs"`     // how many there were, in all
	Entries  map[string]monitor `json:"entries"`
}

// monitor is a monitor and what only the engine knows of it.
type monitor struct {
	protocol.Monitor
	Waking string `json:"waking,omitempty"` // the source of its wake that nobody has acknowledged
	Heard  int64  `json:"heard,omitempty"`  // batches of lines of this run
	Unsaid int64  `json:"unsaid,omitempty"` // lines since the newest wake, that would have woken the session

	Ceiling *protocol.Ceiling `json:"ceiling,omitempty"` // of who started it: its wakes are held to that
}

// maxMonitorUpdates is how many updates wait for who asks for them.
const maxMonitorUpdates = 128

// watch are the monitors as they will be after the commit, to be changed.
func (m *taskDraft) watch() *monitors {
	if m.monitors == nil {
		next := monitors{}
		if m.st.monitors != nil {
			next = *m.st.monitors
		}
		next.Entries = maps.Clone(next.Entries)
		if next.Entries == nil {
			next.Entries = map[string]monitor{}
		}
		m.monitors = &next
	}
	return m.monitors
}

// keepMonitors puts the monitors into the commit.
func (m *taskDraft) keepMonitors() {
	next, updates := m.monitors, m.updates
	if next == nil {
		return
	}
	m.c.Component = append(m.c.Component, persistence.Component{Name: componentMonitors, Body: encode(next)})
	m.c.Then(func() {
		m.st.monitors = next
		all := append(slices.Clip(m.st.updates), updates...)
		m.st.updates = all[max(len(all)-maxMonitorUpdates, 0):]
	})
}

// put changes a monitor, and tells of it with what has come of it.
func (m *taskDraft) put(e monitor, updates ...protocol.MonitorUpdate) {
	w := m.watch()
	for i := range updates {
		w.Sequence++
		updates[i].Sequence, updates[i].MonitorID, updates[i].AtMs = w.Sequence, e.Spec.ID, now()
	}
	w.Entries[e.Spec.ID] = e
	m.updates = append(m.updates, updates...)
	shown := e.Monitor
	shown.WakeOutstanding = m.outstanding(e)
	m.c.TellOf(protocol.Event{Type: protocol.EventMonitorUpdate, Monitor: &shown, Updates: updates})
}

// outstanding tells whether a wake of a monitor is neither acknowledged, nor is a turn over that took it in, nor was it
// withdrawn.
func (m *taskDraft) outstanding(e monitor) bool {
	mine := func(w queue.Wake) bool { return w.Source == e.Waking }
	return e.Waking != "" && (slices.ContainsFunc(m.wakes, mine) || m.st.outstanding(e))
}

func (st *state) outstanding(e monitor) bool {
	mine := func(in protocol.QueuedInput) bool { return in.Source == e.Waking }
	return e.Waking != "" && slices.ContainsFunc(st.queue.Inputs(), mine)
}

// run begins a monitor. It is armed from then on.
func (m *taskDraft) run(id string, by protocol.TaskOrigin) error {
	w := m.watch()
	e := w.Entries[id]
	w.Runs++
	w.Revision++
	e.TaskID = protocol.TaskID(fmt.Sprintf("monitor:%s:%d", id, w.Runs))
	e.Armed, e.State, e.LastError, e.LastExitCode, e.Waking, e.Heard, e.Unsaid = true, protocol.MonitorRunning, "", nil, "", 0, 0
	spec := task.Watched(&e.Spec, placeIn(m.st.row.Cwd, e.Spec.Cwd))
	by.SessionID, by.Plugin, by.Ceiling = m.st.id, e.Plugin, e.Ceiling
	if _, err := m.start(e.TaskID, &spec, by, watching(e.Spec)); err != nil {
		return err
	}
	m.put(e)
	return nil
}

// runOver is what becomes of a monitor whose run is over.
func (m *taskDraft) runOver(t protocol.Task) {
	e, ok := m.watchedBy(t.ID)
	if !ok {
		return
	}
	m.watch().Revision++
	var told string
	e.State, told = endOfRun(t.Outcome)
	e.LastExitCode = t.Outcome.ExitCode
	if e.State == protocol.MonitorFailed {
		e.LastError = told
	}
	e.Waking = ""
	e.Armed = e.State == protocol.MonitorIdle && e.Armed && e.Spec.Restart
	if e.Armed {
		m.c.Then(func() { m.st.monitorsCutOff = true })
	}
	m.put(e, protocol.MonitorUpdate{State: e.State, Message: told})
}

// watchedBy is the monitor of which a task is the newest run.
func (m *taskDraft) watchedBy(id protocol.TaskID) (monitor, bool) {
	now := m.monitors
	if now == nil {
		now = m.st.monitors
	}
	return now.of(id)
}

func (w *monitors) of(id protocol.TaskID) (monitor, bool) {
	if w != nil {
		for _, e := range w.Entries {
			if e.TaskID == id {
				return e, true
			}
		}
	}
	return monitor{}, false
}

// endOfRun is what a monitor is after its run, and how that is told.
func endOfRun(o *protocol.TaskOutcome) (protocol.MonitorState, string) {
	switch {
	case o.Kind == protocol.TaskExited && *o.ExitCode == 0:
		return protocol.MonitorExited, "exited with code 0"
	case o.Kind == protocol.TaskExited:
		return protocol.MonitorFailed, fmt.Sprintf("exited with code %d", *o.ExitCode)
	case o.Kind == protocol.TaskSignal:
		return protocol.MonitorFailed, "ended by " + o.Signal
	case o.Kind == protocol.TaskStopped && o.By == task.TimeLimit:
		return protocol.MonitorFailed, "stopped: " + o.Message
	case o.Kind == protocol.TaskStopped:
		return protocol.MonitorStopped, strings.TrimSuffix("stopped by "+o.By+": "+o.Message, ": ")
	case o.Kind == protocol.TaskLost:
		return protocol.MonitorIdle, o.Evidence.Reason
	}
	return protocol.MonitorFailed, strings.TrimSpace(o.Code + " " + o.Message)
}

// disarmed forgets the run of a monitor that is not there any more: of another session, of another time.
func (e monitor) disarmed() monitor {
	if e.State == protocol.MonitorRunning {
		e.State, e.Armed = protocol.MonitorIdle, e.Armed && e.Spec.Restart
	}
	e.TaskID, e.Waking, e.Heard, e.Unsaid = "", "", 0, 0
	return e
}

// ownMonitors makes monitors that were just loaded the session's. A run that is none of its tasks was that of the session where
// this one began.
func (st *state) ownMonitors() {
	if st.monitors == nil {
		return
	}
	for id, e := range st.monitors.Entries {
		if _, live := st.tasks[e.TaskID]; e.State == protocol.MonitorRunning && !live {
			st.monitors.Entries[id] = e.disarmed()
		}
	}
}

// restoreMonitors makes the monitors those of a snapshot. What runs is stopped; no sequence and no run comes twice.
func (m *taskDraft) restoreMonitors(then *monitors) {
	if m.st.monitors == nil && then == nil {
		return
	}
	was := *m.watch()
	next := &monitors{Revision: was.Revision, Sequence: was.Sequence, Runs: was.Runs, Entries: map[string]monitor{}}
	if then != nil {
		next.Revision, next.Sequence, next.Runs = max(was.Revision, then.Revision), max(was.Sequence, then.Sequence), max(was.Runs, then.Runs)
		for id, e := range then.Entries {
			next.Entries[id] = e.disarmed()
		}
	}
	next.Revision++
	m.monitors = next
	for _, t := range m.st.liveTasks() {
		if _, mine := was.of(t.ID); mine {
			m.cancel(t, "internal:restore", "the session is restored to a snapshot")
		}
	}
}

// active is how many monitors run.
func (w *monitors) active() (n int) {
	if w == nil {
		return 0
	}
	for _, e := range w.Entries {
		if e.State == protocol.MonitorRunning {
			n++
		}
	}
	return n
}

// waiting are the ids of monitors that are armed and do not run, perhaps without those of plugins.
func (w *monitors) waiting(declared bool) (ids []string) {
	if w == nil {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(w.Entries)) {
		if e := w.Entries[id]; e.Armed && e.State != protocol.MonitorRunning && (declared || e.Plugin == "") {
			ids = append(ids, id)
		}
	}
	return ids
}
