package acp

import (
	"context"
	"io"
	"slices"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// prompt is a session/prompt request that has not been answered. It is in
// prompts.all from the request's arrival until its handler returns.
type prompt struct {
	key      protocol.Mutation // idempotency key of turn/start, the same for each retry
	sent     chan struct{}     // closed once the daemon has stored the input, or will not; lets the next prompt go
	ended    chan ending       // buffered; gets the first ending
	answered chan struct{}     // closed when the handler has returned

	// Guarded by the mutex of prompts.
	input     protocol.InputID // from the answer to turn/start; empty before
	turn      protocol.TurnID  // the turn that uses the input, from its events
	within    protocol.TurnID  // the turn that turn/start returned: the new one, or the one it steers
	cancelled bool             // the editor cancelled it; its answer is "cancelled" whatever the turn does
	withdrawn bool             // the input was removed from the queue
	stop      func()           // ends a slash command, or the question for resources; nil for other prompts
}

// params returns the request for a prompt. A command of a plugin and a prompt with resources wait for a turn of their own, because they are
// read when a turn starts; other prompts steer a running turn.
func (c slash) params(input []protocol.InputPart, resources []protocol.ResourceMention) protocol.TurnStartParams {
	params := protocol.TurnStartParams{Input: input, Resources: resources}
	switch {
	case c.text:
		params.Command = &protocol.CommandCall{Name: c.name, Arguments: c.rest}
	case len(resources) == 0:
		params.WhenBusy = protocol.BusySteer
	}
	return params
}

// ending is the answer to a prompt: a stop reason or an error.
type ending struct {
	stop sdk.StopReason
	err  error
}

// prompt sends an input to the session and answers when the turn that used it has
// ended. If a turn is running, the input steers it. Prompts of a session reach the
// daemon in the order in which the editor sent them. If the editor withdraws the
// request, the prompt is cancelled; if it disconnects, the turn goes on.
func (a *agent) prompt(ctx context.Context, r *request, p *sdk.PromptRequest) (*sdk.PromptResponse, error) {
	s, err := a.session(p.SessionId)
	if err != nil {
		return nil, err
	}
	input, err := a.inputOf(p.Prompt)
	if err != nil {
		return nil, err
	}
	pr, before, err := s.prompts.add()
	if err != nil {
		return nil, err
	}
	r.admit()
	defer s.prompts.remove(pr)
	if before != nil {
		<-before
	}
	c, ok := s.commandIn(p.Prompt)
	if ok && !c.text {
		close(pr.sent)
		if c.more {
			return nil, invalidParams("/prompt/1", "the command /"+c.name+" takes only text; remove the attachments")
		}
		return s.prompts.runCommand(ctx, pr, c)
	}
	resources, err := s.prompts.mentioned(ctx, pr, p.Prompt)
	if err == nil {
		err = s.prompts.start(pr, c.params(input, resources))
	}
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
		return nil, s.prompts.requestEnded(ctx, pr)
	}
}

// prompts are the unanswered prompts of one session. The fields below mu are
// guarded by it, and so are the changing fields of each prompt. Handlers of the
// editor's requests and the session's goroutine share it.
type prompts struct {
	ref
	done   <-chan struct{} // closed when the session's goroutine has ended
	wanted chan struct{}   // buffered; has a value when a prompt waits, so that the session reconnects at once

	mu       sync.Mutex
	all      []*prompt
	left     bool          // the session is being closed or reopened: new prompts are rejected
	last     chan struct{} // closed once the newest prompt or setting has reached the daemon
	starting chan struct{} // closed once the newest prompt that was sent to the daemon has been answered by it; nil: none was sent
	link     *link         // connection on which the session is attached; nil while it is not
	relinked chan struct{} // closed when link changes
}

// underWay returns a copy of the unanswered prompts.
func (p *prompts) underWay() []*prompt {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.all)
}

// waiting reports whether any prompt is unanswered.
func (p *prompts) waiting() bool { return len(p.underWay()) > 0 }

// close rejects all further prompts, and reports whether it did: while prompts are
// unanswered, it changes nothing and returns false.
func (p *prompts) close() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = len(p.all) == 0
	return p.left
}

// cancelling reports whether the editor has cancelled an unanswered prompt. A
// question that the editor dismisses at that time is left to the daemon, which
// closes it with the turn.
func (p *prompts) cancelling() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.all, func(pr *prompt) bool { return pr.cancelled })
}

