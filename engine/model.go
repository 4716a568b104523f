package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lashd/engine/graph"
	"lashd/engine/provider"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// callModel makes a model call and shows its output while it streams.
func (r *run) callModel(ctx context.Context, effect turn.Effect) error {
	r.feed.show(protocol.Event{Type: protocol.EventModelRequested, TurnID: r.id, Iteration: effect.Iteration})
	r.trace("llm_call_started", effect.Iteration)
	req := r.request(effect)
	s := &streaming{run: r, node: r.nodeID(len(r.machine.Messages()))}
	began := time.Now()
	failed := s.read(r.model.Stream(ctx, req))
	reply := s.collector.Reply()
	s.finish()
	r.streamed = append(r.streamed, s.items...)
	answer := turn.ModelReply{Reply: reply, Record: record(effect.Iteration, r.cfg.Model, &reply, time.Since(began))}
	if cause := context.Cause(ctx); cause != nil {
		if !errors.Is(cause, errStopped) {
			return r.stop(cause, &reply)
		}
		r.retract()
		return errStopped
	}
	if failed != nil {
		issue := issueOf(failed)
		answer.Error, answer.Record.Stop = &issue, issue.Stop
	}
	nameCalls(r.id, effect.Iteration, answer.Reply.Parts, r.machine.Messages())
	r.trace("llm_call_completed", answer.Record)
	r.deliver(effect, turn.Response{Model: &answer})
	return nil
}

func (r *run) request(effect turn.Effect) *provider.Request {
	call := effect.Model
	msgs := slices.Clip(r.past)
	for i := range call.Messages {
		msgs = append(msgs, r.nodes[i].Message)
	}
	for i := range call.Transient {
		msgs = append(msgs, &call.Transient[i])
	}
	if m := causesMessage(call.Causes); m != nil {
		msgs = append(msgs, m)
	}
	return &provider.Request{
		Model: r.cfg.Model, System: call.System, Messages: msgs, Tools: call.Tools, Choice: call.Choice,
		Options: call.Generation, Output: call.Output,
		Scope: provider.Scope{SessionID: r.session.id, RequestID: fmt.Sprintf("%s-%d", r.id, effect.ID)},
	}
}

// causesMessage is why the turn was woken, for the end of the prompt.
func causesMessage(causes []turn.Cause) *protocol.Message {
	if len(causes) == 0 {
		return nil
	}
	var lines []string
	for _, c := range causes {
		lines = append(lines, fmt.Sprintf("[%s] %s", c.Type, c.Text))
	}
	return &protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: strings.Join(lines, "\n")}}}
}

func issueOf(err error) protocol.Issue {
	if e, ok := errors.AsType[*provider.Error](err); ok {
		return e.Issue()
	}
	return protocol.Issue{Kind: "provider", Code: "unknown", Message: err.Error()}
}

func record(iteration int, model protocol.ModelSpec, reply *provider.Reply, took time.Duration) protocol.CallRecord {
	return protocol.CallRecord{
		Iteration: iteration, Provider: model.Provider, Model: model.ID, Stop: reply.Stop, Usage: reply.Usage,
		Attempts: reply.Attempts, Options: reply.Options, DurationMs: took.Milliseconds(),
	}
}

// nameCalls gives every tool call an id of its own: the model's, unless it gave none or one that the turn has used.
// The parts are the reply's and not shared yet.
func nameCalls(id protocol.TurnID, iteration int, parts []protocol.Part, before []protocol.Message) {
	used := map[protocol.CallID]bool{}
	for i := range before {
		for _, c := range before[i].Calls() {
			used[c.CallID] = true
		}
	}
	for i := range parts {
		c := parts[i].Call
		if c == nil {
			continue
		}
		if c.CallID == "" || used[c.CallID] {
			named := *c
			named.CallID = protocol.CallID(fmt.Sprintf("call_%s_%d_%d", strings.TrimPrefix(string(id), "trn_"), iteration, i))
			parts[i].Call = &named
		}
		used[parts[i].Call.CallID] = true
	}
}

// streaming shows a reply while it comes in. Parts become items in the order in which they begin.
type streaming struct {
	*run
	node      protocol.NodeID
	collector provider.Collector
	parts     int
	kind      protocol.ItemKind
	current   *openItem
	items     []*openItem
}

func (s *streaming) read(chunks func(func(provider.Chunk, error) bool)) error {
	stopped := false
	for chunk, err := range chunks {
		if err != nil {
			return err
		}
		s.show(&chunk)
		s.collector.Add(&chunk)
		stopped = stopped || chunk.Stop != ""
	}
	if !stopped {
		return &provider.Error{Kind: provider.KindStream, Code: "ended_without_evidence", Message: "the reply broke off"}
	}
	return nil
}

func (s *streaming) show(c *provider.Chunk) {
	if c.Reset {
		s.feed.end(s.items, true)
		s.items, s.current, s.parts = nil, nil, 0
	}
	if c.Retry != nil {
		s.feed.show(protocol.Event{Type: protocol.EventRetryStatus, TurnID: s.run.id, Retry: c.Retry})
	}
	s.grow(protocol.ItemReasoning, c.Reasoning)
	s.grow(protocol.ItemAgentMessage, c.Text)
	if c.Part != nil {
		s.finish()
		s.parts++
	}
}

func (s *streaming) grow(kind protocol.ItemKind, text string) {
	if text == "" {
		return
	}
	if s.current == nil || s.kind != kind {
		s.finish()
		s.kind = kind
		s.current = s.feed.begin(protocol.Item{ID: graph.ItemIDOf(s.node, s.parts), Kind: kind, TurnID: s.run.id})
		s.items = append(s.items, s.current)
		s.parts++
	}
	s.feed.grow(s.current, text)
}

// finish closes the part that is growing; its item stays open until a commit completes it.
func (s *streaming) finish() { s.current = nil }

// retract withdraws what was shown of replies that will be made again.
func (r *run) retract() {
	r.feed.end(r.streamed, true)
	r.streamed = nil
}
