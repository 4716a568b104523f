package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"lashd/engine/background"
	"lashd/engine/task"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

const (
	taskPage    = 100
	maxTaskPage = 1000
)

// Tasks lists tasks in the order of their newest changes.
func (e *Engine) Tasks(ctx context.Context, p *protocol.TaskListParams) (*protocol.TaskListResult, error) {
	q := persistence.TaskQuery{Viewer: p.SessionID, Kind: p.Kind, Live: p.Live, Hidden: p.Hidden}
	if p.Limit < 0 || p.Limit > maxTaskPage {
		return nil, bad("/limit", "must be between 1 and %d", maxTaskPage)
	}
	limit := cmp.Or(p.Limit, taskPage)
	if p.Cursor != "" {
		var err error
		if q.After, err = strconv.ParseInt(p.Cursor, 10, 64); err != nil || q.After < 0 {
			return nil, bad("/cursor", "is none that task/list gave")
		}
	}
	if p.SessionID != "" {
		if _, err := e.store.Session(ctx, p.SessionID); err != nil {
			return nil, err
		}
	}
	q.Limit = limit + 1
	found, err := e.store.Tasks(ctx, q)
	if err != nil {
		return nil, err
	}
	r := &protocol.TaskListResult{Data: list(found[:min(len(found), limit)]), More: len(found) > limit, Admission: e.workers.admission()}
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
	a := protocol.TaskAdmission{Working: len(ws.places), Limit: cap(ws.places)}
	for _, w := range ws.all {
		if w.queued() {
			a.Waiting++
		}
	}
	return a
}

// ReadTask reads a task that a session may see, and what happened to it.
func (e *Engine) ReadTask(ctx context.Context, p *protocol.TaskReadParams) (*protocol.TaskReadResult, error) {
	if p.Limit < 0 || p.Limit > maxTaskPage {
		return nil, bad("/limit", "must be between 1 and %d", maxTaskPage)
	}
	t, err := e.visibleTask(ctx, p.SessionID, p.TaskID)
	if err != nil {
		return nil, err
	}
	events, err := e.store.TaskEvents(ctx, t.SessionID, t.ID, p.After, cmp.Or(p.Limit, taskPage))
	return &protocol.TaskReadResult{Task: t, Events: list(events)}, err
}

// visibleTask is a task by its id, of the session itself or one that it may see.
func (e *Engine) visibleTask(ctx context.Context, session protocol.SessionID, id protocol.TaskID) (protocol.Task, error) {
	if _, err := e.store.Session(ctx, session); err != nil {
		return protocol.Task{}, err
	}
	t, err := e.store.Task(ctx, session, id)
	if !isMissing(err) {
		return t, err
	}
	return e.store.SeenTask(ctx, session, id)
}

