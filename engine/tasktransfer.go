package engine

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Transfer moves live tasks to another session, all or none, while they keep running. Their events
// and wakes go to the new session from then on. Ended tasks stay where they are and are missing in
// the result. Monitors cannot move. An id that the target session uses already fails the whole
// transfer.
func (ts *Tasks) Transfer(ctx context.Context, p *protocol.TaskTransferParams) (*protocol.TasksResult, error) {
	switch {
	case p.SessionID == p.To:
		return nil, param.Bad("/to", "must be another session")
	case len(p.TaskIDs) > maxWaited:
		return nil, param.Bad("/taskIds", "has %d tasks, at most %d can be moved at once", len(p.TaskIDs), maxWaited)
	}
	for i, id := range p.TaskIDs {
		if slices.Contains(p.TaskIDs[:i], id) {
			return nil, param.Bad("/taskIds/"+strconv.Itoa(i), "contains %s twice", id)
		}
	}
	return receipt.Once(ctx, ts.eng.receipts, "task/transfer", p.Key(), p, func(rc receipt.Request) (*protocol.TasksResult, error) {
		return ts.transfer(ctx, p, rc)
	})
}

// transfer runs in three steps, each on an actor: it takes the tasks out of one session's memory,
// stores them as the other's in one commit, and then either forgets them in the first session or
// puts them back. Until then, events of the tasks fail with ErrTaskLeaving and their workers retry
// them. After a crash the tasks belong to the session that the store says.
func (ts *Tasks) transfer(ctx context.Context, p *protocol.TaskTransferParams, rc receipt.Request) (*protocol.TasksResult, error) {
	// Without cancellation: the tasks that are taken out must be handed over or put back.
	moving, err := do(context.WithoutCancel(ctx), ts.eng, p.SessionID, func(_ context.Context, st *state) ([]protocol.Task, error) {
		return st.tasks.handOver(p.TaskIDs)
	})
	if err != nil {
		return nil, err
	}
	r, err := do(context.WithoutCancel(ctx), ts.eng, p.To, func(ctx context.Context, st *state) (*protocol.TasksResult, error) {
		return st.tasks.takeOver(ctx, p.SessionID, moving, rc)
	})
	_, failed := do(context.WithoutCancel(ctx), ts.eng, p.SessionID, func(_ context.Context, st *state) (struct{}, error) {
		st.tasks.HandedOver(moving, err == nil) // events of the tasks have waited for this
		return struct{}{}, nil
	})
	if err != nil {
		return nil, errors.Join(err, unlessGone(failed))
	}
	return r, nil
}

// unlessGone returns err, or nil if it says that the session is deleted or missing.
func unlessGone(err error) error {
	if isGone(err) {
		return nil
	}
	return err
}

// handOver marks live tasks as leaving the session and returns them. It ignores ids of ended and
// unknown tasks. It fails for a monitor's task, which must stay with the monitor. It runs on the
// actor of the old owner.
func (ts sessionTasks) handOver(ids []protocol.TaskID) ([]protocol.Task, error) {
	var moving []protocol.Task
	for _, id := range ids {
		t, live := ts.Find(id)
		switch {
		case live && t.Spec.Kind == protocol.TaskMonitor && t.Spec.Recovery != protocol.RecoverExternal:
			return nil, param.Bad("/taskIds", "contains %s, the task of a monitor, which cannot leave its session", id)
		case live:
			moving = append(moving, t)
		}
	}
	ts.HandOver(moving)
	return moving, nil
}

// takeOver commits the tasks as those of this session, and moves their workers with them. It runs
// on the actor of the new owner.
func (ts sessionTasks) takeOver(ctx context.Context, from protocol.SessionID, moving []protocol.Task, rc receipt.Request) (*protocol.TasksResult, error) {
	r := &protocol.TasksResult{Data: []protocol.Task{}}
	c := ts.st.change(persistence.Commit{})
	for _, t := range moving {
		r.Data = append(r.Data, ts.In(c).TakeOver(t, from))
	}
	r.Seq = c.Seq()
	c.Receipt = rc.With(r)
	if len(c.Tasks) == 0 && c.Receipt == nil {
		return r, nil
	}
	for _, t := range moving {
		if w := ts.st.eng.workers.of(from, t.ID); w != nil {
			c.Then(func() { w.move(ts.st.id) })
		}
	}
	return r, ts.st.commit(ctx, c)
}
