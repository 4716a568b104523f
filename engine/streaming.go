package engine

import (
	"context"
	"iter"
	"time"

	"lashd/engine/change"
	"lashd/engine/feed"
	"lashd/engine/graph"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// streaming shows a reply while it comes in. Parts become items in the order in which they begin, with the ids that
// they will have in history; a new part begins wherever the collector begins one.
type streaming struct {
	*run
	node      protocol.NodeID    // the node that the reply will become
	collector provider.Collector // builds the reply for history
	parts     int                // parts begun so far
	kind      protocol.PartKind
	current   *feed.Item     // the item that grows; nil: the next text begins one
	items     []*feed.Item   // shown, until a commit completes or withdraws them
	stopped   bool           // the reply is complete
	sawText   bool           // the model sent text, even if plugins removed all of it
	aborted   bool           // a plugin stopped the reply
	events    []change.Event // of plugins, stored together with the answer
}

// trailingUsage is how long a reply that a plugin has stopped is still read, for what it cost.
const trailingUsage = 2 * time.Second

// call asks the model, and reads its reply.
func (s *streaming) call(ctx context.Context, req *provider.Request) error {
	calling, hangUp := context.WithCancel(ctx)
	defer hangUp()
	late := time.AfterFunc(trailingUsage, hangUp)
	late.Stop() // until a plugin stops the reply
	defer late.Stop()
	return s.read(s.stream(calling, req), func(c *provider.Chunk) error {
		err := s.take(ctx, c)
		if s.aborted {
			late.Reset(trailingUsage)
		}
		return err
	})
}

// read takes a reply in. A panic of the provider is an error of the call.
func (s *streaming) read(chunks iter.Seq2[provider.Chunk, error], take func(*provider.Chunk) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.eng.group.Recovered("turn", s.run.id, p)
			err = &provider.Error{Kind: provider.KindUnknown, Code: "provider_panic", Message: "the provider panicked"}
		}
	}()
	for chunk, err := range chunks {
		switch {
		case s.aborted && err != nil:
			return nil
		case err != nil:
			return err
		case s.aborted:
			if s.takeUsage(&chunk) {
				return nil
			}
			continue
		}
		if err := take(&chunk); err != nil || s.aborted && chunk.Usage != nil {
			return err
		}
	}
	if !s.stopped && !s.aborted {
		return &provider.Error{Kind: provider.KindStream, Code: "ended_without_evidence", Message: "the reply ended without a stop reason"}
	}
	return nil
}

// take shows and collects a chunk as the plugins leave it. What they fail at is not shown.
func (s *streaming) take(ctx context.Context, c *provider.Chunk) error {
	if c.Reset {
		s.sawText = false
		s.notifyFinished(ctx, plugin.StreamAttemptReset)
	}
	err := s.filter(ctx, c)
	s.show(c)
	s.collector.Add(c)
	s.stopped = s.stopped || c.Stop != ""
	return err
}

// trails takes the cost of a reply that was stopped, and tells whether there is nothing more to wait for.
func (s *streaming) takeUsage(c *provider.Chunk) bool {
	if c.Usage != nil {
		s.collector.Add(&provider.Chunk{Usage: c.Usage})
	}
	return c.Usage != nil || c.Retry != nil || c.Reset
}

// reply is what has come in.
func (s *streaming) reply() provider.Reply {
	if s.aborted {
		ended := protocol.CallAttempt{Outcome: protocol.AttemptAborted, Position: "streaming"}
		s.collector.Add(&provider.Chunk{Stop: protocol.StopEnd, Attempt: &ended})
	}
	reply := s.collector.Reply()
	reply.Streamed = reply.Streamed || s.sawText
	sanitize(reply.Parts)
	return reply
}

func (s *streaming) show(c *provider.Chunk) {
	if c.Reset {
		s.feed.End(s.items, true)
		s.items, s.current, s.parts = nil, nil, 0
	}
	if c.Retry != nil {
		s.feed.Show(protocol.Event{Type: protocol.EventRetryStatus, TurnID: s.run.id, Retry: c.Retry})
	}
	s.grow(protocol.PartReasoning, c.Reasoning)
	s.grow(protocol.PartCommentary, c.Commentary)
	s.grow(protocol.PartProse, c.Text)
	if c.Part != nil {
		s.current = nil
		s.parts++
	}
	if c.Replay != nil {
		s.current = nil
	}
}

func (s *streaming) grow(kind protocol.PartKind, text string) {
	if text == "" {
		return
	}
	if s.current == nil || s.kind != kind {
		s.kind = kind
		s.current = s.feed.Begin(protocol.Item{ID: graph.ItemIDOf(s.node, s.parts), Kind: itemKind(kind), TurnID: s.run.id})
		s.items = append(s.items, s.current)
		s.parts++
	}
	s.feed.Grow(s.current, text)
}

func itemKind(kind protocol.PartKind) protocol.ItemKind {
	if kind == protocol.PartReasoning {
		return protocol.ItemReasoning
	}
	return protocol.ItemAgentMessage
}
