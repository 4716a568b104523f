package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// asking names a question about a call: it is asked once in a turn, however often the daemon is started.
type asking struct {
	kind  protocol.DecisionKind
	call  protocol.CallID
	which protocol.Digest // of those that a call itself asks
}

// asks names a decision.
func asks(d protocol.Decision) asking {
	if d.Kind == protocol.DecisionQuestion {
		return asking{d.Kind, d.Call.CallID, d.ArgsHash}
	}
	return asking{kind: d.Kind, call: d.Call.CallID}
}

// question is what a call of a batch waits for before it runs.
type question struct {
	stage    *stage
	decision protocol.Decision
	again    bool // an earlier run of the daemon asked it
	open     *openDecision
}

// settle asks about the calls of a batch that need an answer before they run: whether they may, or what became of
// them. It returns once all have one.
func (r *run) settle(ctx context.Context, stages []*stage) error {
	asked, err := r.questions(stages)
	if err != nil || len(asked) == 0 {
		return err
	}
	err = r.persist(ctx, func(ctx context.Context, st *state) error { return st.open(ctx, r, asked) })
	if err != nil {
		return err
	}
	for _, q := range asked {
		r.trace(TraceWaitParked, tracedWait{Decision: q.open.ID, Kind: q.open.Kind, CallID: q.stage.call.CallID})
		select {
		case <-q.open.done:
			r.trace(TraceWaitResolved, tracedWait{Decision: q.open.ID, Kind: q.open.Kind, CallID: q.stage.call.CallID, Choice: q.open.Answer.Choice})
			q.stage.settled(q.open.Answer)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// questions are those that nobody has answered yet. What an earlier run of the daemon was answered holds.
func (r *run) questions(stages []*stage) ([]*question, error) {
	var asked []*question
	for _, s := range stages {
		if err := r.recallDeferral(s); err != nil {
			return nil, err
		}
		switch {
		case s.reply != nil, s.given != nil, s.waits():
		case s.began && s.repeatable(): // with the same call id, and without asking again
		case s.began:
			if err := r.dropQuestions(s); err != nil {
				return nil, err
			}
			asked = r.unlessAnswered(asked, s, r.outcomeQuestion(s.call))
		default:
			verdict, err := r.verdict(s)
			if err != nil {
				return nil, err
			}
			_, before := r.asked[asking{kind: protocol.DecisionApproval, call: s.call.CallID}]
			switch {
			case verdict.mode == protocol.ApproveDeny:
				s.deny(verdict)
			case verdict.mode == protocol.ApproveAsk, before:
				asked = r.unlessAnswered(asked, s, r.approvalQuestion(s, verdict))
			}
		}
	}
	return asked, nil
}

func (r *run) unlessAnswered(asked []*question, s *stage, d protocol.Decision) []*question {
	old, ok := r.asked[asks(d)]
	switch {
	case !ok || old.ArgsHash != d.ArgsHash || !slices.Equal(old.Places, d.Places):
		return append(asked, &question{stage: s, decision: d})
	case old.Answer == nil:
		return append(asked, &question{stage: s, decision: old, again: true})
	case old.Answer.Choice == protocol.ChooseRunAgain:
		return append(asked, &question{stage: s, decision: d}) // it was run again, and interrupted again
	}
	s.settled(old.Answer)
	return asked
}

// deny refuses a call.
func (s *stage) deny(v verdict) {
	if v.planning {
		s.fail(protocol.FailPermission, "plan_mode", s.call.Name+" was not called: the session is in plan mode, or was asked for from there. Only tools that read, search or think are called then. "+
			"Put the step into the plan; a person ends plan mode.", protocol.FromPolicy)
		return
	}
	whose := "the approval settings of this session deny the call"
	if v.beyond {
		whose = "the session or plugin that asked for this may not make the call"
	}
	s.fail(protocol.FailPermission, "denied", whose, protocol.FromPolicy)
}

func (r *run) approvalQuestion(s *stage, v verdict) protocol.Decision {
	call := s.call
	deadline := time.Duration(r.begin.Config.Approval.DeadlineMs) * time.Millisecond
	varying := s.entry.Terms().Varying
	prompt := fmt.Sprintf("May the tool %s run with %s?", call.Name, termtext.Brief(call.Args))
	if len(varying) > 0 {
		prompt += fmt.Sprintf(" Allowed for the session or always, it may run with any %s.", strings.Join(varying, ", "))
	}
	if w := s.approval; w != nil {
		prompt += fmt.Sprintf(" The plugin %s asks: %s", w.by, w.Reason)
		deadline = cmp.Or(time.Duration(w.DeadlineMs)*time.Millisecond, deadline)
	}
	if deadline == 0 {
		deadline = defaultDeadline
	}
	d := protocol.Decision{
		Kind: protocol.DecisionApproval, ArgsHash: protocol.DigestOf(call.Args), Default: protocol.ChooseReject,
		Prompt: prompt, Varying: varying, Places: s.about.real(),
		Choices: []protocol.DecisionChoice{protocol.ChooseAllowOnce, protocol.ChooseAllowSession, protocol.ChooseAllowAlways, protocol.ChooseReject},
	}
	if s.about.protected {
		d.Prompt += " It changes a file that can run code later, which is asked about each time."
	}
	if v.once {
		d.Choices = []protocol.DecisionChoice{protocol.ChooseAllowOnce, protocol.ChooseReject}
	}
	if v.silence == protocol.ApproveAllow {
		d.Default = protocol.ChooseAllowOnce
	}
	return r.decision(d, call, deadline)
}

func (r *run) outcomeQuestion(call protocol.ToolCall) protocol.Decision {
	deadline := defaultDeadline
	if ms := r.begin.Config.Unknown.DeadlineMs; ms != nil {
		deadline = time.Duration(*ms) * time.Millisecond
	}
	return r.decision(protocol.Decision{
		Kind: protocol.DecisionOutcome, Default: protocol.ChooseTellModel,
		Prompt: fmt.Sprintf("lashd was stopped while the tool %s ran with %s. What became of the call?", call.Name, termtext.Brief(call.Args)),
		Choices: []protocol.DecisionChoice{
			protocol.ChooseTellModel, protocol.ChooseHappened, protocol.ChooseNotHappened, protocol.ChooseRunAgain,
		},
	}, call, deadline)
}

func (r *run) decision(d protocol.Decision, call protocol.ToolCall, deadline time.Duration) protocol.Decision {
	d.ID, d.SessionID, d.TurnID, d.Call, d.OpenedAtMs = protocol.NewDecisionID(), r.session.id, r.id, &call, now()
	d.DeadlineMs = time.Now().Add(deadline).UnixMilli()
	return d
}

// open makes questions durable together with what led to them. One that an earlier run of the daemon asked is the same
// question: its answer counts.
func (st *state) open(ctx context.Context, r *run, asked []*question) error {
	c := st.turnChange(r)
	for _, q := range asked {
		if q.open = st.decisions[q.decision.ID]; q.open != nil {
			continue
		}
		if q.again { // it was answered since the turn was taken over
			var err error
			if q.open, err = st.answeredDecision(ctx, q.decision.ID); err != nil {
				return err
			}
			continue
		}
		q.open = st.decisionsIn(c).ask(c, q.decision)
	}
	t, ok := st.queue.Turn(r.id)
	if !ok {
		st.broken = ErrTurnNotActive
		return st.broken
	}
	if len(c.Decisions) > 0 && t.State != protocol.TurnWaiting { // what is open already has the turn wait since it was opened, or taken over
		t.State = protocol.TurnWaiting
		st.queueIn(c).SetTurn(c, t)
	}
	if len(c.Decisions)+len(c.Turns) == 0 {
		return nil
	}
	return st.commitTurn(ctx, r, c)
}

// settled takes a person's answer about a call.
func (s *stage) settled(a *protocol.DecisionAnswer) {
	switch a.Choice {
	case protocol.ChooseAllowOnce, protocol.ChooseAllowSession, protocol.ChooseAllowAlways, protocol.ChooseRunAgain:
	case protocol.ChooseHappened:
		s.answer(protocol.Succeed("The call was interrupted after it was started. Who was asked says that it took effect; its output is lost."))
	case protocol.ChooseNotHappened:
		s.fail(protocol.FailExecution, "not_executed", "The call was interrupted. Who was asked says that it took no effect.", protocol.FromRuntime)
	case protocol.ChooseReject:
		s.fail(protocol.FailPermission, "denied", "The call was not allowed: "+no(a)+".", protocol.FromPolicy)
	case protocol.ChooseCancelled:
		s.answer(protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "the turn was cancelled before the call was allowed"})
	default:
		s.answer(protocol.ToolOutput{Status: protocol.OutputUnknown, Text: "The call was started, then lashd was interrupted. " +
			"Nobody knows whether it took effect, and it was not run again. Look at the state of things before you repeat it."})
	}
}

// no is why a call that was asked about is not allowed. Who answered need not be a person: a client may have nobody to ask.
func no(a *protocol.DecisionAnswer) string {
	if a.By == "deadline" {
		return "the deadline passed without an answer"
	}
	return "it was asked about, and the answer was no"
}
