package engine

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/task/live"
	"lashd/rpc/protocol"
)

// TellTask implements plugin.TaskService: it adds an event of the plugin's own to a task. The
// task's spec must declare the name, and the payload must fit its schema.
//
// An event with a key is added once: a repetition with the same content returns the task, and one
// with other content fails with *TaskEventConflictError. An ended task accepts only events with a
// key, so that a repetition can still find the first one.
func (s *services) TellTask(ctx context.Context, p *plugin.TaskTold) (protocol.Task, error) {
	t, err := s.visibleTask(ctx, p.TaskParams)
	switch {
	case err != nil:
		return t, err
	case t.Pruned, t.State.Final() && p.Key == "":
		return t, &TaskEndedError{t}
	}
	if err := cmp.Or(param.CheckTaskEvent(&t.Spec, p.Name, p.Payload), param.CheckName("/key", p.Key)); err != nil {
		return t, err
	}
	event := protocol.TaskEvent{Kind: protocol.TaskTold, Name: p.Name, Payload: p.Payload, Key: p.Key}
	return do(ctx, s.eng, t.SessionID, func(ctx context.Context, st *state) (protocol.Task, error) {
		return st.tasks.addEventOnce(ctx, t.ID, event)
	})
}

// TaskEventConflictError means that the task has an event with the same key but with another name
// or payload.
type TaskEventConflictError struct {
	ID  protocol.TaskID
	Key string
}

func (e *TaskEventConflictError) Error() string {
	return fmt.Sprintf("task %s already has a different event with key %q; choose another key", e.ID, e.Key)
}

// Kind classifies the error for plugins.
func (*TaskEventConflictError) Kind() protocol.ErrorKind { return protocol.KindConflict }

// addEventOnce adds a plugin's event to a task unless the store has it already, which it finds by
// the key. It runs on the actor of the task's session.
func (ts sessionTasks) addEventOnce(ctx context.Context, id protocol.TaskID, e protocol.TaskEvent) (t protocol.Task, err error) {
	before, err := ts.st.eng.store.TaskEventOf(ctx, ts.st.id, id, e.Key)
	switch {
	case err != nil:
		return t, err
	case before != nil && (before.Name != e.Name || !bytes.Equal(encode(before.Payload), encode(e.Payload))):
		return t, &TaskEventConflictError{id, e.Key}
	case before != nil:
		return ts.st.eng.store.Task(ctx, ts.st.id, id)
	}
	t, ok := ts.Find(id)
	if !ok {
		return t, ts.st.eng.Tasks.ended(ctx, ts.st.id, id)
	}
	err = ts.move(ctx, func(d *live.Draft) { t, _ = d.Add(t, e) })
	return t, err
}
