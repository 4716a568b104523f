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
	result := &protocol.QueueCancelResult{}
	c := &persistence.Commit{}
	gone := map[protocol.InputID]bool{}
	for _, in := range targets {
		status := protocol.CancelDone
		if t, ok := st.openTurn(in.TurnID); in.State != protocol.InputPendingActive && (!ok || t.State != protocol.TurnQueued) {
			status = protocol.CancelAlreadyClaimed
		} else {
			in.State = protocol.InputCancelled
			c.Inputs = append(c.Inputs, in)
			gone[in.ID] = true
		}
		result.Data = append(result.Data, protocol.CancelledInput{InputID: in.ID, Status: status})
	}
	left := slices.DeleteFunc(slices.Clone(st.inputs), func(in protocol.QueuedInput) bool { return gone[in.ID] })
	events := st.emptied(c, left, "its input was withdrawn")
	if len(gone) == 0 {
		result.Seq = st.row.Seq
		return result, nil
	}
	events = append(events, queueChanged(waitingOf(left, st.turns)))
	result.Seq = st.row.Seq + protocol.Seq(len(events))
	c.Receipt = rc.with(result)
	if _, err := st.commit(ctx, c, events...); err != nil {
		return nil, err
	}
	st.inputs = left
	st.withoutEmptied(c)
	return result, nil
}

// withoutEmptied forgets the turns that a commit has ended because they had no input any more.
func (st *state) withoutEmptied(c *persistence.Commit) {
	for _, t := range c.Turns {
		st.turns = st.turnsWithout(t.ID)
		st.turnOver(t.ID, t.Report)
	}
}

// emptied ends the queued turns that have no input any more, and says why they have none.
func (st *state) emptied(c *persistence.Commit, left []protocol.QueuedInput, why string) []logEvent {
	var events []logEvent
	for _, t := range st.turns {
		has := slices.ContainsFunc(left, func(in protocol.QueuedInput) bool { return in.TurnID == t.ID })
		if has || t.State != protocol.TurnQueued {
			continue
		}
		outcome := protocol.TurnOutcome{Kind: protocol.OutcomeCancelled, Cancel: &protocol.CancelEvidence{RequestID: "internal:queue", Reason: why}}
		t.State = protocol.TurnCancelled
		t.Report = &protocol.TurnReport{TurnID: t.ID, SessionID: st.id, State: t.State, Outcome: &outcome, AcceptedAtMs: t.AcceptedMs}
		c.Turns = append(c.Turns, t.Turn)
		events = append(events, logEvent{Event: protocol.Event{Type: protocol.EventTurnCompleted, TurnID: t.ID, Outcome: &outcome, Usage: &protocol.Usage{}}})
	}
	return events
}
