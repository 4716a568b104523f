package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"lashd/engine/change"
	"lashd/engine/queue"
	"lashd/engine/task"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// taskDraft is what becomes of a session's tasks and monitors with a change, and whom they wake.
type taskDraft struct {
	st    *state
	c     *change.Change
	tasks map[protocol.TaskID]protocol.Task
	begun map[protocol.TaskID]*work // that begin once the commit is stored
	wakes []queue.Wake

	monitors *monitors // nil: they stay as they are
	updates  []protocol.MonitorUpdate
}

func (st *state) tasksIn(c *change.Change) *taskDraft {
	return change.DraftOf(c, partTasks, func() *taskDraft {
		return &taskDraft{st: st, c: c, tasks: map[protocol.TaskID]protocol.Task{}, begun: map[protocol.TaskID]*work{}}
	})
}

// add has an event happen to a task, and tells whether it can.
func (m *taskDraft) add(t protocol.Task, e protocol.TaskEvent) (protocol.Task, bool) {
	e = task.Next(&t, e, now())
	next, ok := task.Apply(t, e)
	if !ok {
		return t, false
	}
	m.tasks[t.ID] = next
	m.store(next, e)
	m.tell(next, e)
	if w := task.Wakes(&next, &e); w != nil {
		m.wakes = append(m.wakes, m.st.wakeOf(next, e, w))
	}
	if next.State.Final() {
		m.endParts(t.ID)
		m.runOver(next)
		m.decide(next)
	}
	return next, true
}

// store puts the event into the commit, together with others of its task.
func (m *taskDraft) store(t protocol.Task, e protocol.TaskEvent) {
	i := slices.IndexFunc(m.c.Tasks, func(c persistence.TaskChange) bool { return c.Task.ID == t.ID })
	if i < 0 {
		i = len(m.c.Tasks)
		m.c.Tasks = append(m.c.Tasks, persistence.TaskChange{})
	}
	m.c.Tasks[i].Task = t
	m.c.Tasks[i].Events = append(m.c.Tasks[i].Events, e)
}

// tell is what observers learn of an event; of hidden tasks, nothing.
func (m *taskDraft) tell(t protocol.Task, e protocol.TaskEvent) {
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
	m.c.TellOf(told)
}

// endParts settles what becomes of the parts of a task that is over.
func (m *taskDraft) endParts(parent protocol.TaskID) {
	for _, t := range m.st.liveTasks() {
		if t.Spec.Parent == parent {
			m.callerGone(t, task.ParentEnd, "the task that it is a part of is over")
		}
	}
}

// turnOver settles what becomes of the tasks that the turn which ends has started, or the turns that it goes on from. Only such
// are left: others lost their turn when that ended.
func (m *taskDraft) turnOver() {
	for _, t := range m.st.liveTasks() {
		if t.Origin.SessionID == m.st.id && t.Origin.TurnID != "" && !t.CallerDeparted {
			m.callerGone(t, task.ParentEnd, "the turn that started it is over")
		}
	}
}

// callerGone is what becomes of a task when whoever started it is over, as it has said itself.
func (m *taskDraft) callerGone(t protocol.Task, by, reason string) {
	t = m.newest(t)
	if t.Spec.ParentEnd == protocol.ParentEndCancel {
		m.cancel(t, by, reason)
		return
	}
	m.add(t, protocol.TaskEvent{Kind: protocol.TaskLostCaller})
}

// newest is a task as it will be.
func (m *taskDraft) newest(t protocol.Task) protocol.Task {
	if next, ok := m.tasks[t.ID]; ok {
		return next
	}
	return t
}

// cancel notes the wish that a task ends. Once that is durable its worker is told; what nobody works at is over at once.
func (m *taskDraft) cancel(t protocol.Task, by, reason string) protocol.Task {
	t, ok := m.add(t, protocol.TaskEvent{Kind: protocol.TaskGotCancelRequest, By: by, Reason: reason})
	if !ok {
		return t
	}
	if w := cmp.Or(m.begun[t.ID], m.st.eng.workers.of(m.st.id, t.ID)); w != nil {
		m.c.Then(func() { w.end(&taskStop{by: by, reason: reason}) })
		return t
	}
	if end := task.Recover(&t).End; end != nil {
		t, _ = m.add(t, protocol.TaskEvent{Kind: protocol.TaskWasEnded, Outcome: end})
	}
	return t
}

