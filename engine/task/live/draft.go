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

// Draft is what becomes of a session's tasks with a change, and whom they wake.
type Draft struct {
	of    *Tasks
	c     *change.Change
	tasks map[protocol.TaskID]protocol.Task
	begun map[protocol.TaskID]Attempt // that begin once the change is stored
	wakes []queue.Wake
}

// In returns the draft of the tasks in a change.
func (ts *Tasks) In(c *change.Change) *Draft {
	return change.DraftOf(c, ts, func() *Draft {
		return &Draft{of: ts, c: c, tasks: map[protocol.TaskID]protocol.Task{}, begun: map[protocol.TaskID]Attempt{}}
	})
}

// Change is the change that the draft belongs to.
func (d *Draft) Change() *change.Change { return d.c }

// Changed returns a task that the change creates or changes.
func (d *Draft) Changed(id protocol.TaskID) (protocol.Task, bool) {
	t, ok := d.tasks[id]
	return t, ok
}

// Find returns a task as it will be, if it is live before the change, or is part of it.
func (d *Draft) Find(id protocol.TaskID) (protocol.Task, bool) {
	if t, ok := d.tasks[id]; ok {
		return t, true
	}
	return d.of.Find(id)
}

// Add has an event happen to a task, and tells whether it can.
func (d *Draft) Add(t protocol.Task, e protocol.TaskEvent) (protocol.Task, bool) {
	e = task.Next(&t, e, time.Now().UnixMilli())
	next, ok := task.Apply(t, e)
	if !ok {
		return t, false
	}
	d.tasks[t.ID] = next
	d.store(next, e)
	d.tell(next, e)
	if w := task.Wakes(&next, &e); w != nil {
		d.wakes = append(d.wakes, d.of.wakeOf(next, e, w))
	}
	if next.State.Final() {
		d.endParts(t.ID)
		d.of.host.Over(d, next)
	}
	return next, true
}

// store puts the event into the commit, together with others of its task.
func (d *Draft) store(t protocol.Task, e protocol.TaskEvent) {
	i := slices.IndexFunc(d.c.Tasks, func(c persistence.TaskChange) bool { return c.Task.ID == t.ID })
	if i < 0 {
		i = len(d.c.Tasks)
		d.c.Tasks = append(d.c.Tasks, persistence.TaskChange{})
	}
	d.c.Tasks[i].Task = t
	d.c.Tasks[i].Events = append(d.c.Tasks[i].Events, e)
}

// tell tells observers of an event; of hidden tasks, nothing.
func (d *Draft) tell(t protocol.Task, e protocol.TaskEvent) {
	if t.Spec.Hidden {
		return
	}
	told := protocol.Event{Type: protocol.EventTaskChanged, TurnID: t.Origin.TurnID, Task: &t, TaskEvent: &e}
	switch {
	case e.Kind == protocol.TaskWasCreated:
		told.Type, told.TaskEvent = protocol.EventTaskStarted, nil
	case t.State.Final():
		told.Type, told.TaskEvent = protocol.EventTaskCompleted, nil
	}
	d.c.TellOf(told)
}

// endParts decides what becomes of the parts of a task that is over.
func (d *Draft) endParts(parent protocol.TaskID) {
	for _, t := range d.of.All() {
		if t.Spec.Parent == parent {
			d.callerGone(t, "the task that it is a part of is over")
		}
	}
}

// TurnOver decides what becomes of the tasks that the turn which ends has started, or the turns that it goes on from. Only such
// are left: others lost their turn when that ended.
func (d *Draft) TurnOver() {
	for _, t := range d.of.All() {
		if t.Origin.SessionID == d.of.session && t.Origin.TurnID != "" {
			d.callerGone(t, "the turn that started it is over")
		}
	}
}

// callerGone is what becomes of a task when whoever started it is over, as it has said itself.
func (d *Draft) callerGone(t protocol.Task, reason string) {
	if t, _ = d.Find(t.ID); t.Spec.ParentEnd == protocol.ParentEndCancel {
		d.Cancel(t, task.ParentEnd, reason)
		return
	}
	d.Add(t, protocol.TaskEvent{Kind: protocol.TaskLostCaller})
}

// Cancel notes the wish that a task ends. Once that is durable its worker is told; what nobody works at is over at once.
func (d *Draft) Cancel(t protocol.Task, by, reason string) protocol.Task {
	t, ok := d.Add(t, protocol.TaskEvent{Kind: protocol.TaskGotCancelRequest, By: by, Reason: reason})
	if !ok {
		return t
	}
	a := d.begun[t.ID]
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

// Start creates a task, and begins an attempt at it unless others run it.
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

// Resume does what is to be done with live tasks that nobody works at.
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

// launch begins an attempt once the change is stored: in the change, if there is room now.
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

// accompany has an attempt look at a task that runs elsewhere, once the change is stored.
func (d *Draft) accompany(t protocol.Task, a Attempt) {
	d.begun[t.ID] = a
	d.c.Then(func() { a.Go(t, true) })
}

// TakeOver makes a task of another session this one's.
func (d *Draft) TakeOver(t protocol.Task, from protocol.SessionID) protocol.Task {
	t, _ = d.Add(t, protocol.TaskEvent{Kind: protocol.TaskWasTransferred, SessionID: d.of.session})
	d.c.Tasks[len(d.c.Tasks)-1].From = from
	return t
}

// Wake wakes the session at the end of the change.
func (d *Draft) Wake(w ...queue.Wake) { d.wakes = append(d.wakes, w...) }

// Wakes tells whether the change wakes the session from a source.
func (d *Draft) Wakes(source string) bool {
	return slices.ContainsFunc(d.wakes, func(w queue.Wake) bool { return w.Source == source })
}

// Finish implements change.Draft: the wakes stand last in the commit.
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

// Land implements change.Draft.
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
