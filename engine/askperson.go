package engine

import (
	"cmp"
	"context"
	"time"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// Ask implements tool.Asker.
func (h *toolHost) Ask(ctx context.Context, q tool.Question) (protocol.DecisionAnswer, error) {
	if h.run.owner == nil {
		return protocol.DecisionAnswer{}, tool.ErrNoTurn
	}
	if err := tool.CheckSchema(q.Form); err != nil {
		return protocol.DecisionAnswer{}, err
	}
	ctx, leave, err := h.enter(ctx)
	if err != nil {
		return protocol.DecisionAnswer{}, err
	}
	defer leave()
	return h.run.askPerson(ctx, h.stage, q)
}

// askPerson asks what a call wants to know. What an earlier run of the daemon was answered holds.
func (r *run) askPerson(ctx context.Context, s *stage, q tool.Question) (protocol.DecisionAnswer, error) {
	asked := &question{stage: s, decision: r.personQuestion(s, q)}
	if before, ok := r.asked[asks(asked.decision)]; ok && !(before.Answer != nil && before.Answer.Choice == protocol.ChooseCancelled) {
		asked.decision, asked.again = before, true
	}
	err := r.persist(ctx, func(ctx context.Context, st *state) error { return st.open(ctx, r, []*question{asked}) })
	if err != nil {
		return protocol.DecisionAnswer{}, err
	}
	open := asked.open
	r.trace(TraceWaitParked, tracedWait{Decision: open.ID, Kind: open.Kind, CallID: s.call.CallID})
	select {
	case <-open.done:
	case <-ctx.Done():
		if r.left() { // whoever makes the call again finds the question, and others withdraw it
			return protocol.DecisionAnswer{}, context.Cause(ctx)
		}
		if err := r.withdraw(open.ID); err != nil {
			return protocol.DecisionAnswer{}, err
		}
		return protocol.DecisionAnswer{}, context.Cause(ctx)
	}
	r.trace(TraceWaitResolved, tracedWait{Decision: open.ID, Kind: open.Kind, CallID: s.call.CallID, Choice: open.Answer.Choice})
	return *open.Answer, nil
}

// personQuestion is the next question of a call. Its hash tells it from the others of the call.
func (r *run) personQuestion(s *stage, q tool.Question) protocol.Decision {
	s.asking++
	wait := cmp.Or(q.Deadline, time.Duration(r.begin.Config.Approval.DeadlineMs)*time.Millisecond, defaultDeadline)
	return r.decision(protocol.Decision{
		Kind: protocol.DecisionQuestion, Prompt: q.Prompt, Form: q.Form, Default: protocol.ChooseUnavailable,
		ArgsHash: protocol.DigestOf(encode(struct {
			N    int
			Text string
			Form []byte
		}{s.asking, q.Prompt, q.Form})),
		Choices: []protocol.DecisionChoice{protocol.ChooseAnswer, protocol.ChooseReject},
	}, s.call, wait)
}

// dropQuestions withdraws what a call still asks that will not be made again. What has its answer keeps it.
func (r *run) dropQuestions(s *stage) error {
	for key, d := range r.asked {
		if key.kind != protocol.DecisionQuestion || key.call != s.call.CallID {
			continue
		}
		if err := r.withdraw(d.ID); err != nil {
			return err
		}
	}
	return nil
}
