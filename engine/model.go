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

	"lashd/engine/provider"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// callModel makes a model call and shows its output while it streams.
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
	reply.Usage = withCost(reply.Usage, r.eng.Models.configured(r.journal.begin.Config.Model).Price)
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

// conclude notes in an answer how its call ended, and gives what it failed with: it was cancelled, it failed itself, or a plugin
// spoilt what came of it.
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

// stream is the reply of the turn's model, if the configuration still has it.
func (r *run) stream(ctx context.Context, req *provider.Request) iter.Seq2[provider.Chunk, error] {
	if r.model != nil {
		return r.model.Stream(ctx, req)
	}
	return func(yield func(provider.Chunk, error) bool) {
		yield(provider.Chunk{}, &provider.Error{Kind: provider.KindValidation, Code: "model_not_configured",
			Message: fmt.Sprintf("the model %s of %s is not configured; choose another with session/configure", req.Model.ID, req.Model.Provider)})
	}
}

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
		Options: call.Generation, Output: call.Output,
		Scope: provider.Scope{SessionID: r.session.id, RequestID: fmt.Sprintf("%s-%d", r.id, effect.ID)},
	}
}

// mergeCauses makes one message of what woke the turn, for the end of the prompt. A single one stays what it is in history, so that
// the prompt of the next turn begins with the same bytes.
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

func issueOf(err error) protocol.Issue {
	if e, ok := errors.AsType[*provider.Error](err); ok {
		return e.Issue()
	}
	if e, ok := errors.AsType[*hookFailure](err); ok {
		return e.issue()
	}
	return protocol.Issue{Kind: "provider", Code: "unknown", Message: err.Error()}
}

func callRecord(iteration int, model protocol.ModelSpec, reply *provider.Reply, took time.Duration) protocol.CallRecord {
	return protocol.CallRecord{
		Iteration: iteration, Provider: model.Provider, Model: model.ID, Stop: reply.Stop, Usage: reply.Usage,
		Attempts: list(reply.Attempts), Options: reply.Options, DurationMs: took.Milliseconds(),
	}
}

// withCost is a usage with what it costs.
func withCost(u *protocol.Usage, price *protocol.Price) *protocol.Usage {
	if u == nil {
		return nil
	}
	with := *u
	with.Cost = 0
	if price != nil {
		with.Cost = price.Of(with)
	}
	return &with
}

// sanitize sees to it that a reply reads the same from the store as it was shown: JSON has no place for bytes that are
// not UTF-8, nor for a raw value that is not JSON.
func sanitize(parts []protocol.Part) {
	for i := range parts {
		parts[i].Text = strings.ToValidUTF8(parts[i].Text, "\uFFFD")
		if len(parts[i].Replay) > 0 && !json.Valid(parts[i].Replay) {
			parts[i].Replay, parts[i].Route = nil, ""
		}
	}
}

// nameCalls gives every tool call an id of its own: the model's, unless it gave none, or one that the turn has used, or that
// a call which another call makes could have: what a person has allowed the one must not be taken for the other.
// Arguments that are not JSON become a string of what the model wrote, which is refused. The slice is the reply's own; the calls in it are the provider's, and are replaced instead of changed.
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
