package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// defaultDeadline is how long a question stays open, unless the session says otherwise.
const defaultDeadline = 10 * time.Minute

// openDecision is a question that waits, and whoever waits for its answer.
type openDecision struct {
	protocol.Decision
	done  chan struct{} // closed once Answer is set
	timer *time.Timer
}

func (d *openDecision) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}

func (st *state) loadDecisions() error {
	open, err := st.eng.store.OpenDecisions(st.ctx, st.key)
	if err != nil {
		return err
	}
	for _, d := range open {
		st.watch(d)
	}
	return nil
}

// watch keeps an open decision in memory and lets its deadline answer it.
func (st *state) watch(d protocol.Decision) *openDecision {
	o := &openDecision{Decision: d, done: make(chan struct{})}
	st.decisions[d.ID] = o
	if d.DeadlineMs > 0 {
		eng, id, session, ctx := st.eng, d.ID, st.id, st.ctx
		o.timer = time.AfterFunc(time.Until(time.UnixMilli(d.DeadlineMs)), func() {
			_, err := do(ctx, eng, session, func(ctx context.Context, st *state) (struct{}, error) {
				return struct{}{}, st.expire(ctx, id)
			})
			if err != nil && ctx.Err() == nil {
				eng.Log.Error("decision did not expire", "decision", id, "error", err)
			}
		})
	}
	return o
}

func (st *state) expire(ctx context.Context, id protocol.DecisionID) error {
	d, open := st.decisions[id]
	if !open {
		return nil
	}
	return st.resolve(ctx, d, protocol.DecisionAnswer{Choice: d.Default, By: "deadline", AtMs: now()}, receipt{}, nil)
}

// resolve makes an answer durable, then lets whoever waits go on. The first answer wins: a decision is resolved once.
func (st *state) resolve(ctx context.Context, d *openDecision, answer protocol.DecisionAnswer, rc receipt, result any) error {
	answered := d.Decision
	answered.Answer = &answer
	c := &persistence.Commit{Decisions: []protocol.Decision{answered}, Receipt: rc.with(result)}
	approved := st.remember(c, answered, answer.By)
	if t, ok := st.openTurn(d.TurnID); ok && t.State == protocol.TurnWaiting && st.waitingFor(d.TurnID) == 1 {
		t.State = protocol.TurnRunning
		c.Turns = []persistence.Turn{t.Turn}
	}
	event := logEvent{Event: protocol.Event{Type: protocol.EventDecisionResolved, TurnID: d.TurnID, Decision: &answered}}
	if _, err := st.commit(ctx, c, event); err != nil {
		return err
	}
	st.approved = approved
	for _, t := range c.Turns {
		st.setTurnState(t.ID, t.State)
	}
	d.stop()
	d.Answer = &answer
	delete(st.decisions, d.ID)
	close(d.done)
	return nil
}

func (st *state) waitingFor(id protocol.TurnID) int {
	n := 0
	for _, d := range st.decisions {
		if d.TurnID == id {
			n++
		}
	}
	return n
}

func (st *state) openTurn(id protocol.TurnID) (persistence.StoredTurn, bool) {
	i := slices.IndexFunc(st.turns, func(t persistence.StoredTurn) bool { return t.ID == id })
	if i < 0 {
		return persistence.StoredTurn{}, false
	}
	return st.turns[i], true
}

func (st *state) setTurnState(id protocol.TurnID, s protocol.TurnState) {
	for i := range st.turns {
		if st.turns[i].ID == id {
			st.turns[i].State = s
		}
	}
}

// Respond answers a decision. The answer that came first counts, whoever gave it.
func (e *Engine) Respond(ctx context.Context, client protocol.ClientID, p *protocol.DecisionRespondParams) (*protocol.DecisionRespondResult, error) {
	d, err := e.store.Decision(ctx, p.DecisionID)
	if err != nil {
		return nil, err
	}
	return mutate(ctx, e, d.SessionID, "decision/respond", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.DecisionRespondResult, error) {
		open, ok := st.decisions[p.DecisionID]
		if !ok {
			return st.answered(ctx, p.DecisionID)
		}
		if !slices.Contains(open.Choices, p.Choice) {
			return nil, bad("/choice", "must be one of %v", open.Choices)
		}
		if open.Kind == protocol.DecisionApproval && p.Choice != protocol.ChooseReject && p.ArgsHash != open.ArgsHash {
			return nil, bad("/argsHash", "must be the decision's argsHash: an approval is good for exactly those arguments")
		}
		answer := protocol.DecisionAnswer{Choice: p.Choice, Value: p.Value, By: string(client), AtMs: now()}
		result := &protocol.DecisionRespondResult{Answer: answer, Won: true, Seq: st.row.Seq + 1}
		return result, st.resolve(ctx, open, answer, rc, result)
	})
}

