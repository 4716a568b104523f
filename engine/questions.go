package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"lashd/engine/approval"
	"lashd/engine/decision"
	"lashd/engine/trace"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// questionKey names a question about a call: it is asked once in a turn, however often the daemon is started.
type questionKey struct {
	kind  protocol.DecisionKind
	call  protocol.CallID
	which protocol.Digest // hash of the question, for questions that the call itself asks; else empty
}

// questionKeyOf names a decision.
func questionKeyOf(d protocol.Decision) questionKey {
	if d.Kind == protocol.DecisionQuestion {
		return questionKey{d.Kind, d.Call.CallID, d.ArgsHash}
	}
	return questionKey{kind: d.Kind, call: d.Call.CallID}
}

// asks are the questions of a turn about its calls, and the waits for what calls have deferred. Whoever asks waits beside the actor.
type asks struct {
	*turnStore
	judge   *judge
	earlier map[questionKey]protocol.Decision // decisions of this turn that an earlier run of the daemon stored
}

// recall reads what an earlier run of the daemon asked.
func (a *asks) recall(ctx context.Context) error {
	earlier, err := a.eng.store.TurnDecisions(ctx, a.turn)
	if err != nil {
		return err
	}
	a.earlier = map[questionKey]protocol.Decision{}
	for _, d := range earlier {
		if d.Call != nil {
			a.earlier[questionKeyOf(d)] = d
		}
	}
	return nil
}

// question is what a call of a batch waits for before it runs.
type question struct {
	call     *toolCall
	decision protocol.Decision
	again    bool // stored by an earlier run of the daemon; its id is kept
	open     *decision.Open
}

// settle asks about the calls of a batch that need an answer before they run: whether they may, or what became of
// them. It returns once all have one.
func (a *asks) settle(ctx context.Context, calls []*toolCall) error {
	asked, err := a.questions(calls)
	if err != nil || len(asked) == 0 {
		return err
	}
	if err := a.open(ctx, asked); err != nil {
		return err
	}
	for _, q := range asked {
		if err := a.wait(ctx, q.open); err != nil {
			return err
		}
		q.call.applyAnswer(q.open.Answer)
	}
	return nil
}

// wait waits for the answer to a decision, until ctx is done.
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

func (a *asks) traceWait(kind trace.Kind, d *decision.Open) {
	w := trace.Wait{Decision: d.ID, Kind: d.Kind, CallID: d.Call.CallID}
	if kind == trace.WaitResolved {
		w.Choice = d.Answer.Choice
	}
	a.trace.add(kind, w)
}

// questions are those that nobody has answered yet. What an earlier run of the daemon was answered holds.
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
			verdict, err := a.verdict(s)
			if err != nil {
				return nil, err
			}
			_, before := a.earlier[questionKey{kind: protocol.DecisionApproval, call: s.CallID}]
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

// verdict judges a call. A person's standing answers are read only where they could make a difference.
func (a *asks) verdict(s *toolCall) (approval.Verdict, error) {
	v := a.judge.judgeUnasked(s)
	if v.Mode != protocol.ApproveAsk || v.Once {
		return v, nil
	}
	answers, err := onTurnState(a.turnStore, func(ctx context.Context, st *state) (approval.Answers, error) {
		return st.decisions.standingFor(ctx, s.judged.Policies)
	})
	if err != nil {
		return v, err
	}
	return s.judged.Judge(answers), nil
}

func (a *asks) addUnlessAnswered(asked []*question, s *toolCall, d protocol.Decision) []*question {
	old, ok := a.earlier[questionKeyOf(d)]
	switch {
	case !ok || old.ArgsHash != d.ArgsHash || !slices.Equal(old.Places, d.Places):
		return append(asked, &question{call: s, decision: d})
	case old.Answer == nil:
		return append(asked, &question{call: s, decision: old, again: true})
	case old.Answer.Choice == protocol.ChooseRunAgain:
		return append(asked, &question{call: s, decision: d}) // the repeated run was interrupted, too
	}
	s.applyAnswer(old.Answer)
	return asked
}

// deny refuses a call.
func (s *toolCall) deny(v approval.Verdict) {
	if v.Planning {
		s.fail(protocol.FailPermission, "plan_mode", s.Name+" was not called: the session is in plan mode, or a session in plan mode requested this. Plan mode allows only tools that read, search or think. "+
			"Add this step to the plan; only a person can end plan mode.", protocol.FromPolicy)
		return
	}
	whose := "the approval settings of this session deny the call"
	if v.Beyond {
		whose = "the session or plugin that requested this is not allowed to make the call"
	}
	s.fail(protocol.FailPermission, "denied", whose, protocol.FromPolicy)
}

func (a *asks) approvalQuestion(s *toolCall, v approval.Verdict) protocol.Decision {
	call := s.ToolCall
	varying := s.entry.Terms().Varying
	prompt := fmt.Sprintf("Allow the tool %s to run with %s?", call.Name, termtext.Brief(call.Args))
	if len(varying) > 0 {
		prompt += fmt.Sprintf(" If you allow it for the session or always, it may run with any %s.", strings.Join(varying, ", "))
	}
	if w := s.approval; w != nil {
		prompt += fmt.Sprintf(" The plugin %s asks: %s", w.by, w.Reason)
	}
	d := protocol.Decision{
		Kind: protocol.DecisionApproval, ArgsHash: protocol.DigestOf(call.Args), Default: defaultAnswer(v),
		Prompt: prompt, Varying: varying, Places: s.judged.Call.Places(),
		Choices: []protocol.DecisionChoice{protocol.ChooseAllowOnce, protocol.ChooseAllowSession, protocol.ChooseAllowAlways, protocol.ChooseReject},
	}
	if s.judged.Protected() {
		d.Prompt += " It changes a file that can run code later, so lashd asks each time."
	}
	if v.Once {
		d.Choices = []protocol.DecisionChoice{protocol.ChooseAllowOnce, protocol.ChooseReject}
	}
	return a.decision(d, call, a.judge.deadline(s))
}

func (a *asks) decision(d protocol.Decision, call protocol.ToolCall, deadline time.Duration) protocol.Decision {
	d.ID, d.SessionID, d.TurnID, d.Call, d.OpenedAtMs = protocol.NewDecisionID(), a.session.id, a.turn, &call, now()
	d.DeadlineMs = time.Now().Add(deadline).UnixMilli()
	return d
}

// open makes questions durable together with what led to them. One that an earlier run of the daemon asked is the same
// question: its answer counts.
func (a *asks) open(ctx context.Context, asked []*question) error {
	return a.storeWhenSpace(ctx, func(ctx context.Context, st *state) error { return a.openOn(ctx, st, asked) })
}

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

// rejectionReason is why a call that was asked about is not allowed. Who answered need not be a person: a client may have nobody to ask.
func rejectionReason(a *protocol.DecisionAnswer) string {
	if a.By == "deadline" {
		return "the approval request expired without an answer"
	}
	return "the approval request was denied"
}
