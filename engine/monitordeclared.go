package engine

import (
	"context"
	"errors"
	"maps"
	"slices"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// pollMonitors has plugins declare their monitors, if that was not done yet, and begins those that are armed.
func (st *state) pollMonitors(ctx context.Context) error {
	if _, err := st.openTools(st.row.Config); err != nil {
		return err
	}
	return st.beginArmed(ctx, true)
}

// beginArmed begins the monitors that are armed, perhaps without those of plugins.
func (st *state) beginArmed(ctx context.Context, declared bool) error {
	ids := st.monitors.waiting(declared)
	if len(ids) == 0 || st.eng.stopping() {
		return nil
	}
	return st.moveTasks(ctx, func(m *taskDraft) {
		for _, id := range ids {
			if err := m.run(id, protocol.TaskOrigin{}); err != nil {
				st.eng.Log.Error("a monitor is not begun", "session", st.id, "monitor", id, "error", err)
			}
		}
	})
}

// resumeMonitors begins those again that an earlier run of the daemon has cut off, and that want it.
func (st *state) resumeMonitors() {
	if !st.monitorsCutOff {
		return
	}
	st.monitorsCutOff = false
	var opened error
	if len(st.monitors.waiting(true)) > len(st.monitors.waiting(false)) {
		_, opened = st.openTools(st.row.Config)
	}
	if err := errors.Join(opened, st.beginArmed(st.ctx, opened == nil)); err != nil {
		st.eng.Log.Error("monitors are not begun again yet", "session", st.id, "error", err)
	}
}

// declareMonitors takes up what plugins declare: what is new is armed if it says so, what they say otherwise holds from the next
// run on. What they declare no more is stopped, and goes.
func (st *state) declareMonitors(plugins *plugin.Session) error {
	declared := map[string]bool{}
	return st.moveTasks(st.ctx, func(m *taskDraft) {
		for _, d := range plugins.Monitors() {
			declared[d.Spec.ID] = true
			m.declare(d)
		}
		if st.monitors == nil {
			return
		}
		for _, id := range slices.Sorted(maps.Keys(st.monitors.Entries)) {
			if e := st.monitors.Entries[id]; e.Plugin != "" && !declared[id] {
				m.forget(e)
			}
		}
	})
}

func (m *taskDraft) declare(d plugin.MonitorDeclaration) {
	e, known := m.st.monitors.get(d.Spec.ID)
	if known && sameMonitor(e.Spec, d.Spec) {
		return
	}
	m.watch().Revision++
	// One that an asker in a sandbox has asked for runs nothing by itself that is outside of it.
	held := m.st.row.Authority.Ceiling
	arms := d.Spec.ArmOn == protocol.ArmSession && (held == nil || !held.Sandboxed) && (!known || e.Spec.ArmOn != protocol.ArmSession)
	e.Spec, e.Plugin, e.Armed = d.Spec, d.Plugin, e.Armed || arms
	if !known {
		e.State = protocol.MonitorIdle
	}
	m.put(e)
}

func (m *taskDraft) forget(e monitor) {
	w := m.watch()
	w.Revision++
	if t, live := m.st.tasks[e.TaskID]; live {
		m.cancel(t, "internal:plugin", "the plugin does not declare it any more")
	}
	e.Armed, e.State, e.TaskID, e.Waking = false, protocol.MonitorStopped, "", ""
	m.put(e, protocol.MonitorUpdate{State: e.State, Message: "its plugin does not declare it any more"})
	delete(w.Entries, e.Spec.ID)
}