func (st *state) answered(ctx context.Context, id protocol.DecisionID) (*protocol.DecisionRespondResult, error) {
	d, err := st.eng.store.Decision(ctx, id)
	if err != nil {
		return nil, err
	}
	if d.Answer == nil {
		return nil, fmt.Errorf("decision %s is open in the store only: %w", id, persistence.ErrFenced)
	}
	return &protocol.DecisionRespondResult{Answer: *d.Answer, Seq: st.row.Seq}, nil
}

// Decisions lists open decisions, of one session or of all.
func (e *Engine) Decisions(ctx context.Context, p *protocol.DecisionListParams) (*protocol.DecisionListResult, error) {
	key := int64(0)
	if p.SessionID != "" {
		row, err := e.store.Session(ctx, p.SessionID)
		if err != nil {
			return nil, err
		}
		key = row.Key
	}
	open, err := e.store.OpenDecisions(ctx, key)
	return &protocol.DecisionListResult{Data: list(open)}, err
}

// settle asks about the calls of a batch that need an answer before they run: whether they may, or what became of
// them. It returns once all have one.
func (r *run) settle(ctx context.Context, stages []*stage) error {
	asked, err := r.questions(ctx, stages)
	if err != nil || len(asked) == 0 {
		return err
	}
	var ask []protocol.Decision
	for _, q := range asked {
		ask = append(ask, q.decision)
	}
	open, err := r.open(ctx, ask)
	if err != nil {
		return err
	}
	for i, d := range open {
		select {
		case <-d.done:
			asked[i].stage.settled(d.Answer)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

type question struct {
	stage    *stage
	decision protocol.Decision
}

func (r *run) questions(ctx context.Context, stages []*stage) ([]question, error) {
	rules, err := do(ctx, r.eng, r.session.id, func(_ context.Context, st *state) ([]protocol.ApprovalRule, error) { return st.standing() })
	if err != nil {
		return nil, err
	}
	var asked []question
	for _, s := range stages {
		switch {
		case s.reply != nil:
		case s.began && s.entry.Tool.Contract.Replay == protocol.ReplayNever, s.began && s.entry.Tool.Contract.Replay == "":
			asked = append(asked, question{s, r.outcomeQuestion(s.call)})
		case s.began: // it may be repeated, with the same call id
		default:
			switch judge(r.cfg.Approval, rules, s.entry.Tool.Manifest, s.call.Args) {
			case protocol.ApproveAsk:
				asked = append(asked, question{s, r.approvalQuestion(s.call)})
			case protocol.ApproveDeny:
				s.fail(protocol.FailPermission, "denied", "a rule of this session denies the call", protocol.FromPolicy)
			}
		}
	}
	return asked, nil
}

func (r *run) approvalQuestion(call protocol.ToolCall) protocol.Decision {
	deadline := time.Duration(r.cfg.Approval.DeadlineMs) * time.Millisecond
	if deadline == 0 {
		deadline = defaultDeadline
	}
	d := protocol.Decision{
		Kind: protocol.DecisionApproval, ArgsHash: protocol.DigestOf(call.Args), Default: protocol.ChooseReject,
		Prompt:  fmt.Sprintf("May the tool %s run with %s?", call.Name, short(call.Args)),
		Choices: []protocol.DecisionChoice{protocol.ChooseAllowOnce, protocol.ChooseAllowSession, protocol.ChooseAllowAlways, protocol.ChooseReject},
	}
	if r.cfg.Approval.Default == protocol.ApproveAllow {
		d.Default = protocol.ChooseAllowOnce
	}
	return r.decision(d, call, deadline)
}

func (r *run) outcomeQuestion(call protocol.ToolCall) protocol.Decision {
	deadline := defaultDeadline
	if ms := r.cfg.Unknown.DeadlineMs; ms != nil {
		deadline = time.Duration(*ms) * time.Millisecond
	}
	return r.decision(protocol.Decision{
		Kind: protocol.DecisionOutcome, Default: protocol.ChooseTellModel,
		Prompt: fmt.Sprintf("lashd was stopped while the tool %s ran with %s. What became of the call?", call.Name, short(call.Args)),
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

func short(args []byte) string {
	const limit = 300
	if len(args) > limit {
		return string(args[:limit]) + "..."
	}
	return string(args)
}

// open makes decisions durable together with what led to them, and returns them in order. A question that an earlier
// run of the daemon asked is the same question: its answer counts.
func (r *run) open(ctx context.Context, ask []protocol.Decision) ([]*openDecision, error) {
	return do(context.WithoutCancel(ctx), r.eng, r.session.id, func(ctx context.Context, st *state) ([]*openDecision, error) {
		before, err := st.eng.store.TurnDecisions(ctx, r.id)
		if err != nil {
			return nil, err
		}
		open := make([]*openDecision, len(ask))
		var fresh []int
		for i, d := range ask {
			if open[i] = st.sameQuestion(before, d); open[i] == nil {
				fresh = append(fresh, i)
			}
		}
		if len(fresh) == 0 {
			return open, nil
		}
		return open, st.openFresh(ctx, r, ask, open, fresh)
	})
}

func (st *state) sameQuestion(before []protocol.Decision, d protocol.Decision) *openDecision {
	for _, old := range before {
		if old.Kind != d.Kind || old.Call == nil || old.Call.CallID != d.Call.CallID || old.ArgsHash != d.ArgsHash {
			continue
		}
		if o, ok := st.decisions[old.ID]; ok {
			return o
		}
		o := &openDecision{Decision: old, done: make(chan struct{})}
		close(o.done)
		return o
	}
	return nil
}

func (st *state) openFresh(ctx context.Context, r *run, ask []protocol.Decision, open []*openDecision, fresh []int) error {
	c := &persistence.Commit{Effects: r.journal.take()}
	c.Fence.Turn, c.Fence.Incarnation = r.id, st.eng.incarnation
	events := r.news()
	for _, i := range fresh {
		c.Decisions = append(c.Decisions, ask[i])
		events = append(events, logEvent{Event: protocol.Event{Type: protocol.EventDecisionOpened, TurnID: r.id, Decision: &ask[i]}})
	}
	t, ok := st.openTurn(r.id)
	if !ok {
		return ErrTurnNotActive
	}
	t.State = protocol.TurnWaiting
	c.Turns = []persistence.Turn{t.Turn}
	if _, err := st.commit(ctx, c, events...); err != nil {
		return err
	}
	r.feed.end(r.streamed, false)
	r.streamed = nil
	st.setTurnState(r.id, protocol.TurnWaiting)
	for _, i := range fresh {
		open[i] = st.watch(ask[i])
	}
	return nil
}

// settled takes a person's answer about a call.
func (s *stage) settled(a *protocol.DecisionAnswer) {
	switch a.Choice {
	case protocol.ChooseAllowOnce, protocol.ChooseAllowSession, protocol.ChooseAllowAlways, protocol.ChooseRunAgain:
	case protocol.ChooseHappened:
		s.answer(protocol.Succeed("The call was interrupted after it was started. " + by(a) + " says that it took effect; its output is lost."))
	case protocol.ChooseNotHappened:
		s.fail(protocol.FailExecution, "not_executed", "The call was interrupted. "+by(a)+" says that it took no effect.", protocol.FromRuntime)
	case protocol.ChooseReject:
		s.fail(protocol.FailPermission, "denied", "The call was not allowed ("+by(a)+").", protocol.FromPolicy)
	case protocol.ChooseCancelled:
		s.answer(protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "the turn was cancelled before the call was allowed"})
	default:
		s.answer(protocol.ToolOutput{Status: protocol.OutputUnknown, Text: "The call was started, then lashd was interrupted. " +
			"Nobody knows whether it took effect, and it was not run again. Look at the state of things before you repeat it."})
	}
}

func by(a *protocol.DecisionAnswer) string {
	if a.By == "deadline" {
		return "the deadline passed without an answer"
	}
	return "a person"
}

func (s *stage) answer(out protocol.ToolOutput) {
	s.reply = &turn.ToolReply{CallID: s.call.CallID, Name: s.call.Name, Output: out}
}

// closeDecisions settles what a turn that ends still asks: nobody needs the answer any more.
func (st *state) closeDecisions(c *persistence.Commit, id protocol.TurnID) (closed []*openDecision, events []logEvent) {
	for _, d := range st.decisions {
		if d.TurnID != id {
			continue
		}
		answered := d.Decision
		answered.Answer = &protocol.DecisionAnswer{Choice: protocol.ChooseCancelled, By: "internal:turn", AtMs: now()}
		c.Decisions = append(c.Decisions, answered)
		events = append(events, logEvent{Event: protocol.Event{Type: protocol.EventDecisionResolved, TurnID: id, Decision: &answered}})
		closed = append(closed, d)
	}
	return closed, events
}
