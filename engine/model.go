package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"lashd/engine/attachment"
	"lashd/engine/provider"
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
	req := r.request(effect)
	r.trace.request(effect, req, r.prompt.visibleHistory())
	s := &streaming{run: r, node: r.journal.nodeID(len(r.journal.nodes))}
	began := time.Now()
	failed := s.call(ctx, req)
	reply := s.reply()
	reply.Usage = r.eng.Models.configured(r.journal.begin.Config.Model).Price.With(reply.Usage)
	answer := turn.ModelReply{Reply: reply, Record: callRecord(effect.Iteration, r.journal.begin.Config.Model, &reply, time.Since(began))}
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
	nameCalls(r.id, effect.Iteration, answer.Reply.Parts, r.journal.messages())
	r.trace.reply(effect, &answer, failed)
	r.deliver(effect, turn.Response{Model: &answer})
	if len(s.events) == 0 {
		return nil
	}
	return r.store.flush(ctx, nil, s.events...)
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

// stream calls the model of the turn. A model that was removed from the configuration since the turn began yields
// a validation error that tells the person how to choose another one.
func (r *run) stream(ctx context.Context, req *provider.Request) iter.Seq2[provider.Chunk, error] {
	if r.model != nil {
		return r.model.Stream(ctx, req)
	}
	return func(yield func(provider.Chunk, error) bool) {
		yield(provider.Chunk{}, &provider.Error{Kind: provider.KindValidation, Code: "model_not_configured",
			Message: fmt.Sprintf("the model %s of %s is not configured; choose another with session/configure", req.Model.ID, req.Model.Provider)})
	}
}

// request builds the provider request of a model effect: history as transforms show it, the messages of the turn,
// transient messages of the driver, and last the wakes that started or joined the turn. The message slice is new,
// but the messages are shared: providers must not change them. RequestID is the same when the call is made again
// after a crash.
func (r *run) request(effect turn.Effect) *provider.Request {
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
		Model: r.journal.begin.Config.Model, System: call.System, Messages: msgs, Tools: call.Tools, Choice: call.Choice,
		Options: call.Generation, Output: call.Output, Contents: attachment.Reader(r.life, r.eng.store, r.session.key),
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

// sanitize replaces invalid UTF-8 in a reply and drops replay values that are not JSON, in place. The store keeps
// replies as JSON; without this, clients would read a different reply after a reload than the one they saw.
func sanitize(parts []protocol.Part) {
	for i := range parts {
		parts[i].Text = strings.ToValidUTF8(parts[i].Text, "\uFFFD")
		if len(parts[i].Replay) > 0 && !json.Valid(parts[i].Replay) {
			parts[i].Replay, parts[i].Route = nil, ""
		}
	}
}

// nameCalls gives each tool call of a reply an id that is unique in the turn. It keeps the id of the model unless
// it is empty, used before, or contains a slash: nested calls have ids with slashes, and an approval for one must
// not apply to the other. Arguments that are not JSON become a JSON string, which argument validation then
// refuses. parts is changed in place; the calls in it belong to the provider and are replaced, not changed.
func nameCalls(id protocol.TurnID, iteration int, parts []protocol.Part, before []protocol.Message) {
	if !slices.ContainsFunc(parts, func(p protocol.Part) bool { return p.Call != nil }) {
		return
	}
	used := map[protocol.CallID]bool{}
	for i := range before {
		for _, c := range before[i].Calls() {
			used[c.CallID] = true
		}
	}
	for i := range parts {
		if parts[i].Call == nil {
			continue
		}
		call := *parts[i].Call
		if call.CallID == "" || used[call.CallID] || strings.Contains(string(call.CallID), "/") {
			call.CallID = protocol.CallID(fmt.Sprintf("call_%s_%d_%d", strings.TrimPrefix(string(id), "trn_"), iteration, i))
		}
		call.Args = provider.Arguments(call.Args)
		used[call.CallID] = true
		parts[i].Call = &call
	}
}
