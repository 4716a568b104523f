package engine

import (
	"context"
	"errors"
	"slices"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Queue lists inputs, and tells why none of those that wait starts.
func (e *Engine) Queue(ctx context.Context, p *protocol.QueueListParams) (*protocol.QueueListResult, error) {
	return do(ctx, e, p.SessionID, func(ctx context.Context, st *state) (*protocol.QueueListResult, error) {
		result := &protocol.QueueListResult{Data: list(slices.Clone(st.inputs)), Hold: st.hold()}
		if !p.All {
			return result, nil
		}
		inputs, err := e.store.Inputs(ctx, st.key, 200)
		result.Data = list(inputs)
		return result, err
	})
}

// hold is why no turn of the queue starts now.
func (st *state) hold() protocol.QueueHold {
	switch {
	case len(st.waiting()) == 0:
		return protocol.HoldEmpty
	case st.eng.stopping():
		return protocol.HoldStopping
	case st.current != nil && st.waitingFor(st.current.id) > 0:
		return protocol.HoldDecision
	case st.current != nil:
		return protocol.HoldTurn
	case st.writer != nil:
		return protocol.HoldCommand
	case st.foreign(st.turns[0]):
		return protocol.HoldForeign
	case st.eng.store.Space() != nil:
		return protocol.HoldSpace
	}
	return protocol.HoldRetry
}

// CancelInput withdraws inputs that no turn has taken in.
func (e *Engine) CancelInput(ctx context.Context, p *protocol.QueueCancelParams) (*protocol.QueueCancelResult, error) {
	return mutate(ctx, e, p.SessionID, "queue/cancel", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.QueueCancelResult, error) {
		first := slices.IndexFunc(st.inputs, func(in protocol.QueuedInput) bool { return in.ID == p.InputID })
		if first < 0 {
			return st.endedInput(ctx, p.InputID)
		}
		last := first + 1
		if p.Suffix {
			last = len(st.inputs)
		}
		return st.withdraw(ctx, st.inputs[first:last], rc)
	})
}

func (st *state) endedInput(ctx context.Context, id protocol.InputID) (*protocol.QueueCancelResult, error) {
	status := protocol.CancelNotFound
	in, err := st.eng.store.Input(ctx, st.key, id)
	switch {
	case errors.Is(err, persistence.ErrNotFound):
	case err != nil:
		return nil, err
	case in.State == protocol.InputCancelled:
		status = protocol.CancelAlreadyCancelled
	default:
		status = protocol.CancelAlreadyCompleted
	}
	return &protocol.QueueCancelResult{Data: []protocol.CancelledInput{{InputID: id, Status: status}}, Seq: st.row.Seq}, nil
}

// withdraw cancels inputs, and the turns that are left without any. One commit does it all.
func (st *state) withdraw(ctx context.Context, targets []protocol.QueuedInput, rc receipt) (*protocol.QueueCancelResult, error) {
	result := &protocol.QueueCancelResult{Seq: st.row.Seq}
	gone := map[protocol.InputID]bool{}
	for _, in := range targets {
		status := protocol.CancelDone
		if t, ok := st.openTurn(in.TurnID); in.State != protocol.InputPendingActive && (!ok || t.State != protocol.TurnQueued) {
			status = protocol.CancelAlreadyClaimed
		} else {
			gone[in.ID] = true
		}
		result.Data = append(result.Data, protocol.CancelledInput{InputID: in.ID, Status: status})
	}
	if len(gone) == 0 {
		return result, nil
	}
	c := st.change(persistence.Commit{})
	q := st.queueIn(c)
	q.cancelInputs(c, "", func(in protocol.QueuedInput) bool { return gone[in.ID] })
	q.endEmptied(c, "its input was withdrawn")
	q.tellWaiting(c)
	result.Seq = c.Seq()
	c.Receipt = rc.with(result)
	if err := st.commit(ctx, c); err != nil {
		return nil, err
	}
	return result, nil
}
