package engine

import (
	"context"
	"slices"
	"time"

	"lashd/engine/approval"
	"lashd/engine/decision"
	"lashd/engine/trace"
	"lashd/rpc/protocol"
)

// asks opens the decisions of a turn about its calls and waits for their answers: approvals, unknown outcomes
// after a crash, questions of tools, and completions of deferred calls. Its methods run on the goroutine of the
// turn or of a call, never on the actor.
type asks struct {
	*turnStore
	judge   *judge
	earlier map[decision.Key]protocol.Decision // decisions of this turn that an earlier run of the daemon stored
}

// recall reads the decisions that an earlier run of the daemon stored for the turn.
func (a *asks) recall(ctx context.Context) error {
	earlier, err := a.eng.store.TurnDecisions(ctx, a.turn)
	if err != nil {
		return err
	}
	a.earlier = map[decision.Key]protocol.Decision{}
	for _, d := range earlier {
		if d.Call != nil {
			a.earlier[decision.KeyOf(d)] = d
		}
	}
	return nil
}

// question is a decision that a call of a batch needs before it can run.
type question struct {
	call     *toolCall
	decision protocol.Decision
	again    bool // stored by an earlier run of the daemon; its id is kept
	open     *decision.Open
}

// settle gets the answers that calls of a batch need before they run: whether they may run, or, for a call that a
// crash interrupted, what became of it. All questions are opened in one commit; settle returns when each has an
// answer. After a denial the call has its reply. Calls that can only fail get their reply without a question, which is
// stored at once, because the files may change.
func (b *batch) settle(ctx context.Context, calls []*toolCall) error {
	asked, err := b.asks.questions(calls)
	n := len(asked)
	if err == nil {
		asked, err = b.worthAsking(ctx, asked)
	}
	b.store.journal.decide(calls)
	if err != nil || n == 0 {
		return err
	}
	if len(asked) < n {
		rank(b.calls)
		b.keep()
	}
	defer b.store.journal.decide(calls)
	return b.asks.ask(ctx, asked)
}

// ask opens questions and applies their answers.
func (a *asks) ask(ctx context.Context, asked []*question) error {
	if err := a.open(ctx, asked); err != nil {
		return err
	}
	for _, q := range asked {
		if err := a.wait(ctx, q.open); err != nil {
			return err
		}
		q.call.applyDecision(&q.open.Decision)
	}
	return nil
}

