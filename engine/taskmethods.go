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

// Tasks is the API of tasks, for clients and plugins.
type Tasks struct{ eng *Engine }

const (
	taskPage    = 100
	maxTaskPage = 1000
)

// List lists tasks in the order of their newest changes.
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

// Read reads a task that a session may see, and what happened to it.
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

// visible is a task by its id, of the session itself or one that it may see.
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

// Output reads a part of what a task has put out.
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

const (
	outputPart    = 64 << 10
	maxOutputPart = 1 << 20
)

// Cancel makes the wish durable that a task ends, and passes it on. That it was asked does not mean that it has ended.
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

// ended is why a task cannot be changed that is not live.
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

func asker(client protocol.ClientID) string { return cmp.Or(string(client), "internal:client") }

// CancelAll is CancelTask for all live tasks of a session, or those of a kind.
func (ts *Tasks) CancelAll(ctx context.Context, client protocol.ClientID, p *protocol.TaskCancelAllParams) (*protocol.TasksResult, error) {
	return ts.cancelAll(ctx, client, p, func(*protocol.Task) bool { return true })
}

// cancelAll is CancelTasks for those that are meant.
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

// Complete tells how a task ended that runs elsewhere. Of one that runs here it only notes the wish that it is given up as
// abandoned, if that is the outcome.
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

// changeOne makes one event of a task durable. One that changes nothing is not stored.
func (ts sessionTasks) changeOne(ctx context.Context, t protocol.Task, ev protocol.TaskEvent, rc receipt.Request) (*protocol.TaskResult, error) {
	r := &protocol.TaskResult{}
	err := ts.move(ctx, func(d *live.Draft) {
		r.Task, _ = d.Add(t, ev)
		r.Seq = d.Change().Seq()
		d.Change().Receipt = rc.With(r)
	})
	return r, err
}

// Observe lets another session see a task, or no longer.
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
