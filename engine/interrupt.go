package engine

import (
	"cmp"
	"context"

	"lashd/engine/receipt"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Interrupt stops a turn. Exactly one of the interrupt and the turn's own end wins, and the answer says which: once
// the answer is requested, the turn ends as cancelled.
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

func evidenceOf(client protocol.ClientID, p *protocol.TurnInterruptParams) protocol.CancelEvidence {
	return protocol.CancelEvidence{RequestID: cmp.Or(p.Key(), "internal:interrupt"), Origin: string(client), Reason: p.Reason}
}

func (ts *sessionTurns) cancelQueued(ctx context.Context, t persistence.StoredTurn, evidence protocol.CancelEvidence, rc receipt.Request, result any) error {
	end := unstarted{turn: t, outcome: protocol.TurnOutcome{Kind: protocol.OutcomeCancelled, Cancel: &evidence}}
	err := ts.endUnstarted(ctx, end, rc, result)
	if err == nil {
		ts.startNext()
	}
	return err
}

// requestCancel makes the wish durable, then stops the turn: a crash in between stops it after the restart.
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
