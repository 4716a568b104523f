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

// sessionDeleted is the origin recorded for tasks that are stopped because their session is
// deleted.
const sessionDeleted = "internal:session"

// moveToParent transfers the live tasks of a session that match to its parent session. Each task is
// moved in a commit of its own: a task that cannot be moved, such as one whose id the parent has
// already, stays and is logged. Monitors never move. Without a parent nothing happens. An error
// means only that the session could not be asked.
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

// moveBeforeDelete moves the tasks that survive a deletion to the parent session and returns all
// tasks that remain. If the session is missing or cannot be loaded, none are moved.
func (ts *Tasks) moveBeforeDelete(ctx context.Context, id protocol.SessionID) ([]protocol.Task, error) {
	if err := ts.moveToParent(ctx, id, survivesDelete); unlessGone(err) != nil {
		ts.eng.Log.Warn("cannot move tasks of deleted session to its parent; they are deleted with it", "session", id, "error", err)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return ts.ofSession(ctx, id, nil)
}

// movesOnClose reports whether a task moves to the parent when its session is closed.
func movesOnClose(p protocol.TaskClosePolicy) bool { return p == protocol.CloseTransfer }

// survivesDelete reports whether a task moves to the parent when its session is deleted. Tasks
// without a policy do.
func survivesDelete(p protocol.TaskClosePolicy) bool { return p != protocol.CloseCancel }

// cancelClosing cancels the tasks whose policy ends them when their session closes.
func (ts sessionTasks) cancelClosing(ctx context.Context) error {
	return ts.move(ctx, func(d *live.Draft) {
		for _, t := range ts.All() {
			if t.Spec.Close == protocol.CloseCancel {
				d.Cancel(t, task.SessionClosed, "its session was closed")
			}
		}
	})
}

// endWork stops the workers of a deleted session, waits up to stopTimeout for them, and removes the
// tasks' outputs. Detached commands are halted unless only an outside system may end them, because
// no session tracks them any more. tasks are the rows that were read before the deletion.
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

// halts reports whether a task is a detached command that the daemon may halt.
func halts(t *protocol.Task) bool {
	return task.Detached(&t.Spec) && t.Spec.Cancel != protocol.CancelElsewhere
}

// dropOutput removes the output files of a task. Failures are only logged; the next start tries
// again.
func (ts *Tasks) dropOutput(t *protocol.Task) {
	if err := ts.eng.commands.Outputs.Remove(t); err != nil {
		ts.eng.Log.Warn("cannot remove output of task", "task", t.ID, "error", err)
	}
}

// ofSession returns the tasks of a session, including hidden ones and those that have ended. A nil
// filter accepts all.
func (ts *Tasks) ofSession(ctx context.Context, id protocol.SessionID, meant func(*protocol.Task) bool) (found []protocol.Task, err error) {
	return ts.each(ctx, persistence.TaskQuery{Owner: id}, func(t *protocol.Task) bool { return meant == nil || meant(t) })
}

// each returns the tasks that a query finds and the filter accepts. It reads pages of maxTaskPage,
// hidden tasks included.
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

// Prune deletes the details and outputs of ended tasks, up to maxTaskPage at once; the result lists
// them, so a client repeats the request until the list is empty. p.BeforeMs limits it to tasks that
// ended earlier. A short row of each task stays, so that starting the same task again still finds
// that it has run.
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

// tidyOutputs removes outputs that a crash left behind: those of tasks that are pruned or no longer
// exist. It also halts detached commands among them. It runs when the daemon starts.
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
