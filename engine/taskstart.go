package engine

import (
	"context"
	"errors"
	"runtime"

	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/engine/task"
	"lashd/engine/task/live"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Start stores a task and starts it as soon as a slot is free. It returns when the task is stored,
// not when it runs.
//
// Starting the same id with the same spec again returns the existing task, even if that has ended
// or was pruned; another spec fails with *TaskConflictError. So a client that lost the answer can
// repeat the request. If the spec names a plugin's handler, the session's plugins are opened first,
// so that an unknown handler is rejected here and not later in the attempt.
func (ts *Tasks) Start(ctx context.Context, client protocol.ClientID, p *protocol.TaskStartParams) (*protocol.TaskResult, error) {
	origin := protocol.TaskOrigin{SessionID: p.SessionID, ClientID: client}
	if err := ts.check(p.TaskID, &p.Spec); err != nil {
		return nil, err
	}
	l, err := openForHandler(ctx, ts.eng, p.SessionID, &p.Spec)
	if err != nil {
		return receipt.Repeated[protocol.TaskResult](ctx, ts.eng.store, "task/start", p.Key(), p, err)
	}
	defer l.release()
	return mutate(ctx, ts.eng, p.SessionID, "task/start", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.TaskResult, error) {
		return st.tasks.start(ctx, p.TaskID, &p.Spec, origin, nil, rc)
	})
}

// check rejects an id or a spec that is invalid on its own. It reads no state.
func (ts *Tasks) check(id protocol.TaskID, spec *protocol.TaskSpec) error {
	if err := param.CheckName("/taskId", string(id)); id != "" && err != nil {
		return err
	}
	if wrong, ok := errors.AsType[*task.SpecError](task.Check(spec)); ok {
		return param.Bad("/spec/"+wrong.Field, "%s", wrong.Reason)
	}
	if c := spec.Command; c != nil && runtime.GOOS == "windows" && (c.PTY != nil || c.Detach) {
		return param.Bad("/spec/command", "can have no terminal on Windows, and cannot outlive lashd there")
	}
	return nil
}

// start is Tasks.Start on the actor of the session. run is the worker for specs that do not name
// their work; nil means that the spec decides. Tasks of hooks and of operations come here directly,
// with the origin that says who started them.
func (ts sessionTasks) start(ctx context.Context, id protocol.TaskID, spec *protocol.TaskSpec, origin protocol.TaskOrigin, run worker, rc receipt.Request) (*protocol.TaskResult, error) {
	known, err := ts.known(ctx, id, spec)
	if err != nil {
		return nil, err
	}
	if known != nil {
		r := &protocol.TaskResult{Task: *known, Existing: true, Seq: ts.st.row.Seq}
		return r, ts.st.storeReceipt(ctx, rc, r)
	}
	if ts.st.eng.group.Closed() {
		return nil, ErrShuttingDown
	}
	if err := ts.checkHandler(spec); err != nil {
		return nil, err
	}
	r := &protocol.TaskResult{}
	c := ts.st.change(persistence.Commit{})
	if r.Task, err = startTask(ts.st.eng, ts.In(c), id, spec, origin, run); err != nil {
		c.Drop()
		return nil, err
	}
	r.Seq = c.Seq()
	c.Receipt = rc.With(r)
	return r, ts.st.commit(ctx, c)
}

// known returns the task that was started before with this id, or nil. It fails with
// *TaskConflictError if that task has another spec.
func (ts sessionTasks) known(ctx context.Context, id protocol.TaskID, spec *protocol.TaskSpec) (*protocol.Task, error) {
	if id == "" {
		return nil, nil
	}
	t, live := ts.Find(id)
	if !live {
		var err error
		if t, err = ts.st.eng.store.Task(ctx, ts.st.id, id); isMissing(err) {
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

// startTask adds a new task to a draft, and to the workers once the draft is stored. An empty id
// gets a new one. run is as for start. If no slot is free, the task stays pending and its attempt
// waits. It fails with *param.Error if lashd has no worker for the spec.
func startTask(e *Engine, d *live.Draft, id protocol.TaskID, spec *protocol.TaskSpec, origin protocol.TaskOrigin, run worker) (protocol.Task, error) {
	if id == "" {
		id = protocol.NewTaskID()
	}
	if run == nil {
		var err error
		if run, err = e.Tasks.workerFor(spec); err != nil {
			return protocol.Task{}, err
		}
	}
	return d.Start(id, spec, origin, e.Tasks.attempts(run)), nil
}

// attempts returns a function that creates attempts with a given worker, as live.Draft needs it.
func (ts *Tasks) attempts(run worker) func(*protocol.Task) live.Attempt {
	return func(t *protocol.Task) live.Attempt { return ts.newWork(t, run) }
}
