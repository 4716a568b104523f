package monitor

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"lashd/engine/approval"
	"lashd/engine/authority"
	"lashd/engine/change"
	"lashd/engine/plugin"
	"lashd/engine/task"
	"lashd/engine/task/live"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Draft collects what one change does to a session's monitors. The Book gets the new state
// when the change is committed (Land).
type Draft struct {
	of *Book
	c  *change.Change
	// next is the state after the change. Nil: the monitors stay as they are.
	next    *Monitors
	updates []protocol.MonitorUpdate
	cutOff  bool
}

// In returns the draft of the monitors in a change, and creates it on the first call.
func (b *Book) In(c *change.Change) *Draft {
	return change.DraftOf(c, b, func() *Draft { return &Draft{of: b, c: c} })
}

// Changed reports whether the change modifies monitors.
func (d *Draft) Changed() bool { return d.next != nil }

// Find returns a monitor as it will be after the change.
func (d *Draft) Find(id string) Entry { return d.edit().Entries[id] }

func (d *Draft) tasks() *live.Draft { return d.of.tasks.In(d.c) }

// edit returns the monitors after the change, for modification. It copies the stored ones
// on the first call.
func (d *Draft) edit() *Monitors {
	if d.next == nil {
		next := Monitors{}
		if d.of.stored != nil {
			next = *d.of.stored
		}
		next.Entries = maps.Clone(next.Entries)
		if next.Entries == nil {
			next.Entries = map[string]Entry{}
		}
		d.next = &next
	}
	return d.next
}

// Finish implements change.Draft: it adds the monitors to the commit.
func (d *Draft) Finish(c *change.Change) error {
	if d.next != nil {
		c.Component = append(c.Component, persistence.Component{Name: Component, Body: encode(d.next)})
	}
	return nil
}

// Land implements change.Draft: it makes the drafted monitors the stored ones.
func (d *Draft) Land() {
	if d.next == nil {
		return
	}
	d.of.keep(d.updates)
	d.of.stored, d.of.cutOff = d.next, d.of.cutOff || d.cutOff
}

// put stores a monitor and notifies clients of it, together with its updates. It numbers
// the updates.
func (d *Draft) put(e Entry, updates ...protocol.MonitorUpdate) {
	w := d.edit()
	for i := range updates {
		w.Sequence++
		updates[i].Sequence, updates[i].MonitorID, updates[i].AtMs = w.Sequence, e.Spec.ID, time.Now().UnixMilli()
	}
	w.Entries[e.Spec.ID] = e
	d.updates = append(d.updates, updates...)
	shown := e.Monitor
	shown.WakeOutstanding = d.outstanding(e)
	d.c.TellOf(protocol.Event{Type: protocol.EventMonitorUpdate, Monitor: &shown, Updates: updates})
}

// outstanding is Book.outstanding, including the wakes of this change.
func (d *Draft) outstanding(e Entry) bool {
	return e.Waking != "" && d.tasks().Wakes(e.Waking) || d.of.outstanding(e)
}

// Start adds a monitor, or replaces the one with its id, and runs it. by.Ceiling limits the
// authority of its wakes.
func (d *Draft) Start(e Entry, by protocol.TaskOrigin) {
	e.Ceiling = by.Ceiling
	d.edit().Entries[e.Spec.ID] = e
	d.Run(e.Spec.ID, by)
}

// confined returns the spec of a plugin's monitor with a sandbox that is no wider than the session's. In one, it reaches no hosts: its
// declaration was not judged as a call.
func (d *Draft) confined(spec protocol.MonitorSpec, plugin string) protocol.MonitorSpec {
	if plugin == "" {
		return spec
	}
	spec.Sandbox = authority.Narrowest(d.of.host.Mode(), spec.Sandbox)
	if spec.Sandbox.Confines() {
		spec.Network = nil
	}
	return spec
}

// Run starts a run of a monitor and arms it. by is the client, session or plugin that asked
// for it.
func (d *Draft) Run(id string, by protocol.TaskOrigin) {
	w := d.edit()
	e := w.Entries[id]
	w.Runs++
	w.Revision++
	e.TaskID = protocol.TaskID(fmt.Sprintf("monitor:%s:%d", id, w.Runs))
	e.Armed, e.State, e.LastError, e.LastExitCode, e.Waking, e.LastBatch, e.Unreported = true, protocol.MonitorRunning, "", nil, "", 0, 0
	e.Spec = d.confined(e.Spec, e.Plugin)
	spec := task.Watched(&e.Spec, d.of.host.Dir(e.Spec.Cwd))
	by.SessionID, by.Plugin, by.Ceiling = d.of.session, e.Plugin, e.Ceiling
	if e.Plugin != "" && !e.Spec.Sandbox.Confines() {
		d.c.TellOf(protocol.Event{Type: protocol.EventAuditRecorded, Audit: approval.Declared(&e.Monitor, spec.Command)})
	}
	d.tasks().Start(e.TaskID, &spec, by, d.of.host.Watch(e.Spec))
	d.put(e)
}

