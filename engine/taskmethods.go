package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/engine/task"
	"lashd/engine/task/live"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Tasks is the API of tasks, for clients and for plugins. It has no state of its own: live tasks
// belong to their sessions, and workers to the engine. Its methods wait for actors, so they may be
// called from any goroutine but an actor's.
type Tasks struct{ eng *Engine }

// Page sizes of tasks and task events: the default and the maximum.
const (
	taskPage    = 100
	maxTaskPage = 1000
)

// List lists tasks that a session may see, in the order of their latest change, oldest change
// first. Without p.SessionID it lists all sessions.
//
// The cursor is the number of the last change on the page, also when the page is empty. So a client
// that keeps calling with the newest cursor gets exactly the tasks that changed since, and misses
// none.
func (ts *Tasks) List(ctx context.Context, p *protocol.TaskListParams) (*protocol.TaskListResult, error) {
	q := persistence.TaskQuery{Viewer: p.SessionID, Kind: p.Kind, Live: p.Live, Hidden: p.Hidden}
	if p.Limit < 0 || p.Limit > maxTaskPage {
		return nil, param.Bad("/limit", "must be between 1 and %d", maxTaskPage)
	}
	limit := cmp.Or(p.Limit, taskPage)
	if p.Cursor != "" {
		var err error
		if q.After, err = strconv.ParseInt(p.Cursor, 10, 64); err != nil || q.After < 0 {
			return nil, param.Bad("/cursor", "must be a cursor that task/list returned")
		}
	}
	if p.SessionID != "" {
		if _, err := ts.eng.store.Session(ctx, p.SessionID); err != nil {
			return nil, err
		}
	}
	q.Limit = limit + 1
	found, err := ts.eng.store.Tasks(ctx, q)
	if err != nil {
		return nil, err
	}
	r := &protocol.TaskListResult{Data: list(found[:min(len(found), limit)]), More: len(found) > limit, Admission: ts.eng.workers.admission()}
	newest := q.After
	if n := len(r.Data); n > 0 {
		newest = r.Data[n-1].Change
	}
	r.NextCursor = strconv.FormatInt(newest, 10)
	return r, nil
}

// admission counts the tasks that hold a slot and those that wait for one. Subagents have slots of
// their own and count only as waiting.
func (ws *workers) admission() protocol.TaskAdmission {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	a := protocol.TaskAdmission{Working: len(ws.slots), Limit: cap(ws.slots)}
	for _, w := range ws.all {
		if w.queued() {
			a.Waiting++
		}
	}
	return a
}

// Read returns a task that a session may see, with a page of its events after number p.After.
func (ts *Tasks) Read(ctx context.Context, p *protocol.TaskReadParams) (*protocol.TaskReadResult, error) {
	if p.Limit < 0 || p.Limit > maxTaskPage {
		return nil, param.Bad("/limit", "must be between 1 and %d", maxTaskPage)
	}
	t, err := ts.visible(ctx, p.SessionID, p.TaskID)
	if err != nil {
		return nil, err
	}
	events, err := ts.eng.store.TaskEvents(ctx, t.SessionID, t.ID, p.After, cmp.Or(p.Limit, taskPage))
	return &protocol.TaskReadResult{Task: t, Events: list(events)}, err
}

// visible returns a task by id: one of the session itself, or another session's task that it is a
// viewer of. It fails with persistence.ErrNotFound otherwise.
func (ts *Tasks) visible(ctx context.Context, session protocol.SessionID, id protocol.TaskID) (protocol.Task, error) {
	if _, err := ts.eng.store.Session(ctx, session); err != nil {
		return protocol.Task{}, err
	}
	t, err := ts.eng.store.Task(ctx, session, id)
	if !isMissing(err) {
		return t, err
	}
	return ts.eng.store.VisibleTask(ctx, session, id)
}

// Output reads a part of a task's output from a byte offset: up to outputPart bytes by default,
// maxOutputPart at most. Ended says that the task has ended, so no more output will follow.
func (ts *Tasks) Output(ctx context.Context, p *protocol.TaskOutputParams) (*protocol.TaskOutputResult, error) {
	if p.Limit < 0 || p.Limit > maxOutputPart {
		return nil, param.Bad("/limit", "must be between 1 and %d", maxOutputPart)
	}
	t, err := ts.visible(ctx, p.SessionID, p.TaskID)
	if err != nil {
		return nil, err
	}
	r, err := ts.eng.commands.Outputs.Read(&t, p.Offset, cmp.Or(p.Limit, outputPart))
	if err != nil {
		return nil, err
	}
	r.Ended = t.State.Final()
	return r, nil
}

// Sizes of one part of a task's output, in bytes: the default and the maximum.
const (
	outputPart    = 64 << 10
	maxOutputPart = 1 << 20
)

// Cancel stores the request to end a task and passes it to the worker, if there is one. The result
// may still show the task as running: a cooperative task ends when it wants to. Use Wait for its
// end. It fails with *TaskEndedError if the task has ended.
func (ts *Tasks) Cancel(ctx context.Context, client protocol.ClientID, p *protocol.TaskCancelParams) (*protocol.TaskResult, error) {
	seen, err := ts.visible(ctx, p.SessionID, p.TaskID)
	if err != nil {
		return nil, err
	}
	return mutate(ctx, ts.eng, seen.SessionID, "task/cancel", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.TaskResult, error) {
		t, ok := st.tasks.Find(p.TaskID)
		if !ok {
			return nil, ts.ended(ctx, st.id, p.TaskID)
		}
		r := &protocol.TaskResult{}
		err := st.tasks.move(ctx, func(d *live.Draft) {
			r.Task = d.Cancel(t, asker(client), p.Reason)
			r.Seq = d.Change().Seq()
			d.Change().Receipt = rc.With(r)
		})
		return r, err
	})
}

