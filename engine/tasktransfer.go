package engine

import (
	"context"
	"errors"
	"slices"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// TransferTasks gives tasks to another session, all of them or none. They go on meanwhile.
func (e *Engine) TransferTasks(ctx context.Context, p *protocol.TaskTransferParams) (*protocol.TasksResult, error) {
	switch {
	case p.SessionID == p.To:
		return nil, bad("/to", "must be another session")
	case len(p.TaskIDs) > maxWaited:
		return nil, bad("/taskIds", "are %d, at most %d", len(p.TaskIDs), maxWaited)
	}
	for i, id := range p.TaskIDs {
		if slices.Contains(p.TaskIDs[:i], id) {
			return nil, bad("/taskIds/"+itoa(i), "names %s a second time", id)
		}
	}
	return single(ctx, e, "task/transfer", p.Key(), p, func(rc receipt) (*protocol.TasksResult, error) {
		return e.transfer(ctx, p, rc)
	})
}

// transfer takes the tasks out of the one session, stores them as the other's in one commit, and gives them back if that fails.
// A crash on the way leaves them with whom the store says.
func (e *Engine) transfer(ctx context.Context, p *protocol.TaskTransferParams, rc receipt) (*protocol.TasksResult, error) {
	// Not with ctx: who takes them out must be there to give them back.
	moving, err := do(context.WithoutCancel(ctx), e, p.SessionID, func(_ context.Context, st *state) ([]protocol.Task, error) { return st.handOver(p.TaskIDs) })
	if err != nil {
		return nil, err
	}
	r, err := do(context.WithoutCancel(ctx), e, p.To, func(ctx context.Context, st *state) (*protocol.TasksResult, error) {
		return st.takeOver(ctx, p.SessionID, moving, rc)
	})
	_, failed := do(context.WithoutCancel(ctx), e, p.SessionID, func(_ context.Context, st *state) (struct{}, error) {
		st.handedOver(moving, err == nil)
		return struct{}{}, nil
	})
	if err != nil {
		return nil, errors.Join(err, unlessGone(failed))
	}
	return r, nil
}

// handedOver is the end of a transfer. What tasks had to tell meanwhile has waited for it.
func (st *state) handedOver(moving []protocol.Task, gone bool) {
	for _, t := range moving {
		delete(st.transfers, t.ID)
		if gone {
			delete(st.tasks, t.ID) // it is there again if the session was loaded again meanwhile
		} else {
			st.tasks[t.ID] = t
		}
	}
}

func unlessGone(err error) error {
	if isGone(err) {
		return nil
	}
	return err
}

// handOver takes live tasks out of the session's memory. What is over, or is not there, stays where it is: it is no part of a
// transfer.
func (st *state) handOver(ids []protocol.TaskID) ([]protocol.Task, error) {
	var moving []protocol.Task
	for _, id := range ids {
		t, live := st.tasks[id]
		switch {
		case live && t.Spec.Kind == protocol.TaskMonitor && t.Spec.Recovery != protocol.RecoverExternal:
			return nil, bad("/taskIds", "holds %s, which is a monitor's: it stays in its session", id)
		case live:
			moving = append(moving, t)
		}
	}
	for _, t := range moving {
		delete(st.tasks, t.ID)
		st.transfers[t.ID] = true
	}
	return moving, nil
}

func (st *state) takeOver(ctx context.Context, from protocol.SessionID, moving []protocol.Task, rc receipt) (*protocol.TasksResult, error) {
	r := &protocol.TasksResult{Data: []protocol.Task{}}
	c := st.change(persistence.Commit{})
	m := st.tasksIn(c)
	for _, t := range moving {
		next, _ := m.add(t, protocol.TaskEvent{Kind: protocol.TaskWasTransferred, SessionID: st.id})
		c.Tasks[len(c.Tasks)-1].From = from
		r.Data = append(r.Data, next)
	}
	r.Seq = c.Seq()
	c.Receipt = rc.with(r)
	if len(c.Tasks) == 0 && c.Receipt == nil {
		return r, nil
	}
	for _, t := range moving {
		if w := st.eng.workers.of(from, t.ID); w != nil {
			m.c.Then(func() { w.move(st.id) })
		}
	}
	return r, st.commit(ctx, c)
}
