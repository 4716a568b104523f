package engine

import (
	"cmp"
	"context"
	"time"

	"lashd/engine/decision"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// Ask implements tool.Asker. It opens a question of the running tool call and waits for the answer.
// A call outside a turn gets tool.ErrNoTurn, because it has no decisions.
func (h *toolHost) Ask(ctx context.Context, q tool.Question) (protocol.DecisionAnswer, error) {
	asks := h.maker.caller.decisions()
	if asks == nil {
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
	return asks.askPerson(ctx, h.call, q)
}

// askPerson asks a question of a call and waits for its answer. If an earlier run of the daemon
// asked the same question, askPerson continues with it, and an answer that it got still counts.
// Only a withdrawn question is asked again.
//
// If ctx ends because the call was cancelled, the question is withdrawn. If the turn is left
// instead, the question stays open for the next run.
func (a *asks) askPerson(ctx context.Context, s *toolCall, q tool.Question) (protocol.DecisionAnswer, error) {
	asked := &question{call: s, decision: a.personQuestion(s, q)}
	if before, ok := a.earlier[decision.KeyOf(asked.decision)]; ok && !(before.Answer != nil && before.Answer.Choice == protocol.ChooseCancelled) {
		asked.decision, asked.again = before, true
	}
	if err := a.open(ctx, []*question{asked}); err != nil {
		return protocol.DecisionAnswer{}, err
	}
	err := a.wait(ctx, asked.open)
	switch {
	case err == nil:
		return *asked.open.Answer, nil
	case a.suspended(): // the next run repeats the call and finds the question, or withdraws it
		return protocol.DecisionAnswer{}, err
	}
	return protocol.DecisionAnswer{}, cmp.Or(a.withdraw(asked.open.ID), err)
}

// personQuestion returns the next question of a call. Its hash covers the number of the question
// within the attempt, its text and its form, so that a repeated call finds the right earlier
// question.
func (a *asks) personQuestion(s *toolCall, q tool.Question) protocol.Decision {
	s.questionsAsked++
	wait := cmp.Or(q.Deadline, time.Duration(a.judge.config.Approval.DeadlineMs)*time.Millisecond, defaultDeadline)
	return a.decision(protocol.Decision{
		Kind: protocol.DecisionQuestion, Prompt: q.Prompt, Form: q.Form, URL: q.URL, Default: protocol.ChooseUnavailable,
		ArgsHash: protocol.DigestOf(encode(struct {
			N    int
			Text string
			Form []byte
		}{s.questionsAsked, q.Prompt, q.Form})),
		Choices: q.Choices(),
	}, s.ToolCall, wait)
}

// dropQuestions withdraws the open questions of a call that will not run again. Answered questions
// keep their answers.
func (a *asks) dropQuestions(s *toolCall) error {
	for key, d := range a.earlier {
		if key.Kind != protocol.DecisionQuestion || key.Call != s.CallID {
			continue
		}
		if err := a.withdraw(d.ID); err != nil {
			return err
		}
	}
	return nil
}