// ended returns why a task that is not live in its session cannot be changed: it ended, moves to
// another session, or does not exist.
func (ts *Tasks) ended(ctx context.Context, session protocol.SessionID, id protocol.TaskID) error {
	t, err := ts.eng.store.Task(ctx, session, id)
	switch {
	case err != nil:
		return err
	case !t.State.Final():
		return fmt.Errorf("task %s: %w", id, ErrTaskLeaving)
	}
	return &TaskEndedError{t}
}

// asker names a client in task records. Requests without a client come from inside the daemon.
func asker(client protocol.ClientID) string { return cmp.Or(string(client), "internal:client") }

// CancelAll cancels all live tasks of a session, or those of one kind, in one commit. Tasks in
// p.Keep are left out. An empty result is no error.
func (ts *Tasks) CancelAll(ctx context.Context, client protocol.ClientID, p *protocol.TaskCancelAllParams) (*protocol.TasksResult, error) {
	return ts.cancelAll(ctx, client, p, func(*protocol.Task) bool { return true })
}

// cancelAll is CancelAll for the tasks that also match a filter.
func (ts *Tasks) cancelAll(ctx context.Context, client protocol.ClientID, p *protocol.TaskCancelAllParams, meant func(*protocol.Task) bool) (*protocol.TasksResult, error) {
	return mutate(ctx, ts.eng, p.SessionID, "task/cancelAll", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.TasksResult, error) {
		r := &protocol.TasksResult{Data: []protocol.Task{}}
		err := st.tasks.move(ctx, func(d *live.Draft) {
			for _, t := range st.tasks.All() {
				if (p.Kind == "" || t.Spec.Kind == p.Kind) && !slices.Contains(p.Keep, t.ID) && meant(&t) {
					r.Data = append(r.Data, d.Cancel(t, asker(client), p.Reason))
				}
			}
			r.Seq = d.Change().Seq()
			d.Change().Receipt = rc.With(r)
		})
		return r, err
	})
}

// Complete stores the outcome of an external task, as reported by a client or plugin. The outcome
// "abandoned" gives the task up and records who did. Tasks that lashd runs itself cannot be
// completed.
func (ts *Tasks) Complete(ctx context.Context, client protocol.ClientID, p *protocol.TaskCompleteParams) (*protocol.TaskResult, error) {
	return mutate(ctx, ts.eng, p.SessionID, "task/complete", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.TaskResult, error) {
		t, ok := st.tasks.Find(p.TaskID)
		switch {
		case !ok:
			return nil, ts.ended(ctx, st.id, p.TaskID)
		case t.Spec.Recovery != protocol.RecoverExternal:
			return nil, param.Bad("/taskId", "must be an external task; lashd runs this task itself")
		}
		out := *task.Bounded(&p.Outcome)
		switch out.Kind {
		case protocol.TaskLost:
			out = *task.Abandoned(&t, protocol.WriterRequest, cmp.Or(out.Message, "it was abandoned on request"))
			out.By = asker(client)
		case protocol.TaskDone, protocol.TaskError, protocol.TaskExited, protocol.TaskSignal, protocol.TaskStopped:
		default:
			return nil, param.Bad("/outcome/kind", "must be completed, failed, exited, signaled, stopped or abandoned")
		}
		return st.tasks.changeOne(ctx, t, protocol.TaskEvent{Kind: protocol.TaskWasEnded, Outcome: &out}, rc)
	})
}

// changeOne adds one event to a task and commits it with the receipt. An event that the task's
// state does not allow changes nothing; then at most the receipt is stored. It runs on the actor.
func (ts sessionTasks) changeOne(ctx context.Context, t protocol.Task, ev protocol.TaskEvent, rc receipt.Request) (*protocol.TaskResult, error) {
	r := &protocol.TaskResult{}
	err := ts.move(ctx, func(d *live.Draft) {
		r.Task, _ = d.Add(t, ev)
		r.Seq = d.Change().Seq()
		d.Change().Receipt = rc.With(r)
	})
	return r, err
}

// Observe lets another session see a task in its list, or ends that with p.Remove. The observer
// must exist.
func (ts *Tasks) Observe(ctx context.Context, p *protocol.TaskObserveParams) (*protocol.TaskResult, error) {
	if _, err := ts.eng.store.Session(ctx, p.Observer); err != nil {
		return nil, err
	}
	return mutate(ctx, ts.eng, p.SessionID, "task/observe", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.TaskResult, error) {
		t, ok := st.tasks.Find(p.TaskID)
		if !ok {
			return nil, ts.ended(ctx, st.id, p.TaskID)
		}
		ev := protocol.TaskEvent{Kind: protocol.TaskGotObserver, SessionID: p.Observer}
		if p.Remove {
			ev.Kind = protocol.TaskLostObserver
		}
		return st.tasks.changeOne(ctx, t, ev, rc)
	})
}