// wait waits until a decision has an answer or ctx is done. The deadline of a decision gives it an answer, too.
func (a *asks) wait(ctx context.Context, open *decision.Open) error {
	a.traceWait(trace.WaitParked, open)
	select {
	case <-open.Done():
		a.traceWait(trace.WaitResolved, open)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// traceWait records in the trace that a call starts or stops waiting for a decision.
func (a *asks) traceWait(kind trace.Kind, d *decision.Open) {
	w := trace.Wait{Decision: d.ID, Kind: d.Kind, CallID: d.Call.CallID}
	if kind == trace.WaitResolved {
		w.Choice = d.Answer.Choice
	}
	a.trace.add(kind, w)
}

// questions returns the questions of a batch that have no answer yet, and applies answers that are stored. A call
// that may have run before a crash is not judged again: unless it is safe to repeat, a person decides what happens
// to it.
func (a *asks) questions(calls []*toolCall) ([]*question, error) {
	var asked []*question
	for _, s := range calls {
		if err := a.restoreDeferral(s); err != nil {
			return nil, err
		}
		switch s.state() {
		case callAnswered, callWaiting, callSettled, callStored:
		case callLost:
			if s.repeatable() { // with the same call id, and without asking again
				continue
			}
			if err := a.dropQuestions(s); err != nil {
				return nil, err
			}
			asked = a.addUnlessAnswered(asked, s, a.outcomeQuestion(s.ToolCall))
		default:
			s.judged = a.judge.callToJudge(s)
			verdict, err := a.verdict(s.judged)
			if err != nil {
				return nil, err
			}
			s.decided.Verdict = verdict
			_, before := a.earlier[decision.Key{Kind: protocol.DecisionApproval, Call: s.CallID}]
			switch {
			case verdict.Mode == protocol.ApproveDeny:
				s.deny(verdict)
			case verdict.Mode == protocol.ApproveAsk, before:
				asked = a.addUnlessAnswered(asked, s, a.approvalQuestion(s, verdict))
			}
		}
	}
	return asked, nil
}

// verdict judges a request. It reads a person's standing answers on the actor only if rules and mode leave the call
// to be asked about, since nothing else could change the verdict.
func (a *asks) verdict(q *approval.Request) (approval.Verdict, error) {
	v := q.Judge(approval.Answers{})
	if v.Mode != protocol.ApproveAsk || v.Once {
		return v, nil
	}
	answers, err := onTurnState(a.turnStore, func(ctx context.Context, st *state) (approval.Answers, error) {
		return st.decisions.standingFor(ctx, q.Policies)
	})
	if err != nil {
		return v, err
	}
	return q.Judge(answers), nil
}

// addUnlessAnswered adds a question to asked, unless an earlier run of the daemon has the answer, which it then
// applies. An answer counts only for the same arguments and paths. A repeated question keeps its stored decision.
// After an answer to run the call again, the call is asked about again if it was interrupted once more.
func (a *asks) addUnlessAnswered(asked []*question, s *toolCall, d protocol.Decision) []*question {
	old, ok := a.earlier[decision.KeyOf(d)]
	switch {
	case !ok || old.ArgsHash != d.ArgsHash || !slices.Equal(old.Places, d.Places):
		return append(asked, &question{call: s, decision: d})
	case old.Answer == nil:
		return append(asked, &question{call: s, decision: old, again: true})
	case old.Answer.Choice == protocol.ChooseRunAgain:
		return append(asked, &question{call: s, decision: d}) // the repeated run was interrupted, too
	}
	s.applyDecision(&old)
	return asked
}

// deny sets the reply of a call that policy refuses.
func (s *toolCall) deny(v approval.Verdict) { s.answer(v.Denial(s.Name)) }

// approvalQuestion returns the approval for a call.
func (a *asks) approvalQuestion(s *toolCall, v approval.Verdict) protocol.Decision {
	d := s.judged.Question(s.ToolCall, v)
	d.Detail.Editable = s.grant == nil // a grant is about certain arguments
	return a.decision(d, s.ToolCall, a.judge.deadline(s))
}

// decision fills in the ids, times and the call of a decision. deadline is the time until the default answer
// applies.
func (a *asks) decision(d protocol.Decision, call protocol.ToolCall, deadline time.Duration) protocol.Decision {
	d.ID, d.SessionID, d.TurnID, d.Call, d.OpenedAtMs = protocol.NewDecisionID(), a.session.id, a.turn, &call, now()
	d.DeadlineMs = time.Now().Add(deadline).UnixMilli()
	return d
}

// open commits questions together with the journal rows that led to them, and waits while the disk is full. A
// question that an earlier run of the daemon stored is not stored again: its answer counts, even if it arrived
// while the session was loading.
func (a *asks) open(ctx context.Context, asked []*question) error {
	return a.storeWhenSpace(ctx, func(ctx context.Context, st *state) error { return a.openOn(ctx, st, asked) })
}

// openOn is open on the actor. The turn's state becomes waiting in the same commit.
func (a *asks) openOn(ctx context.Context, st *state, asked []*question) error {
	c := a.change(st)
	for _, q := range asked {
		if q.open = st.decisions.Find(q.decision.ID); q.open != nil {
			continue
		}
		if q.again { // answered since the turn was resumed
			var err error
			if q.open, err = st.decisions.fetchAnswered(ctx, q.decision.ID); err != nil {
				return err
			}
			continue
		}
		q.open = st.decisions.Ask(c, q.decision)
	}
	for _, q := range asked {
		a.attend(q)
	}
	t, ok := st.queue.Turn(a.turn)
	if !ok {
		st.broken = ErrTurnNotActive
		return st.broken
	}
	if len(c.Decisions) > 0 && t.State != protocol.TurnWaiting { // with open questions only, the turn is already waiting
		t.State = protocol.TurnWaiting
		st.queue.In(c).SetTurn(c, t)
	}
	if len(c.Decisions)+len(c.Turns) == 0 {
		return nil
	}
	return a.commit(ctx, st, c)
}
