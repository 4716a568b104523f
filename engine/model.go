package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lashd/engine/attachment"
	"lashd/engine/cellstream"
	"lashd/engine/provider"
	"lashd/engine/structured"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// callModel performs a model effect: it sends the request, shows the output while it streams, and delivers the
// reply to the machine. It runs on the goroutine of the turn. A failed call is an answer with an error, which the
// driver may retry. The returned error means that the turn is suspended or cannot continue.
func (r *run) callModel(ctx context.Context, effect turn.Effect) error {
	if ended, err := r.switchFrame(ctx); ended || err != nil {
		return err
	}
	if err := r.journal.weigh(); err != nil {
		return err
	}
	r.feed.Show(protocol.Event{Type: protocol.EventModelRequested, TurnID: r.id, Iteration: effect.Iteration})
	model := r.modelOf(effect.Model)
	req := r.request(effect, model.Spec)
	r.trace.request(effect, req, r.prompt.visibleHistory())
	s := &streaming{run: r, model: model, node: r.journal.nodeID(len(r.journal.nodes)), cells: cellstream.New(effect.Model.Language, r.hooks.plugins.Splitter)}
	began := time.Now()
	failed := s.call(ctx, req)
	reply := s.reply()
	reply.Usage = model.Price.With(reply.Usage)
	answer := turn.ModelReply{Reply: reply, Record: callRecord(effect.Iteration, model.Spec, &reply, time.Since(began))}
	if r.mayRepeatReply {
		r.mayRepeatReply = false
		answer.Record.Attempts = append([]protocol.CallAttempt{{Outcome: protocol.AttemptInterrupted}}, answer.Record.Attempts...)
	}
	spoilt := s.respond(ctx, failed, &answer.Reply)
	r.journal.streamed = append(r.journal.streamed, s.items...)
	s.notifyFinished(ctx, s.end(ctx, failed))
	cause := context.Cause(ctx)
	if _, ok := errors.AsType[*cancelled](cause); cause != nil && !ok {
		return cause
	}
	failed = r.conclude(&answer, cause, failed, spoilt)
	answer.Fallback = r.fallback(effect.Model, &answer, failed)
	if answer.Error == nil && answer.Cancel == nil {
		answer.Value, answer.Problem = structured.Of(effect.Model.Output, &answer.Reply)
	}
	provider.NameCalls(r.id, effect.Iteration, effect.Model.Tools, answer.Reply.Parts, r.journal.messages())
	r.trace.reply(effect, &answer, failed)
	r.deliver(effect, turn.Response{Model: &answer})
	if len(s.events) == 0 && answer.Fallback == "" && answer.Problem == "" {
		return nil
	}
	return r.store.flush(ctx, nil, s.events...) // a kill during the next call must not repeat this one
}

// conclude records in the answer how its call ended, and returns the error to trace: a cancellation, a failure of
// the call, or spoilt, the error of a plugin that filters replies. In the last case the call record still says
// that the call succeeded.
func (r *run) conclude(answer *turn.ModelReply, cause, failed, spoilt error) error {
	if c, ok := errors.AsType[*cancelled](cause); ok {
		answer.Cancel, answer.Record.Stop = &c.evidence, protocol.StopCancelled
		return cause
	}
	switch {
	case failed != nil:
		r.eng.group.LogPanic(failed)
		issue := issueOf(failed)
		answer.Error, answer.Record.Stop = &issue, issue.Stop
	case spoilt != nil: // the call itself went well, and its record says so
		r.eng.group.LogPanic(spoilt)
		answer.Error = new(issueOf(spoilt))
		return spoilt
	}
	return failed
}

// request builds the provider request of a model effect: history as transforms show it, the messages of the turn,
// transient messages of the driver, and last the wakes that started or joined the turn. The message slice is new,
// but the messages are shared: providers must not change them. RequestID is the same when the call is made again
// after a crash.
func (r *run) request(effect turn.Effect, model protocol.ModelSpec) *provider.Request {
	call := effect.Model
	past := r.prompt.visibleHistory()
	msgs := make([]*protocol.Message, 0, len(past)+len(r.journal.nodes)+len(call.Transient)+1)
	msgs = append(msgs, past...)
	var causes []*protocol.Message
	for i := range call.Messages {
		if m := r.journal.nodes[i].Message; m.Cause() == nil {
			msgs = append(msgs, m)
		} else {
			causes = append(causes, m)
		}
	}
	for i := range call.Transient {
		msgs = append(msgs, &call.Transient[i])
	}
	msgs = append(msgs, mergeCauses(causes)...)
	return &provider.Request{
		Model: model, System: call.System, Messages: msgs, Tools: call.Tools, Choice: call.Choice,
		Options: call.Generation, Output: call.Output, Contents: attachment.Reader(r.life, r.eng.store, r.session.key), DenyURLs: r.eng.DenyURLs,
		Scope: provider.Scope{SessionID: r.session.id, RequestID: fmt.Sprintf("%s-%d", r.id, effect.ID)},
	}
}

// mergeCauses merges the wakes of a turn into one message for the end of the prompt. A single wake stays the
// message that history stores, so that the next turn's prompt has the same prefix and the provider's cache still
// applies.
func mergeCauses(causes []*protocol.Message) []*protocol.Message {
	if len(causes) < 2 {
		return causes
	}
	all := &protocol.Message{Role: protocol.RoleEvent}
	for _, m := range causes {
		all.Parts = append(all.Parts, m.Parts...)
	}
	return []*protocol.Message{all}
}

// issueOf returns the issue that clients see for an error of a model call or of a reply filter. An error of an
// unknown type becomes a provider issue with the code "unknown".
func issueOf(err error) protocol.Issue {
	if e, ok := errors.AsType[*provider.Error](err); ok {
		return e.Issue()
	}
	if e, ok := errors.AsType[*hookFailure](err); ok {
		return e.issue()
	}
	return protocol.Issue{Kind: "provider", Code: "unknown", Message: err.Error()}
}

// callRecord returns the usage record of a model call that took a duration, which is stored in whole milliseconds.
func callRecord(iteration int, model protocol.ModelSpec, reply *provider.Reply, took time.Duration) protocol.CallRecord {
	return protocol.CallRecord{
		Iteration: iteration, Provider: model.Provider, Model: model.ID, Stop: reply.Stop, Usage: reply.Usage,
		Attempts: list(reply.Attempts), Options: reply.Options, Evidence: reply.Evidence, DurationMs: took.Milliseconds(),
	}
}
