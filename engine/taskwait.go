package engine

import (
	"context"
	"slices"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/receipt"
	"lashd/engine/task/live"
	"lashd/rpc/protocol"
)

// maxWaited is the number of tasks that one request can wait for or transfer.
const maxWaited = 256

// Wait waits until tasks have ended as p.Rule says: all of them (the default), the first, or the
// first that succeeds. A timeout changes no task and is no error: TimedOut says so, and Live lists
// the tasks that still run.
//
// With losers "cancel" the other tasks are cancelled before Wait returns. Those of the session of
// the deciding task are cancelled in the commit of its end, the rest right after it.
func (ts *Tasks) Wait(ctx context.Context, client protocol.ClientID, p *protocol.TaskWaitParams) (*protocol.TaskWaitResult, error) {
	switch {
	case len(p.TaskIDs) == 0 || len(p.TaskIDs) > maxWaited:
		return nil, param.Bad("/taskIds", "must have between 1 and %d ids", maxWaited)
	case !slices.Contains([]protocol.TaskRule{"", protocol.WaitAll, protocol.WaitFirst, protocol.WaitFirstSuccess}, p.Rule):
		return nil, param.Bad("/rule", "must be all, first or firstSuccess")
	case !slices.Contains([]protocol.TaskLosers{"", protocol.LosersKeep, protocol.LosersCancel}, p.Losers):
		return nil, param.Bad("/losers", "must be keep or cancel")
	}
	if err := param.CheckWait("/timeoutMs", p.TimeoutMs); err != nil {
		return nil, err
	}
	end, err := ts.beginRace(ctx, client, p)
	if err != nil {
		return nil, err
	}
	defer end()
	r, err := ts.awaitRule(ctx, p, end)
	if err != nil || r.TimedOut || p.Losers != protocol.LosersCancel || len(r.Live) == 0 {
		return r, err
	}
	if err := ts.cancelLosers(ctx, client, r.Live); err != nil {
		return nil, err
	}
	return ts.poll(ctx, p)
}

// awaitRule waits until the rule is met or the timeout passes. It looks again after every change of
// any task.
//
// After a timeout it ends the race, lets pending commits finish and looks once more. Otherwise a
// commit that is under way could still cancel the losers although Wait reports a timeout.
func (ts *Tasks) awaitRule(ctx context.Context, p *protocol.TaskWaitParams, end func()) (*protocol.TaskWaitResult, error) {
	timeout, stop := after(p.TimeoutMs)
	defer stop()
	for late := false; ; {
		again := ts.eng.tasksChanged.Next()
		r, err := ts.poll(ctx, p)
		if err != nil || ruleMet(p.Rule, r) {
			return r, err
		}
		if late {
			r.TimedOut = true
			return r, nil
		}
		select {
		case <-again:
		case <-timeout:
			late = true
			end()
			ts.passBy(ctx, r.Live)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-ts.eng.done():
			return nil, ErrShuttingDown
		}
	}
}

// passBy waits until the sessions of the tasks have finished what their actors do now, such as a
// commit of a task's end. It sends each actor an empty function.
func (ts *Tasks) passBy(ctx context.Context, tasks []protocol.Task) {
	passed := map[protocol.SessionID]bool{}
	for _, t := range tasks {
		if !passed[t.SessionID] {
			passed[t.SessionID] = true
			// An error means that the session is deleted or unloaded, so no commit is pending.
			_, _ = do(ctx, ts.eng, t.SessionID, func(context.Context, *state) (struct{}, error) { return struct{}{}, nil })
		}
	}
}

// poll reads the tasks and sorts them into ended ones, in the order of their end, and live ones. It
// fails if the session cannot see one of them.
func (ts *Tasks) poll(ctx context.Context, p *protocol.TaskWaitParams) (*protocol.TaskWaitResult, error) {
	r := &protocol.TaskWaitResult{Settled: []protocol.Task{}, Live: []protocol.Task{}}
	for _, id := range p.TaskIDs {
		t, err := ts.visible(ctx, p.SessionID, id)
		switch {
		case err != nil:
			return nil, err
		case t.State.Final():
			r.Settled = append(r.Settled, t)
		default:
			r.Live = append(r.Live, t)
		}
	}
	// The store numbers the changes of all tasks in one order, so the number of a task's last change is its rank.
	slices.SortFunc(r.Settled, func(a, b protocol.Task) int { return int(a.Change - b.Change) })
	return r, nil
}

// ruleMet reports whether the tasks that ended satisfy the rule. If no task can succeed any more,
// firstSuccess is met too.
func ruleMet(rule protocol.TaskRule, r *protocol.TaskWaitResult) bool {
	switch rule {
	case protocol.WaitFirst:
		return len(r.Settled) > 0
	case protocol.WaitFirstSuccess:
		won := func(t protocol.Task) bool { return t.State == protocol.TaskCompleted }
		return slices.ContainsFunc(r.Settled, won) || len(r.Live) == 0
	}
	return len(r.Live) == 0
}

// withdrawWakes removes from the queue the wakes of tasks whose end a turn has learned by waiting.
// Wakes that a turn has read stay.
func (ts *Tasks) withdrawWakes(ctx context.Context, session protocol.SessionID, over []protocol.Task) error {
	_, err := do(ctx, ts.eng, session, func(ctx context.Context, st *state) (struct{}, error) {
		told := slices.DeleteFunc(slices.Clone(st.queue.Inputs()), func(in protocol.QueuedInput) bool {
			return !slices.ContainsFunc(over, func(t protocol.Task) bool { return in.Source == live.WakeSource(&t) })
		})
		if len(told) == 0 {
			return struct{}{}, nil
		}
		_, err := st.queue.withdraw(ctx, told, receipt.Request{})
		return struct{}{}, err
	})
	return err
}

// AwaitHidden implements plugin.TaskService. It waits until the session has no hidden tasks left,
// including those that start while it waits. It returns the first failure once, as
// *plugin.TaskFailedError. A hidden task that calls it does not wait for itself. When ctx ends, the
// tasks keep running.
func (s *services) AwaitHidden(ctx context.Context, session protocol.SessionID) error {
	session, err := s.resolveSession(ctx, session)
	if err != nil {
		return err
	}
	for {
		again := s.eng.tasksChanged.Next()
		live, err := do(ctx, s.eng, session, func(_ context.Context, st *state) (bool, error) { return st.tasks.drainHidden(s.work) })
		if err != nil || !live {
			return err
		}
		select {
		case <-again:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// drainHidden reports whether hidden tasks are live, apart from the task that asks. If none is, it
// returns the first failure since the last call as an error. It runs on the actor.
func (ts sessionTasks) drainHidden(asks *work) (live bool, err error) {
	var self protocol.TaskID
	if asks != nil {
		self = asks.id
	}
	if ts.AnyHidden(self) {
		return true, nil
	}
	if failed := ts.TakeFailedHidden(); failed != nil {
		return false, &plugin.TaskFailedError{Task: *failed}
	}
	return false, nil
}
