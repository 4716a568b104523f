package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lashd/engine/decision"
	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// defaultDeadline is how long a question stays open, unless the session says otherwise.
const defaultDeadline = 10 * time.Minute

// answeredDecision is a decision that has its answer in the store.
func (st *state) answeredDecision(ctx context.Context, id protocol.DecisionID) (*decision.Open, error) {
	d, err := st.eng.store.Decision(ctx, id)
	if err == nil && d.Answer == nil {
		err = fmt.Errorf("decision %s is open in the store only: %w", id, persistence.ErrFenced)
		st.broken = err
	}
	if err != nil {
		return nil, err
	}
	return decision.Answered(d), nil
}

func (st *state) expire(o *decision.Open) error {
	return st.resolve(st.ctx, o, protocol.DecisionAnswer{Choice: o.Default, By: "deadline", AtMs: now()}, nil)
}

// resolve makes an answer durable, with the receipt of whoever gave it; nil: nobody did. Then whoever waits goes on. The first answer
// wins: a decision is resolved once.
func (st *state) resolve(ctx context.Context, o *decision.Open, answer protocol.DecisionAnswer, rc func(protocol.Seq) *persistence.Receipt) error {
	c := st.change(persistence.Commit{})
	st.decisions.Answer(c, o, answer)
	if rc != nil {
		c.Receipt = rc(c.Seq())
	}
	st.approved.Remember(c, o.Decision, &answer, st.row.Cwd, st.row.Authority.Ceiling != nil)
	if t, _ := st.queue.Turn(o.TurnID); t.State == protocol.TurnWaiting && o.ForPerson() && st.decisions.AskedBy(o.TurnID) == 1 {
		t.State = protocol.TurnRunning
		st.queueIn(c).SetTurn(c, t)
	}
	return st.commit(ctx, c)
}

// Respond answers a decision. The answer that came first counts, whoever gave it.
func (e *Engine) Respond(ctx context.Context, client protocol.ClientID, p *protocol.DecisionRespondParams) (*protocol.DecisionRespondResult, error) {
	d, err := e.store.Decision(ctx, p.DecisionID)
	if err != nil {
		return nil, err
	}
	return mutate(ctx, e, d.SessionID, "decision/respond", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.DecisionRespondResult, error) {
		open := st.decisions.Find(p.DecisionID)
		if open == nil {
			return st.answered(ctx, p.DecisionID)
		}
		if !open.ForPerson() {
			return nil, param.Bad("/decisionId", "is of a call that tool/complete completes")
		}
		if !slices.Contains(open.Choices, p.Choice) {
			return nil, param.NotOneOf("/choice", open.Choices)
		}
		if open.Kind == protocol.DecisionApproval && p.Choice != protocol.ChooseReject && p.ArgsHash != open.ArgsHash {
			return nil, param.Bad("/argsHash", "must be the decision's argsHash, as an approval is good for exactly those arguments; decision/list shows it")
		}
		if err := tool.CheckValue(open.Form, p.Value); err != nil && p.Choice == protocol.ChooseAnswer {
			return nil, param.Bad("/value", "does not fit the decision's form: %v", err)
		}
		answer := protocol.DecisionAnswer{Choice: p.Choice, Value: p.Value, By: string(client), AtMs: now()}
		result := &protocol.DecisionRespondResult{Answer: answer, Won: true}
		return result, st.resolve(ctx, open, answer, func(seq protocol.Seq) *persistence.Receipt {
			result.Seq = seq
			return rc.With(result)
		})
	})
}

func (st *state) answered(ctx context.Context, id protocol.DecisionID) (*protocol.DecisionRespondResult, error) {
	d, err := st.answeredDecision(ctx, id)
	if err != nil {
		return nil, err
	}
	return &protocol.DecisionRespondResult{Answer: *d.Answer, Seq: st.row.Seq}, nil
}
