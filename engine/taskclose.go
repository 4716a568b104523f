package engine

import (
	"context"
	"errors"
	"time"

	"lashd/engine/receipt"
	"lashd/engine/task"
	"lashd/engine/task/live"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// sessionDeleted is who ends the tasks of a session that is deleted.
const sessionDeleted = "internal:session"

// moveToParent gives live tasks of a session that are meant to the one that it works for. What cannot go there stays.
func (ts *Tasks) moveToParent(ctx context.Context, id protocol.SessionID, meant func(protocol.TaskClosePolicy) bool) error {
	var moving []protocol.TaskID
	heir, err := do(ctx, ts.eng, id, func(_ context.Context, st *state) (protocol.SessionID, error) {
		for _, t := range st.tasks.All() {
			if meant(t.Spec.Close) && t.Spec.Kind != protocol.TaskMonitor { // a monitor belongs to its session
				moving = append(moving, t.ID)
			}
		}
		return st.row.Relation.Parent, nil
	})
	if err != nil || heir == "" {
		return err
	}
	for _, t := range moving { // one by one, so that a conflict affects only its task
		_, err := ts.transfer(ctx, &protocol.TaskTransferParams{SessionID: id, TaskIDs: []protocol.TaskID{t}, To: heir}, receipt.Request{})
		if err != nil {
			ts.eng.Log.Warn("cannot move task to parent session", "task", t, "session", id, "to", heir, "error", err)
		}
	}
	return nil
}

// leave gives the live tasks of a session that is to be deleted to whom they go, and tells which it leaves. A session that
// is not there, or cannot be loaded, leaves them where they are.
func (ts *Tasks) moveBeforeDelete(ctx context.Context, id protocol.SessionID) ([]protocol.Task, error) {
	if err := ts.moveToParent(ctx, id, survivesDelete); unlessGone(err) != nil {
		ts.eng.Log.Warn("cannot move tasks of deleted session to its parent; they are deleted with it", "session", id, "error", err)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return ts.ofSession(ctx, id, nil)
}

func movesOnClose(p protocol.TaskClosePolicy) bool { return p == protocol.CloseTransfer }

// outliving are the tasks that go on without their session; without a policy they are kept.
func survivesDelete(p protocol.TaskClosePolicy) bool { return p != protocol.CloseCancel }

// cancelClosing asks those tasks to end that go with their session.
func (ts sessionTasks) cancelClosing(ctx context.Context) error {
	return ts.move(ctx, func(d *live.Draft) {
		for _, t := range ts.All() {
			if t.Spec.Close == protocol.CloseCancel {
				d.Cancel(t, task.SessionClosed, "its session was closed")
			}
		}
	})
}

// endWork stops what is at work for a session that is deleted, waits for it, and removes what its tasks have put out. Detached commands
// are halted, as nobody knows of them any more, but for those that only others end.
func (ts *Tasks) endWork(ctx context.Context, id protocol.SessionID, tasks []protocol.Task) {
	all := ts.eng.workers.list(id)
	stop := &taskStop{by: sessionDeleted, reason: errDeleted.Error()}
	for _, w := range all {
		if t := w.now(); halts(&t) {
			w.end(stop)
		} else {
			w.cancel(stop)
		}
	}
	limit := time.NewTimer(stopTimeout)
	defer limit.Stop()
	for _, w := range all {
		select {
		case <-w.ended:
		case <-limit.C:
			ts.eng.Log.Error("worker still runs after its session was deleted", "task", w.id, "session", id)
			w.cancel(stop)
			limit.Reset(0)
		case <-ctx.Done():
			return // the next start removes the outputs
		}
	}
	for _, t := range tasks {
		if halts(&t) && !t.State.Final() {
			ts.haltDetached(ctx, &t) // tasks of a session that cannot be loaded have no worker
		}
		ts.dropOutput(&t)
	}
}

// halts tells whether a task is a detached command that the daemon ends.
func halts(t *protocol.Task) bool {
	return task.Detached(&t.Spec) && t.Spec.Cancel != protocol.CancelElsewhere
}

func (ts *Tasks) dropOutput(t *protocol.Task) {
	if err := ts.eng.commands.Outputs.Remove(t); err != nil {
		ts.eng.Log.Warn("cannot remove output of task", "task", t.ID, "error", err)
	}
}

// of are all tasks of a session, hidden ones included; those alone that are meant.
func (ts *Tasks) ofSession(ctx context.Context, id protocol.SessionID, meant func(*protocol.Task) bool) (found []protocol.Task, err error) {
	return ts.each(ctx, persistence.TaskQuery{Owner: id}, func(t *protocol.Task) bool { return meant == nil || meant(t) })
}

// each reads tasks in pages.
func (ts *Tasks) each(ctx context.Context, q persistence.TaskQuery, meant func(*protocol.Task) bool) (found []protocol.Task, err error) {
	for q.Hidden, q.Limit = true, maxTaskPage; ; {
		page, err := ts.eng.store.Tasks(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, t := range page {
			if q.After = t.Change; meant(&t) {
				found = append(found, t)
			}
		}
		if len(page) < q.Limit {
			return found, nil
		}
	}
}

// Prune lets go of what is stored of tasks that are over, a thousand at once. What is left of them still says that they
// were, and when the same is started again.
func (ts *Tasks) Prune(ctx context.Context, p *protocol.TaskPruneParams) (*protocol.TasksResult, error) {
	r, err := mutate(ctx, ts.eng, p.SessionID, "task/prune", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.TasksResult, error) {
		over, err := ts.ofSession(ctx, st.id, func(t *protocol.Task) bool {
			return t.State.Final() && !t.Pruned && (p.BeforeMs == 0 || t.EndedAtMs < p.BeforeMs)
		})
		if err != nil {
			return nil, err
		}
		r := &protocol.TasksResult{Data: []protocol.Task{}, Seq: st.row.Seq}
		c := st.change(persistence.Commit{})
		for _, t := range over[:min(len(over), maxTaskPage)] {
			left := task.Pruned(t)
			c.Tasks, r.Data = append(c.Tasks, persistence.TaskChange{Task: left}), append(r.Data, left)
		}
		c.Receipt = rc.With(r)
		if len(c.Tasks) > 0 || c.Receipt != nil {
			err = st.commit(ctx, c)
		}
		return r, err
	})
	if err != nil {
		return nil, err
	}
	for _, t := range r.Data {
		ts.dropOutput(&t)
	}
	ts.eng.tasksChanged.Notify()
	return r, nil
}

// tidyOutputs removes outputs that a crash has left of tasks which are not there any more, or are pruned, and halts those that are
// detached commands.
func (ts *Tasks) tidyOutputs(ctx context.Context) {
	left, err := ts.eng.commands.Outputs.Names()
	if err == nil && len(left) > 0 {
		_, err = ts.each(ctx, persistence.TaskQuery{}, func(t *protocol.Task) bool {
			if !t.Pruned {
				left.Keep(t)
			}
			return false
		})
	}
	if err == nil {
		err = errors.Join(ts.eng.commands.HaltAll(ctx, left), ts.eng.commands.Outputs.RemoveAll(left))
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		ts.eng.Log.Warn("cannot remove outputs of deleted tasks", "error", err)
	}
}
