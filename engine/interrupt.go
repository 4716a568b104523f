package engine

import (
	"cmp"
	"context"

	"lashd/engine/receipt"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Interrupt stops a turn: a queued one at once, a running one at the next point where it can stop. Exactly one of
// the interrupt and the turn's own end takes effect, and the status says which. InterruptRequested means that the
// request is durable and the turn will end as cancelled, even after a crash. InterruptTooLate means that the turn
// had ended.
func (ts *Turns) Interrupt(ctx context.Context, client protocol.ClientID, p *protocol.TurnInterruptParams) (*protocol.TurnInterruptResult, error) {
	t, err := ts.eng.store.Turn(ctx, p.TurnID)
	if err != nil {
		return nil, err
	}
	return mutate(ctx, ts.eng, t.Session, "turn/interrupt", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.TurnInterruptResult, error) {
		open, ok := st.queue.Turn(p.TurnID)
		after := st.holds.after(p.TurnID)
		switch {
		case !ok && after != nil:
			return after.cancel(ctx, evidenceOf(client, p), rc)
		case !ok:
			return &protocol.TurnInterruptResult{Status: protocol.InterruptTooLate, Seq: st.row.Seq}, nil
		case open.Cancel != nil:
			return &protocol.TurnInterruptResult{Status: protocol.InterruptAlready, Seq: st.row.Seq}, nil
		}
		evidence := evidenceOf(client, p)
		result := &protocol.TurnInterruptResult{Status: protocol.InterruptRequested, Seq: st.row.Seq}
		if open.State == protocol.TurnQueued {
			return result, st.turns.cancelQueued(ctx, open, evidence, rc, result)
		}
		return result, st.turns.requestCancel(ctx, open, evidence, rc, result)
	})
}

// evidenceOf records who cancels a turn and why; it is stored with the turn and returned in its outcome. A request
// without an idempotency key is recorded as internal:interrupt.
func evidenceOf(client protocol.ClientID, p *protocol.TurnInterruptParams) protocol.CancelEvidence {
	return protocol.CancelEvidence{RequestID: cmp.Or(p.Key(), "internal:interrupt"), Origin: string(client), Reason: p.Reason}
}

// cancelQueued ends a turn that has not started, in the commit of the request, and starts the next one. It runs on
// the actor.
func (ts *sessionTurns) cancelQueued(ctx context.Context, t persistence.StoredTurn, evidence protocol.CancelEvidence, rc receipt.Request, result any) error {
	end := unstarted{turn: t, outcome: protocol.TurnOutcome{Kind: protocol.OutcomeCancelled, Cancel: &evidence}}
	err := ts.endUnstarted(ctx, end, rc, result)
	if err == nil {
		ts.startNext()
	}
	return err
}

// requestCancel stores the request to cancel a turn, then cancels the context of its run. A turn that a crash
// interrupts in between is cancelled when it resumes. It runs on the actor; the goroutine of the turn stores the
// end.
func (ts *sessionTurns) requestCancel(ctx context.Context, t persistence.StoredTurn, evidence protocol.CancelEvidence, rc receipt.Request, result any) error {
	t.Cancel = &evidence
	c := ts.st.change(persistence.Commit{Receipt: rc.With(result)})
	ts.st.queue.In(c).SetTurn(c, t)
	if err := ts.st.commit(ctx, c); err != nil {
		return err
	}
	if ts.runningID() == t.ID {
		ts.current.cancel(&cancelled{evidence})
	}
	return nil
}
