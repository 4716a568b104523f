package live

import (
	"slices"
	"time"

	"lashd/engine/change"
	"lashd/engine/queue"
	"lashd/engine/task"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Draft collects the task events of one change and the wakes that they cause. Find and
// Changed see the tasks as they will be; Tasks itself changes only when the change lands.
type Draft struct {
	of    *Tasks
	c     *change.Change
	tasks map[protocol.TaskID]protocol.Task
	// begun has the attempts that start once the change is stored.
	begun map[protocol.TaskID]Attempt
	wakes []queue.Wake
}

// In returns the draft of the tasks in a change, and creates it on the first call.
func (ts *Tasks) In(c *change.Change) *Draft {
	return change.DraftOf(c, ts, func() *Draft {
		return &Draft{of: ts, c: c, tasks: map[protocol.TaskID]protocol.Task{}, begun: map[protocol.TaskID]Attempt{}}
	})
}

// Change returns the change to which the draft belongs.
func (d *Draft) Change() *change.Change { return d.c }

// Changed returns a task if the change creates or changes it.
func (d *Draft) Changed(id protocol.TaskID) (protocol.Task, bool) {
	t, ok := d.tasks[id]
	return t, ok
}

// Find returns a task as it will be after the change. It knows live tasks and those of the
// change.
func (d *Draft) Find(id protocol.TaskID) (protocol.Task, bool) {
	if t, ok := d.tasks[id]; ok {
		return t, true
	}
	return d.of.Find(id)
}

// Add applies an event to a task: it stores the event, notifies clients, and queues the
// wake that the event causes. A final event also ends the parts of the task. ok is false if
// the event is not allowed; then nothing changes.
func (d *Draft) Add(t protocol.Task, e protocol.TaskEvent) (protocol.Task, bool) {
	e = task.Next(&t, e, time.Now().UnixMilli())
	next, ok := task.Apply(t, e)
	if !ok {
		return t, false
	}
	d.tasks[t.ID] = next
	d.store(next, e)
	d.notify(next, e)
	if w := task.Wakes(&next, &e); w != nil {
		d.wakes = append(d.wakes, d.of.wakeOf(next, e, w))
	}
	if next.State.Final() {
		d.endParts(t.ID)
		d.of.host.Over(d, next)
	}
	return next, true
}

// store adds the event to the commit, merged with other events of the same task.
func (d *Draft) store(t protocol.Task, e protocol.TaskEvent) {
	i := slices.IndexFunc(d.c.Tasks, func(c persistence.TaskChange) bool { return c.Task.ID == t.ID })
	if i < 0 {
		i = len(d.c.Tasks)
		d.c.Tasks = append(d.c.Tasks, persistence.TaskChange{})
	}
	d.c.Tasks[i].Task = t
	d.c.Tasks[i].Events = append(d.c.Tasks[i].Events, e)
}

// notify notifies clients of an event. Hidden tasks have no events.
func (d *Draft) notify(t protocol.Task, e protocol.TaskEvent) {
	if t.Spec.Hidden {
		return
	}
	event := protocol.Event{Type: protocol.EventTaskChanged, TurnID: t.Origin.TurnID, Task: &t, TaskEvent: &e}
	switch {
	case e.Kind == protocol.TaskWasCreated:
		event.Type, event.TaskEvent = protocol.EventTaskStarted, nil
	case t.State.Final():
		event.Type, event.TaskEvent = protocol.EventTaskCompleted, nil
	}
	d.c.TellOf(event)
}

// endParts cancels or detaches the parts of a task that has ended.
func (d *Draft) endParts(parent protocol.TaskID) {
	for _, t := range d.of.All() {
		if t.Spec.Parent == parent {
			d.loseCaller(t, "its parent task has ended")
		}
	}
}

// TurnOver cancels or detaches the tasks that the ending turn started, or an earlier turn
// that it continues. Tasks of other turns lost their caller when those ended.
func (d *Draft) TurnOver() {
	for _, t := range d.of.All() {
		if t.Origin.SessionID == d.of.session && t.Origin.TurnID != "" {
			d.loseCaller(t, "the turn that started it has ended")
		}
	}
}

// loseCaller handles the end of the turn or task that started t. It cancels t or lets it
// continue without a caller, as t's spec says.
func (d *Draft) loseCaller(t protocol.Task, reason string) {
	if t, _ = d.Find(t.ID); t.Spec.ParentEnd == protocol.ParentEndCancel {
		d.Cancel(t, task.ParentEnd, reason)
		return
	}
	d.Add(t, protocol.TaskEvent{Kind: protocol.TaskLostCaller})
}

// Cancel requests the end of a task. If a worker runs it, the worker is notified after the
// commit. If not, the task ends at once. A second request changes nothing.
func (d *Draft) Cancel(t protocol.Task, by, reason string) protocol.Task {
	t, ok := d.Add(t, protocol.TaskEvent{Kind: protocol.TaskGotCancelRequest, By: by, Reason: reason})
	if !ok {
		return t
	}
	a := d.begun[t.ID]
	if a != nil && !task.Detached(&t.Spec) {
		a.End(by, reason) // it begins after the commit, and then ends without working
		return t
	}
	if a == nil {
		a = d.of.host.At(t.ID)
	}
	if a != nil {
		d.c.Then(func() { a.End(by, reason) })
		return t
	}
	if end := task.Recover(&t).End; end != nil {
		t, _ = d.Add(t, protocol.TaskEvent{Kind: protocol.TaskWasEnded, Outcome: end})
	}
	return t
}

// Start creates a task and starts an attempt, unless the task runs elsewhere. attempt must
// not block.
func (d *Draft) Start(id protocol.TaskID, spec *protocol.TaskSpec, origin protocol.TaskOrigin, attempt func(*protocol.Task) Attempt) protocol.Task {
	created := protocol.TaskEvent{Kind: protocol.TaskWasCreated, SessionID: d.of.session, Spec: spec, Origin: &origin}
	t, _ := d.Add(protocol.Task{ID: id}, created)
	switch {
	case task.Detached(spec):
		d.accompany(t, attempt(&t))
	case spec.Recovery != protocol.RecoverExternal:
		t = d.launch(t, attempt(&t))
	}
	return t
}

// Resume recovers the live tasks without a worker, see task.Recover. The engine calls it
// when it loads a session.
func (d *Draft) Resume() {
	for _, t := range d.of.All() {
		if d.of.host.At(t.ID) != nil {
			continue
		}
		v := task.Recover(&t)
		switch {
		case v.End != nil:
			d.Add(t, protocol.TaskEvent{Kind: protocol.TaskWasEnded, Outcome: v.End})
		case v.Run:
			d.launch(t, d.of.host.Again(&t))
		case task.Detached(&t.Spec):
			d.accompany(t, d.of.host.Again(&t))
		}
	}
}

// launch starts an attempt once the change is stored. If a slot is free now, the same
// change records the start; otherwise the attempt records it when it gets a slot.
func (d *Draft) launch(t protocol.Task, a Attempt) protocol.Task {
	begun := a.Claim()
	if begun {
		d.c.Undo(a.Release)
		t, _ = d.Add(t, protocol.TaskEvent{Kind: protocol.TaskWasStarted, Incarnation: d.of.incarnation})
	}
	d.begun[t.ID] = a
	d.c.Then(func() { a.Go(t, begun) })
	return t
}

// accompany starts an attempt that only observes a detached command.
func (d *Draft) accompany(t protocol.Task, a Attempt) {
	d.begun[t.ID] = a
	d.c.Then(func() { a.Go(t, true) })
}

// TakeOver moves a task of another session to this one. It must be the last event of the
// task in the change.
func (d *Draft) TakeOver(t protocol.Task, from protocol.SessionID) protocol.Task {
	t, _ = d.Add(t, protocol.TaskEvent{Kind: protocol.TaskWasTransferred, SessionID: d.of.session})
	d.c.Tasks[len(d.c.Tasks)-1].From = from
	return t
}

// Wake adds wakes for the session. They are queued at the end of the change.
func (d *Draft) Wake(w ...queue.Wake) { d.wakes = append(d.wakes, w...) }

// Wakes reports whether the change contains a wake with a source.
func (d *Draft) Wakes(source string) bool {
	return slices.ContainsFunc(d.wakes, func(w queue.Wake) bool { return w.Source == source })
}

// Finish implements change.Draft. It queues the wakes, after all other parts of the change.
func (d *Draft) Finish(c *change.Change) error {
	for _, w := range d.wakes {
		if err := d.of.host.Wake(c, w); err != nil {
			return err
		}
	}
	if len(d.tasks) > 0 {
		c.Then(d.of.host.Moved)
	}
	return nil
}

// Land implements change.Draft: it makes the drafted tasks the live ones.
func (d *Draft) Land() {
	for id, t := range d.tasks {
		if !t.State.Final() {
			d.of.live[id] = t
			continue
		}
		delete(d.of.live, id)
		if failed := t.State == protocol.TaskFailed || t.State == protocol.TaskAbandoned; t.Spec.Hidden && failed && d.of.failedHidden == nil {
			d.of.failedHidden = &t
		}
	}
}