// Stop disarms a monitor and cancels its run, if any. The monitor is stopped once the run
// has ended.
func (d *Draft) Stop(e Entry, by, reason string) {
	d.edit().Revision++
	e.Armed = false
	if t, runs := d.of.tasks.Find(e.TaskID); runs {
		d.put(e)
		d.tasks().Cancel(t, by, reason)
		return
	}
	e.State = protocol.MonitorStopped
	d.put(e, protocol.MonitorUpdate{State: e.State, Message: "stopped by " + by})
}

// RunOver updates the monitor whose run has ended. It does nothing for tasks that are not
// monitors.
func (d *Draft) RunOver(t protocol.Task) {
	now := d.next
	if now == nil {
		now = d.of.stored
	}
	e, ok := now.runBy(t.ID)
	if !ok {
		return
	}
	d.edit().Revision++
	var message string
	e.State, message = endOfRun(t.Outcome)
	e.LastExitCode = t.Outcome.ExitCode
	if e.State == protocol.MonitorFailed {
		e.LastError = message
	}
	e.Waking = ""
	e.Armed = e.State == protocol.MonitorIdle && e.Armed && e.Spec.Restart
	d.cutOff = d.cutOff || e.Armed
	d.put(e, protocol.MonitorUpdate{State: e.State, Message: message})
}

// endOfRun returns the state of a monitor after its run, and the message of the update.
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

// Ack acknowledges the wakes of monitors. Their next line wakes the session again.
func (d *Draft) Ack(ids []string) {
	for _, id := range ids {
		if e, _ := d.of.Find(id); e.Waking != "" {
			e.Waking = ""
			d.edit().Entries[id] = e
		}
	}
}

// Declare updates the monitors of plugins to the given declarations. A new monitor is armed
// if it declares so and mayArm is set. A changed spec applies from the next run. Monitors
// that are no longer declared are stopped and removed.
func (d *Draft) Declare(all []plugin.MonitorDeclaration, mayArm bool) {
	known := map[string]bool{}
	for _, m := range all {
		known[m.Spec.ID] = true
		d.declare(m, mayArm)
	}
	if d.of.stored == nil {
		return
	}
	for _, e := range d.of.stored.sorted() {
		if e.Plugin != "" && !known[e.Spec.ID] {
			d.remove(e)
		}
	}
}

// declare adds or updates one declared monitor.
func (d *Draft) declare(m plugin.MonitorDeclaration, mayArm bool) {
	e, known := d.of.Find(m.Spec.ID)
	m.Spec = d.confined(m.Spec, m.Plugin)
	if known && Same(e.Spec, m.Spec) {
		return
	}
	d.edit().Revision++
	arms := m.Spec.ArmOn == protocol.ArmSession && mayArm && (!known || e.Spec.ArmOn != protocol.ArmSession)
	e.Spec, e.Plugin, e.Armed = m.Spec, m.Plugin, e.Armed || arms
	if !known {
		e.State = protocol.MonitorIdle
	}
	d.put(e)
}

// remove stops and deletes a monitor that its plugin no longer declares.
func (d *Draft) remove(e Entry) {
	w := d.edit()
	w.Revision++
	if t, runs := d.of.tasks.Find(e.TaskID); runs {
		d.tasks().Cancel(t, "internal:plugin", "the plugin no longer declares this monitor")
	}
	e.Armed, e.State, e.TaskID, e.Waking = false, protocol.MonitorStopped, "", ""
	d.put(e, protocol.MonitorUpdate{State: e.State, Message: "its plugin no longer declares it"})
	delete(w.Entries, e.Spec.ID)
}

// Restore replaces the monitors by those of a snapshot and stops all runs. The counters
// never decrease, so sequence numbers and task ids stay unique.
func (d *Draft) Restore(then *Monitors) {
	if d.of.stored == nil && then == nil {
		return
	}
	was := *d.edit()
	next := &Monitors{Revision: was.Revision, Sequence: was.Sequence, Runs: was.Runs, Entries: map[string]Entry{}}
	if then != nil {
		next.Revision, next.Sequence, next.Runs = max(was.Revision, then.Revision), max(was.Sequence, then.Sequence), max(was.Runs, then.Runs)
		for id, e := range then.Entries {
			next.Entries[id] = e.disarmed()
		}
	}
	next.Revision++
	d.next = next
	for _, t := range d.of.tasks.All() {
		if _, mine := was.runBy(t.ID); mine {
			d.tasks().Cancel(t, "internal:restore", "the session was restored to a snapshot")
		}
	}
}