// add registers a new prompt. The caller must wait for before, unless it is nil,
// then send the prompt and close pr.sent. add also wakes the session if it waits
// to reconnect.
func (p *prompts) add() (pr *prompt, before chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left {
		return nil, nil, invalidRequest("this session is being loaded, resumed or closed; retry when that has finished")
	}
	pr = &prompt{key: newMutation(), sent: make(chan struct{}), ended: make(chan ending, 1), answered: make(chan struct{})}
	before, p.last = p.last, pr.sent
	p.all = append(p.all, pr)
	select {
	case p.wanted <- struct{}{}:
	default:
	}
	return pr, before, nil
}

// queue orders a request behind the prompts and settings that the editor sent
// before it. It admits the next message and returns once the earlier ones have
// reached the daemon. Later ones wait until leave is called.
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

// remove forgets a prompt whose handler returns.
func (p *prompts) remove(pr *prompt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = slices.DeleteFunc(slices.Clone(p.all), func(other *prompt) bool { return other == pr })
	close(pr.answered)
}

// start sends a prompt to the daemon. It returns once the input is stored, or with
// the daemon's error. A prompt that the editor cancels before or during the call
// is answered as cancelled, and withdrawn if it was stored.
func (p *prompts) start(pr *prompt, params protocol.TurnStartParams) error {
	if !p.begin(pr) {
		pr.end(ending{stop: sdk.StopReasonCancelled})
		return nil
	}
	params.Mutation, params.SessionID = pr.key, p.id
	err := p.daemon.do(context.WithoutCancel(p.ctx), func(l *link) error { return p.startOn(l, pr, &params) })
	if err != nil {
		return err
	}
	if p.wasCancelled(pr) {
		p.withdrawOrInterrupt(pr)
	}
	return nil
}

// begin records that a prompt is being sent to the daemon. It returns false, and records nothing, if the editor has cancelled the prompt.
func (p *prompts) begin(pr *prompt) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !pr.cancelled {
		p.starting = pr.sent
	}
	return !pr.cancelled
}

// startOn sends turn/start on a connection on which the session is attached, so
// that no event of the turn is missed. If the session moved to another connection
// during the call, the result is an error that makes daemon.do repeat the request
// there: with the same key the daemon returns the same turn.
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

// end sets the answer of a prompt. Only the first call counts.
func (pr *prompt) end(e ending) {
	select {
	case pr.ended <- e:
	default:
	}
}

// settle answers a prompt with the outcome of its turn. A cancelled prompt is
// answered as cancelled, even if the turn ended otherwise before the daemon
// received the cancellation. The mutex of prompts must be held.
func (pr *prompt) settle(o *protocol.TurnOutcome, issues []protocol.Issue) {
	if pr.cancelled {
		pr.end(ending{stop: sdk.StopReasonCancelled})
		return
	}
	pr.end(endingOf(o, issues))
}

// requestEnded handles a prompt whose request context is done. If the editor
// withdrew the request, it cancels the prompt. If the connection has ended, it
// does nothing, and the turn goes on.
func (p *prompts) requestEnded(ctx context.Context, pr *prompt) error {
	select {
	case <-p.conn.Done():
	case <-p.ctx.Done():
	default:
		p.cancel(pr)
	}
	return context.Cause(ctx)
}

// stops maps each outcome of a turn to the protocol's stop reason. Outcomes that
// are missing here are errors.
var stops = map[protocol.OutcomeKind]sdk.StopReason{
	protocol.OutcomeAssistantMessage: sdk.StopReasonEndTurn,
	protocol.OutcomeFinalValue:       sdk.StopReasonEndTurn,
	protocol.OutcomeToolValue:        sdk.StopReasonEndTurn,
	protocol.OutcomeFrameSwitch:      sdk.StopReasonEndTurn,
	protocol.OutcomeCancelled:        sdk.StopReasonCancelled,
	protocol.OutcomeIncomplete:       sdk.StopReasonMaxTokens,
	protocol.OutcomeMaxTurns:         sdk.StopReasonMaxTurnRequests,
}

// endingOf converts the outcome of a turn. A reply that the provider's content
// filter stopped is a refusal. The message of an error is that of the turn's last
// issue.
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
	if n := len(issues); n > 0 && issues[n-1].Auth {
		code = codeAuth
	}
	return ending{err: failure(code, message, protocol.ErrorData{Kind: kind, Retry: protocol.RetryNever, Outcome: protocol.EffectDurable})}
}