// TaskOutput reads a part of what a task has put out.
func (e *Engine) TaskOutput(ctx context.Context, p *protocol.TaskOutputParams) (*protocol.TaskOutputResult, error) {
	if p.Limit < 0 || p.Limit > maxOutputPart {
		return nil, bad("/limit", "must be between 1 and %d", maxOutputPart)
	}
	t, err := e.visibleTask(ctx, p.SessionID, p.TaskID)
	if err != nil {
		return nil, err
	}
	r, err := e.outputs.Read(&t, p.Offset, cmp.Or(p.Limit, outputPart))
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

// SignalTask gives a running task something that it declares to take. It returns when that is taken.
func (e *Engine) SignalTask(ctx context.Context, client protocol.ClientID, p *protocol.TaskSignalParams) (*protocol.TaskResult, error) {
	t, err := e.visibleTask(ctx, p.SessionID, p.TaskID)
	if err != nil {
		return nil, err
	}
	if t.State.Final() {
		return nil, &TaskEndedError{t}
	}
	if err := checkSignal(&t.Spec, p); err != nil {
		return nil, err
	}
	w := e.workers.of(t.SessionID, t.ID)
	if w == nil {
		return nil, fmt.Errorf("task %s is not at work here: %w", t.ID, ErrTaskElsewhere)
	}
	if err := w.signal(ctx, asker(client), p.Name, p.Payload); errors.Is(err, errTaskMoved) || errors.Is(err, background.ErrClosed) && over(w) {
		return nil, e.ended(ctx, t.SessionID, t.ID)
	} else if err != nil {
		return nil, err
	}
	return &protocol.TaskResult{Task: t}, nil
}

// over tells whether work has ended, or ends now.
func over(w *work) bool {
	select {
	case <-w.ended:
		return true
	case <-time.After(signalGrace):
		return false
	}
}

// signalGrace is how long the end of a command takes to be told that does not take what is sent to it.
const signalGrace = 100 * time.Millisecond

// ErrTaskLeaving means that a task is just given to another session.
var ErrTaskLeaving = errors.New("it is on its way to another session; nothing was changed, so repeat the request")

// ErrTaskElsewhere means that nobody here works at a task.
var ErrTaskElsewhere = errors.New("no work of this daemon can take it")

func checkSignal(spec *protocol.TaskSpec, p *protocol.TaskSignalParams) error {
	declared := spec.Signals
	if spec.Command != nil {
		declared = slices.Concat(background.Signals(spec.Command), declared)
	}
	i := slices.IndexFunc(declared, func(s protocol.TaskSignalType) bool { return s.Name == p.Name })
	if i < 0 {
		return bad("/name", "is no signal that the task takes")
	}
	return checkPayload("/payload", declared[i].Schema, p.Payload)
}

// checkPayload checks what comes with a signal or an event against what was declared of it.
func checkPayload(pointer string, schema, payload json.RawMessage) error {
	if len(schema) == 0 {
		return nil
	}
	var s jsonschema.Schema
	err := json.Unmarshal(schema, &s)
	if err != nil {
		return bad(pointer, "cannot be checked: %v", err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return bad(pointer, "cannot be checked: %v", err)
	}
	var v any
	if json.Unmarshal(payload, &v) != nil {
		return bad(pointer, "must be there, as JSON")
	}
	if err := resolved.Validate(v); err != nil {
		return bad(pointer, "%v", err)
	}
	return nil
}

// CancelTask makes the wish durable that a task ends, and passes it on. That it was asked does not mean that it has ended.
func (e *Engine) CancelTask(ctx context.Context, client protocol.ClientID, p *protocol.TaskCancelParams) (*protocol.TaskResult, error) {
	seen, err := e.visibleTask(ctx, p.SessionID, p.TaskID)
	if err != nil {
		return nil, err
	}
	return mutate(ctx, e, seen.SessionID, "task/cancel", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.TaskResult, error) {
		t, live := st.tasks[p.TaskID]
		if !live {
			return nil, e.ended(ctx, st.id, p.TaskID)
		}
		r := &protocol.TaskResult{}
		err := st.moveTasks(ctx, func() *persistence.Receipt { return rc.with(r) }, func(m *moves) {
			r.Task = m.cancel(t, asker(client), p.Reason)
			r.Seq = st.row.Seq + protocol.Seq(len(m.news))
		})
		return r, err
	})
}

// ended is why a task cannot be changed that is not live.
func (e *Engine) ended(ctx context.Context, session protocol.SessionID, id protocol.TaskID) error {
	t, err := e.store.Task(ctx, session, id)
	switch {
	case err != nil:
		return err
	case !t.State.Final():
		return fmt.Errorf("task %s: %w", id, ErrTaskLeaving)
	}
	return &TaskEndedError{t}
}

func asker(client protocol.ClientID) string { return cmp.Or(string(client), "internal:client") }

// CancelTasks is CancelTask for all live tasks of a session, or those of a kind.
func (e *Engine) CancelTasks(ctx context.Context, client protocol.ClientID, p *protocol.TaskCancelAllParams) (*protocol.TasksResult, error) {
	return e.cancelTasks(ctx, client, p, func(*protocol.Task) bool { return true })
}

// cancelTasks is CancelTasks for those that are meant.
func (e *Engine) cancelTasks(ctx context.Context, client protocol.ClientID, p *protocol.TaskCancelAllParams, meant func(*protocol.Task) bool) (*protocol.TasksResult, error) {
	return mutate(ctx, e, p.SessionID, "task/cancelAll", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.TasksResult, error) {
		r := &protocol.TasksResult{Data: []protocol.Task{}}
		err := st.moveTasks(ctx, func() *persistence.Receipt { return rc.with(r) }, func(m *moves) {
			for _, t := range st.liveTasks() {
				if (p.Kind == "" || t.Spec.Kind == p.Kind) && !slices.Contains(p.Keep, t.ID) && meant(&t) {
					r.Data = append(r.Data, m.cancel(t, asker(client), p.Reason))
				}
			}
			r.Seq = st.row.Seq + protocol.Seq(len(m.news))
		})
		return r, err
	})
}

// CompleteTask tells how a task ended that runs elsewhere. Of one that runs here it only notes the wish that it is given up as
// abandoned, if that is the outcome.
func (e *Engine) CompleteTask(ctx context.Context, client protocol.ClientID, p *protocol.TaskCompleteParams) (*protocol.TaskResult, error) {
	return mutate(ctx, e, p.SessionID, "task/complete", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.TaskResult, error) {
		t, live := st.tasks[p.TaskID]
		switch {
		case !live:
			return nil, e.ended(ctx, st.id, p.TaskID)
		case t.Spec.Recovery != protocol.RecoverExternal:
			return nil, bad("/taskId", "must be an external task: lashd itself runs this one")
		}
		out := *task.Bounded(&p.Outcome)
		switch out.Kind {
		case protocol.TaskLost:
			out = *task.Abandoned(&t, protocol.WriterRequest, cmp.Or(out.Message, "it was given up"))
			out.By = asker(client)
		case protocol.TaskDone, protocol.TaskError, protocol.TaskExited, protocol.TaskSignal, protocol.TaskStopped:
		default:
			return nil, bad("/outcome/kind", "must be completed, failed, exited, signaled, stopped or abandoned")
		}
		return st.changeTask(ctx, t, protocol.TaskEvent{Kind: protocol.TaskWasEnded, Outcome: &out}, rc)
	})
}

// changeTask makes one event of a task durable. One that changes nothing is not stored.
func (st *state) changeTask(ctx context.Context, t protocol.Task, ev protocol.TaskEvent, rc receipt) (*protocol.TaskResult, error) {
	r := &protocol.TaskResult{}
	err := st.moveTasks(ctx, func() *persistence.Receipt { return rc.with(r) }, func(m *moves) {
		r.Task, _ = m.add(t, ev)
		r.Seq = st.row.Seq + protocol.Seq(len(m.news))
	})
	return r, err
}

// ObserveTask lets another session see a task, or no longer.
func (e *Engine) ObserveTask(ctx context.Context, p *protocol.TaskObserveParams) (*protocol.TaskResult, error) {
	if _, err := e.store.Session(ctx, p.Observer); err != nil {
		return nil, err
	}
	return mutate(ctx, e, p.SessionID, "task/observe", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.TaskResult, error) {
		t, live := st.tasks[p.TaskID]
		if !live {
			return nil, e.ended(ctx, st.id, p.TaskID)
		}
		ev := protocol.TaskEvent{Kind: protocol.TaskGotObserver, SessionID: p.Observer}
		if p.Remove {
			ev.Kind = protocol.TaskLostObserver
		}
		return st.changeTask(ctx, t, ev, rc)
	})
}
