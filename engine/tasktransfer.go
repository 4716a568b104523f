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

// Transfer moves tasks to another session, all or none. They keep running.
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

// transfer takes the tasks out of the one session, stores them as the other's in one commit, and gives them back if that fails.
// A crash on the way leaves them with whom the store says.
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

func unlessGone(err error) error {
	if isGone(err) {
		return nil
	}
	return err
}

// handOver takes live tasks out of a session's memory. What is over, or is not there, stays where it is: it is no part of a
// transfer.
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
