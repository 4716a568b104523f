package acp

import (
	"context"
	"io"
	"slices"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// prompt is one of the editor's that is under way.
type prompt struct {
	key      protocol.Mutation
	sent     chan struct{} // closed once the daemon has it, or will not
	ended    chan ending   // gets how it has ended
	answered chan struct{} // closed when nobody waits for that any more

	// Guarded by the mutex of prompts.
	input     protocol.InputID
	turn      protocol.TurnID // that has taken it in, as its events tell
	within    protocol.TurnID // in which it was sent, until then
	cancelled bool
	withdrawn bool   // the daemon has taken it out of the queue
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
	pr, before, err := s.prompts.enter()
	if err != nil {
		return nil, err
	}
	r.admit()
	defer s.prompts.leave(pr)
	if before != nil {
		<-before
	}
	if c, ok := s.commandIn(p.Prompt); ok {
		close(pr.sent)
		return s.prompts.runCommand(ctx, pr, c)
	}
	err = s.prompts.start(pr, input)
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
		return nil, s.prompts.unasked(ctx, pr)
	}
}

// prompts are those of a session that are under way.
type prompts struct {
	ref
	done   <-chan struct{} // closed when the session is followed no more
	wanted chan struct{}   // has a value when the daemon is wanted

	mu       sync.Mutex
	all      []*prompt
	left     bool          // nobody follows the session any more: it takes no prompts
	last     chan struct{} // closed once the newest of them has been sent
	link     *link         // on which the session is attached; nil: on none
	relinked chan struct{} // closed when that is another one
}

// underWay are those that have not been answered.
func (p *prompts) underWay() []*prompt {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.all)
}

func (p *prompts) waiting() bool { return len(p.underWay()) > 0 }

// close takes no prompts any more, unless some are under way.
func (p *prompts) close() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = len(p.all) == 0
	return p.left
}

// cancelling tells whether the editor has cancelled what it asked for.
func (p *prompts) cancelling() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.all, func(pr *prompt) bool { return pr.cancelled })
}

// enter puts a prompt behind those that are under way. It is sent once the one before has been.
func (p *prompts) enter() (pr *prompt, before chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left {
		return nil, nil, invalidRequest("this session is being loaded, resumed or closed; retry when that has finished")
	}
	pr = &prompt{key: once(), sent: make(chan struct{}), ended: make(chan ending, 1), answered: make(chan struct{})}
	before, p.last = p.last, pr.sent
	p.all = append(p.all, pr)
	select {
	case p.wanted <- struct{}{}:
	default:
	}
	return pr, before, nil
}

// queue waits until the daemon has what the editor has sent before; what comes after waits for leave.
func (p *prompts) queue(r *request) (leave func()) {
	mine := make(chan struct{})
	p.mu.Lock()
	before := p.last
	p.last = mine
	p.mu.Unlock()
	r.admit()
	if before != nil {
		<-before
	}
	return func() { close(mine) }
}

func (p *prompts) leave(pr *prompt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = slices.DeleteFunc(slices.Clone(p.all), func(other *prompt) bool { return other == pr })
	close(pr.answered)
}

// start makes a prompt durable. What the editor wanted cancelled meanwhile is.
func (p *prompts) start(pr *prompt, input []protocol.InputPart) error {
	p.mu.Lock()
	cancelled := pr.cancelled
	p.mu.Unlock()
	if cancelled {
		pr.end(ending{stop: sdk.StopReasonCancelled})
		return nil
	}
	params := protocol.TurnStartParams{Mutation: pr.key, SessionID: p.id, Input: input, WhenBusy: protocol.BusySteer}
	err := p.daemon.do(context.WithoutCancel(p.ctx), func(l *link) error { return p.startOn(l, pr, &params) })
	if err != nil {
		return err
	}
	p.mu.Lock()
	cancelled = pr.cancelled
	p.mu.Unlock()
	if cancelled {
		p.takeBack(pr)
	}
	return nil
}

// startOn starts a turn where the session is attached. What is answered there and not known elsewhere has to be asked for again.
func (p *prompts) startOn(l *link, pr *prompt, params *protocol.TurnStartParams) error {
	p.awaitAttached(l)
	var r protocol.TurnStartResult
	if err := l.Call(context.WithoutCancel(p.ctx), "turn/start", params, &r); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link != l && l.gone() {
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
func (p *prompts) unasked(ctx context.Context, pr *prompt) error {
	select {
	case <-p.conn.Done():
	case <-p.ctx.Done():
	default:
		p.cancel(pr)
	}
	return context.Cause(ctx)
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
		return ending{err: failure(codeTurnFailed, "the turn ended without an outcome", protocol.ErrorData{
			Kind: protocol.KindInternal, Retry: protocol.RetryNever, Outcome: protocol.EffectDurable,
		})}
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
