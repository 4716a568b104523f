package engine

import (
	"iter"

	"lashd/engine/graph"
	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// streaming shows a reply while it comes in. Parts become items in the order in which they begin, with the ids that
// they will have in history; a new part begins wherever the collector begins one.
type streaming struct {
	*run
	node      protocol.NodeID
	collector provider.Collector
	parts     int
	kind      protocol.PartKind
	current   *openItem
	items     []*openItem // open until a commit completes them, or they are withdrawn
}

// read takes a reply in. A panic of the provider is an error of the call.
func (s *streaming) read(chunks iter.Seq2[provider.Chunk, error]) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.eng.panicked("turn", s.run.id, p)
			err = &provider.Error{Kind: provider.KindUnknown, Code: "provider_panic", Message: "the provider panicked"}
		}
	}()
	stopped := false
	for chunk, err := range chunks {
		if err != nil {
			return err
		}
		s.traceChunk(&chunk)
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
		s.current = s.feed.begin(protocol.Item{ID: graph.ItemIDOf(s.node, s.parts), Kind: itemKind(kind), TurnID: s.run.id})
		s.items = append(s.items, s.current)
		s.parts++
	}
	s.feed.grow(s.current, text)
}

func itemKind(kind protocol.PartKind) protocol.ItemKind {
	if kind == protocol.PartReasoning {
		return protocol.ItemReasoning
	}
	return protocol.ItemAgentMessage
}

// retract withdraws what was shown of a reply that will be made again.
func (r *run) retract() {
	r.feed.end(r.streamed, true)
	r.streamed = nil
}
