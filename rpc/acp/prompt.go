package acp

import (
	"context"
	"io"
	"slices"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// prompt is one of the editor's that is under way.
type prompt struct {
	key      protocol.Mutation
	sent     chan struct{} // closed once the daemon has it, or will not
	ended    chan ending   // gets how it has ended
	answered chan struct{} // closed when nobody waits for that any more

	// Guarded by the session's mutex.
	input     protocol.InputID
	turn      protocol.TurnID // that has taken it in, as its events tell
	within    protocol.TurnID // in which it was sent, until then
	cancelled bool
	stop      func() // ends a command
}

// ending is what an editor is answered.
type ending struct {
	stop sdk.StopReason
	err  error
}

// prompt gives the session an input, and answers when the turn that takes it in has ended. Beside a running turn it enters that at its
// next checkpoint.
func (a *agent) prompt(ctx context.Context, r *request, p *sdk.PromptRequest) (*sdk.PromptResponse, error) {
	s, err := a.session(p.SessionId)
	if err != nil {
		return nil, err
	}
	input, err := a.inputOf(p.Prompt)
	if err != nil {
		return nil, err
	}
	pr, before, err := s.enter()
	if err != nil {
		return nil, err
	}
	r.admit()
	defer s.leavePrompt(pr)
	if before != nil {
		<-before
	}
	if c, ok := s.commandIn(p.Prompt); ok {
		close(pr.sent)
		return s.runCommand(ctx, pr, c)
	}
	err = s.start(pr, input)
	close(pr.sent)
	if err != nil {
		return nil, err
	}
	select {
	case e := <-pr.ended:
		if e.err != nil {
			return nil, e.err
		}
		return &sdk.PromptResponse{StopReason: e.stop}, nil
	case <-ctx.Done():
		return nil, s.unasked(ctx, pr)
	}
}

// enter puts a prompt behind those that are under way. It is sent once the one before has been.
func (s *session) enter() (pr *prompt, before chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left {
		return nil, nil, invalidRequest("this session is just being loaded, resumed or closed")
	}
	pr = &prompt{key: once(), sent: make(chan struct{}), ended: make(chan ending, 1), answered: make(chan struct{})}
	before, s.last = s.last, pr.sent
	s.prompts = append(s.prompts, pr)
	select {
	case s.poke <- struct{}{}:
	default:
	}
	return pr, before, nil
}

// queue waits until the daemon has what the editor has sent before; what comes after waits for leave.
func (s *session) queue(r *request) (leave func()) {
	mine := make(chan struct{})
	s.mu.Lock()
	before := s.last
	s.last = mine
	s.mu.Unlock()
	r.admit()
	if before != nil {
		<-before
	}
	return func() { close(mine) }
}

func (s *session) leavePrompt(pr *prompt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompts = slices.DeleteFunc(slices.Clone(s.prompts), func(p *prompt) bool { return p == pr })
	close(pr.answered)
}

// start makes a prompt durable. What the editor wanted cancelled meanwhile is.
func (s *session) start(pr *prompt, input []protocol.InputPart) error {
	s.mu.Lock()
	cancelled := pr.cancelled
	s.mu.Unlock()
	if cancelled {
		pr.end(ending{stop: sdk.StopReasonCancelled})
		return nil
	}
	p := protocol.TurnStartParams{Mutation: pr.key, SessionID: s.id, Input: input, WhenBusy: protocol.BusySteer}
	err := s.daemon.do(context.WithoutCancel(s.ctx), func(l *link) error { return s.startOn(l, pr, &p) })
	if err != nil {
		return err
	}
	s.mu.Lock()
	cancelled = pr.cancelled
	s.mu.Unlock()
	if cancelled {
		s.takeBack(pr)
	}
	return nil
}

// startOn starts a turn where the session is attached. What is answered there and not known elsewhere has to be asked for again.
func (s *session) startOn(l *link, pr *prompt, p *protocol.TurnStartParams) error {
	s.hears(l)
	var r protocol.TurnStartResult
	if err := l.Call(context.WithoutCancel(s.ctx), "turn/start", p, &r); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heard != l && l.gone() {
		return io.ErrUnexpectedEOF
	}
	pr.input, pr.within = r.InputID, r.TurnID
	return nil
}

// end tells how a prompt has ended; the first time counts.
func (pr *prompt) end(e ending) {
	select {
	case pr.ended <- e:
	default:
	}
}

// settle ends a prompt as its turn has ended. One that the editor has cancelled is cancelled to it, whatever its turn came to before the
// daemon heard of that.
func (pr *prompt) settle(o *protocol.TurnOutcome, issues []protocol.Issue) {
	if pr.cancelled {
		pr.end(ending{stop: sdk.StopReasonCancelled})
		return
	}
	pr.end(endingOf(o, issues))
}

// unasked is called when nobody waits for a prompt any more: because the editor has said so, or because it has gone. In that case the
// turn goes on.
func (s *session) unasked(ctx context.Context, pr *prompt) error {
	select {
	case <-s.conn.Done():
	case <-s.ctx.Done():
	default:
		s.cancelPrompts(pr)
	}
	return context.Cause(ctx)
}

// cancel stops what the editor has asked of a session.
func (a *agent) cancel(_ context.Context, r *request, p *sdk.CancelNotification) (*none, error) {
	s, err := a.session(p.SessionId)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	all := slices.Clone(s.prompts)
	s.mu.Unlock()
	s.cancelPrompts(all...)
	r.admit()
	return nil, nil
}

// cancelPrompts stops what prompts have begun. It does not wait for the daemon.
func (s *session) cancelPrompts(prompts ...*prompt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pr := range prompts {
		pr.cancelled = true
		if pr.stop != nil {
			pr.stop()
		}
	}
	s.wg.Go(func() { s.takeBack(prompts...) })
}

// takeBack withdraws what no turn has taken in, and interrupts the turns of the others. In this order: an input that waits for a turn
// which is interrupted would get one of its own.
func (s *session) takeBack(prompts ...*prompt) {
	turns := map[protocol.TurnID]bool{}
	for _, pr := range prompts {
		if s.withdrawn(pr) {
			pr.end(ending{stop: sdk.StopReasonCancelled})
			continue
		}
		s.mu.Lock()
		turns[pr.within], turns[pr.turn] = true, true
		s.mu.Unlock()
	}
	delete(turns, "")
	for turn := range turns {
		s.interrupt(turn)
	}
}

func (s *session) withdrawn(pr *prompt) bool {
	s.mu.Lock()
	p := protocol.QueueCancelParams{Mutation: once(), SessionID: s.id, InputID: pr.input}
	waits := pr.input != "" && pr.turn == ""
	s.mu.Unlock()
	var r protocol.QueueCancelResult
	if !waits || s.daemon.call(context.WithoutCancel(s.ctx), "queue/cancel", p, &r) != nil {
		return false
	}
	return slices.ContainsFunc(r.Data, func(in protocol.CancelledInput) bool {
		return in.InputID == p.InputID && in.Status == protocol.CancelDone
	})
}

func (s *session) interrupt(turn protocol.TurnID) {
	p := protocol.TurnInterruptParams{Mutation: once(), TurnID: turn, Reason: "cancelled in the editor"}
	if err := s.daemon.call(context.WithoutCancel(s.ctx), "turn/interrupt", p, nil); err != nil {
		s.Log.Warn("a turn was not interrupted", "session", s.id, "turn", turn, "error", err)
	}
}

// knownInputs waits until the daemon has what the editor has sent before now: only then it is known whose input an event tells of. It
// never is if the connection ends first: then it is asked for again.
func (s *session) knownInputs(ctx context.Context) bool {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if last == nil {
		return true
	}
	select {
	case <-last:
		return true
	default:
	}
	select {
	case <-last:
		return true
	case <-s.link.Gone():
	case <-ctx.Done():
	}
	return false
}

// hear says on which connection the session is attached.
func (s *session) hear(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = l
	close(s.moved)
	s.moved = make(chan struct{})
}

// hears waits until the session is attached on a connection: what is begun before that could be over before anybody is told of it.
func (s *session) hears(l *link) {
	limit := time.NewTimer(maxLosses * stopPatrol)
	defer limit.Stop()
	for {
		s.mu.Lock()
		on, moved := s.heard, s.moved
		s.mu.Unlock()
		if on == l {
			return
		}
		select {
		case <-moved:
		case <-l.Gone():
			return
		case <-s.done:
			return
		case <-limit.C:
			return
		}
	}
}

// entered notes which turn has taken a prompt in. If it was cancelled before, so is the turn.
func (s *session) entered(ev *protocol.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ours := false
	for _, pr := range s.prompts {
		if pr.input == "" || !slices.Contains(ev.InputIDs, pr.input) {
			continue
		}
		pr.turn, ours = ev.TurnID, true
		if pr.cancelled && pr.turn != pr.within {
			s.wg.Go(func() { s.interrupt(ev.TurnID) })
		}
	}
	if !ours && ev.Type == protocol.EventTurnAccepted {
		s.view.accepted(ev)
	}
}

// own tells whether an item is what the editor itself has sent: it shows that already.
func (s *session) own(item *protocol.Item) bool {
	if item.Kind != protocol.ItemUserMessage || item.Origin == nil || item.Origin.InputID == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.prompts, func(pr *prompt) bool { return pr.input == item.Origin.InputID })
}

