package engine

import (
	"context"
	"errors"
	"runtime"

	"lashd/engine/task"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// StartTask makes a task durable, and begins it as soon as there is room. The same id with the same spec is the task that there
// is already.
func (e *Engine) StartTask(ctx context.Context, client protocol.ClientID, p *protocol.TaskStartParams) (*protocol.TaskResult, error) {
	origin := protocol.TaskOrigin{SessionID: p.SessionID, ClientID: client}
	if err := e.checkTask(p.TaskID, &p.Spec); err != nil {
		return nil, err
	}
	return mutate(ctx, e, p.SessionID, "task/start", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.TaskResult, error) {
		return st.startTask(ctx, p.TaskID, &p.Spec, origin, nil, rc)
	})
}

// checkTask refuses a task that makes no sense, or that nobody could run.
func (e *Engine) checkTask(id protocol.TaskID, spec *protocol.TaskSpec) error {
	if err := checkName("/taskId", string(id)); id != "" && err != nil {
		return err
	}
	if wrong, ok := errors.AsType[*task.SpecError](task.Check(spec)); ok {
		return bad("/spec/"+wrong.Field, "%s", wrong.Reason)
	}
	if c := spec.Command; c != nil && runtime.GOOS == "windows" && (c.PTY != nil || c.Detach) {
		return bad("/spec/command", "can have no terminal on Windows, and cannot outlive lashd there")
	}
	return nil
}

// startTask is StartTask for whoever has the session. run is what does the work, if that is not said in the spec.
func (st *state) startTask(ctx context.Context, id protocol.TaskID, spec *protocol.TaskSpec, origin protocol.TaskOrigin, run worker, rc receipt) (*protocol.TaskResult, error) {
	known, err := st.knownTask(ctx, id, spec)
	if err != nil {
		return nil, err
	}
	if known != nil {
		r := &protocol.TaskResult{Task: *known, Existing: true, Seq: st.row.Seq}
		return r, st.remembered(ctx, rc, r)
	}
	if st.eng.stopping() {
		return nil, ErrShuttingDown
	}
	if err := st.checkHandler(spec); err != nil {
		return nil, err
	}
	r := &protocol.TaskResult{}
	c := st.change(persistence.Commit{})
	if r.Task, err = st.tasksIn(c).start(id, spec, origin, run); err != nil {
		c.Drop()
		return nil, err
	}
	r.Seq = c.Seq()
	c.Receipt = rc.with(r)
	return r, st.commit(ctx, c)
}

// knownTask is the task of an id that was started before; nil: none was.
func (st *state) knownTask(ctx context.Context, id protocol.TaskID, spec *protocol.TaskSpec) (*protocol.Task, error) {
	if id == "" {
		return nil, nil
	}
	t, live := st.tasks[id]
	if !live {
		var err error
		if t, err = st.eng.store.Task(ctx, st.id, id); isMissing(err) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
	if !task.Asks(&t, spec) {
		return nil, &TaskConflictError{id}
	}
	return &t, nil
}

// start creates a task, and begins it if there is room. run is what does its work, if that is not said in its spec.
func (m *taskDraft) start(id protocol.TaskID, spec *protocol.TaskSpec, origin protocol.TaskOrigin, run worker) (protocol.Task, error) {
	if id == "" {
		id = protocol.NewTaskID()
	}
	if run == nil {
		var err error
		if run, err = m.st.eng.workerFor(spec); err != nil {
			return protocol.Task{}, err
		}
	}
	created := protocol.TaskEvent{Kind: protocol.TaskWasCreated, SessionID: m.st.id, Spec: spec, Origin: &origin}
	t, _ := m.add(protocol.Task{ID: id}, created)
	switch {
	case task.Detached(spec):
		m.accompany(t, run)
	case spec.Recovery != protocol.RecoverExternal:
		t = m.launch(t, run)
	}
	return t, nil
}

// launch has a worker begin an attempt once the commit is stored: in the commit, if there is room now.
func (m *taskDraft) launch(t protocol.Task, run worker) protocol.Task {
	w := m.st.eng.newWork(&t, run)
	w.light = t.Spec.Kind == protocol.TaskMonitor
	if w.begun = w.claim(); w.begun {
		m.c.Undo(w.release)
		t, _ = m.add(t, protocol.TaskEvent{Kind: protocol.TaskWasStarted, Incarnation: m.st.eng.incarnation})
	}
	begun := t
	m.begun[t.ID] = w
	m.c.Then(func() { m.st.eng.goWork(w, begun) })
	return t
}

// accompany has a worker look at a task that runs elsewhere, once the commit is stored. It needs no place.
func (m *taskDraft) accompany(t protocol.Task, run worker) {
	w := m.st.eng.newWork(&t, run)
	w.begun, w.light = true, true
	m.begun[t.ID] = w
	m.c.Then(func() { m.st.eng.goWork(w, t) })
}