// Finish implements change.Draft: the wakes and the monitors stand last in the commit.
func (m *taskDraft) Finish(c *change.Change) error {
	m.keepMonitors()
	for _, w := range m.wakes {
		_, refused, err := m.st.queueIn(c).Wake(m.st.ctx, c, m.st.eng.store, w)
		if err != nil {
			return err
		}
		if refused != "" {
			m.st.eng.Log.Warn("a task does not wake its session", "session", m.st.id, "source", w.Source, "because", refused)
		}
	}
	if len(m.tasks) > 0 {
		c.Then(m.st.eng.tasksMoved.Notify)
	}
	return nil
}

// Land implements change.Draft.
func (m *taskDraft) Land() {
	for id, t := range m.tasks {
		if t.State.Final() {
			delete(m.st.tasks, id)
			m.st.failedHidden(t)
		} else {
			m.st.tasks[id] = t
		}
	}
}

// wakeOf is what an event of a task says to its session. It wakes that for no more than who started the task may have done there.
func (st *state) wakeOf(t protocol.Task, e protocol.TaskEvent, how *protocol.TaskWake) queue.Wake {
	kind := "task/" + string(t.State)
	if e.Kind == protocol.TaskTold {
		kind = "task/" + e.Name
	}
	return queue.Wake{
		Source: wakeSource(&t, e.Ordinal), Merge: how.Merge, Delivery: how.Delivery, Ceiling: st.eng.wakeCeiling(st.ctx, &t, &st.row),
		Cause: protocol.TurnCause{ID: fmt.Sprintf("%s:%d", t.ID, e.Ordinal), Type: kind, Origin: string(t.ID), Text: cmp.Or(how.Text, describe(t, e))},
	}
}

// wakeSource is where a wake comes from that an event of a task causes.
func wakeSource(t *protocol.Task, ordinal int) string {
	return fmt.Sprintf("task:%s:event:%d:wake", t.ID, ordinal)
}

// describe is what the model is told of an event, if the task does not say it itself.
func describe(t protocol.Task, e protocol.TaskEvent) string {
	about := cmp.Or(t.Spec.Label, string(t.Spec.Kind))
	if e.Kind == protocol.TaskWasEnded && t.Spec.Subagent != nil {
		return describeSubagent(t, e.Outcome)
	}
	if e.Kind == protocol.TaskTold {
		return about + ": " + string(e.Payload)
	}
	return fmt.Sprintf("%s is over: %s", about, encode(e.Outcome))
}

// moveTasks makes changes of tasks durable, and nothing else.
func (st *state) moveTasks(ctx context.Context, f func(*taskDraft)) error {
	c := st.change(persistence.Commit{})
	m := st.tasksIn(c)
	f(m)
	if len(c.Tasks) == 0 && c.Receipt == nil && m.monitors == nil {
		c.Land(persistence.Result{}) // what only begins to wait for a place has nothing to store
		return nil
	}
	return st.commit(ctx, c)
}

// liveTasks are the session's tasks that are not over, in the order of their creation.
func (st *state) liveTasks() []protocol.Task {
	live := make([]protocol.Task, 0, len(st.tasks))
	for _, t := range st.tasks {
		live = append(live, t)
	}
	slices.SortFunc(live, func(a, b protocol.Task) int {
		if a.CreatedAtMs != b.CreatedAtMs {
			return int(a.CreatedAtMs - b.CreatedAtMs)
		}
		return slices.Compare([]byte(a.ID), []byte(b.ID))
	})
	return live
}

// listedTasks are those that clients see.
func (st *state) listedTasks() []protocol.Task {
	return slices.DeleteFunc(st.liveTasks(), func(t protocol.Task) bool { return t.Spec.Hidden })
}

func (st *state) loadTasks() error {
	live, err := st.eng.store.LiveTasks(st.ctx, st.key)
	if err != nil {
		return err
	}
	st.tasks = make(map[protocol.TaskID]protocol.Task, len(live))
	for _, t := range live {
		st.tasks[t.ID] = t
	}
	return nil
}

// resumeTasks does what is to be done with live tasks that nobody works at.
func (st *state) resumeTasks() error {
	return st.moveTasks(st.ctx, func(m *taskDraft) {
		for _, t := range st.liveTasks() {
			if st.eng.workers.of(st.id, t.ID) != nil {
				continue
			}
			v := task.Recover(&t)
			switch {
			case v.End != nil:
				m.add(t, protocol.TaskEvent{Kind: protocol.TaskWasEnded, Outcome: v.End})
			case v.Run:
				m.launch(t, nil)
			case task.Detached(&t.Spec):
				m.accompany(t, watchDetached)
			}
		}
	})
}

// wakeUp goes on with what an earlier run, or an earlier state, left.
func (st *state) wakeUp() {
	if err := st.resumeTasks(); err != nil {
		st.eng.Log.Error("tasks are not resumed", "session", st.id, "error", err)
	}
	st.resumeMonitors()
	st.resumeRewinds()
	st.startNextTurn()
}