// settle answers the prompts that a turn took in. One that is followed by another is not their end.
func (s *session) settle(ev *protocol.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pr := range s.prompts {
		switch {
		case pr.turn != ev.TurnID:
		case ev.Follower != "":
			pr.turn, pr.within = ev.Follower, ev.Follower
		default:
			pr.settle(ev.Outcome, ev.Issues)
		}
	}
}

// recover settles prompts whose events cannot be had any more.
func (s *session) recover(ctx context.Context) {
	s.mu.Lock()
	waiting := slices.Clone(s.prompts)
	s.mu.Unlock()
	for _, pr := range waiting {
		s.mu.Lock()
		turn := pr.within
		s.mu.Unlock()
		if turn == "" {
			continue
		}
		s.work.Go(func() {
			p := protocol.TurnWaitParams{TurnID: turn, Follow: true}
			var report protocol.TurnReport
			if err := s.daemon.call(ctx, "turn/wait", p, &report); err != nil {
				pr.end(ending{err: err})
				return
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			pr.settle(report.Outcome, report.Issues)
		})
	}
}

// abandonPrompts ends what waits for a daemon that does not come back.
func (s *session) abandonPrompts(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pr := range s.prompts {
		pr.end(ending{err: err})
	}
}

// stops are the outcomes that the protocol has a word for. All others are errors.
var stops = map[protocol.OutcomeKind]sdk.StopReason{
	protocol.OutcomeAssistantMessage: sdk.StopReasonEndTurn,
	protocol.OutcomeFinalValue:       sdk.StopReasonEndTurn,
	protocol.OutcomeToolValue:        sdk.StopReasonEndTurn,
	protocol.OutcomeFrameSwitch:      sdk.StopReasonEndTurn,
	protocol.OutcomeCancelled:        sdk.StopReasonCancelled,
	protocol.OutcomeIncomplete:       sdk.StopReasonMaxTokens,
	protocol.OutcomeMaxTurns:         sdk.StopReasonMaxTurnRequests,
}

func endingOf(o *protocol.TurnOutcome, issues []protocol.Issue) ending {
	if o == nil {
		return ending{err: failure(codeTurnFailed, "the turn has no outcome", protocol.ErrorData{Kind: protocol.KindInternal, Retry: protocol.RetryNever})}
	}
	if stop, ok := stops[o.Kind]; ok {
		return ending{stop: stop}
	}
	message, code, kind := "the turn failed: "+string(o.Kind), codeTurnFailed, protocol.KindOperationFailed
	if o.Kind == protocol.OutcomeProviderError {
		code, kind = codeProvider, protocol.KindProvider
	}
	for _, issue := range issues {
		if issue.Stop == protocol.StopContentFilter {
			return ending{stop: sdk.StopReasonRefusal}
		}
		message = "the turn failed: " + issue.Message
	}
	return ending{err: failure(code, message, protocol.ErrorData{Kind: kind, Retry: protocol.RetryNever, Outcome: protocol.EffectDurable})}
}
