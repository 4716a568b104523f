package engine

import (
	"cmp"
	"context"
	"iter"
	"time"

	"lashd/engine/cellstream"
	"lashd/engine/change"
	"lashd/engine/feed"
	"lashd/engine/graph"
	"lashd/engine/models"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// streaming shows a model's reply while it arrives. Each part becomes an item with the id that it
// will have in history, in the order in which the parts begin. It begins a part exactly where the
// collector does, so that both agree on the ids. One value serves one model call, including its
// retries, on the turn's goroutine.
type streaming struct {
	*run
	model     models.Model
	node      protocol.NodeID    // the node that the reply will become
	collector provider.Collector // builds the reply for history
	cells     *cellstream.Stream // nil: the reply has no code
	parts     int                // parts begun so far
	kind      protocol.PartKind
	current   *feed.Item     // the item that grows; nil: the next text begins one
	items     []*feed.Item   // shown, until a commit completes or withdraws them
	stopped   bool           // the reply is complete
	sawText   bool           // the model sent text, even if plugins removed all of it
	aborted   bool           // the rest is not read: a plugin stopped the reply, or its code cell is complete
	events    []change.Event // of plugins, stored together with the answer
}

// trailingUsage is how long lashd keeps reading a reply that was stopped, to learn its token usage.
const trailingUsage = 2 * time.Second

// call sends the request and reads the reply to its end. It returns the provider's error or that of
// a stream hook. The part of the reply that arrived is in reply() either way. After the
// reply was stopped, it reads on for trailingUsage at most and then hangs up.
func (s *streaming) call(ctx context.Context, req *provider.Request) error {
	calling, hangUp := context.WithCancel(ctx)
	defer hangUp()
	late := time.AfterFunc(trailingUsage, hangUp)
	late.Stop() // until the reply is stopped
	defer late.Stop()
	return s.read(s.model.Stream(calling, req), func(c *provider.Chunk) error {
		err := s.take(ctx, c)
		if s.aborted {
			late.Reset(trailingUsage)
		}
		return err
	})
}

// read consumes the chunks of a reply. A panic of the provider is an error of the call. A stream
// that ends without a stop reason is an error, too, unless lashd stopped it.
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

// take filters, shows and collects one chunk. A reset means that the provider starts the reply
// again: plugins and subscribers drop the first attempt.
func (s *streaming) take(ctx context.Context, c *provider.Chunk) error {
	if c.Reset {
		s.sawText = false
		s.notifyFinished(ctx, plugin.StreamAttemptReset)
	}
	err := s.filter(ctx, c)
	s.stopped = s.stopped || c.Stop != ""
	if s.cells == nil {
		s.show(c)
		s.collector.Add(c)
		return err
	}
	pieces, done, broken := s.cut(c)
	s.takePieces(pieces)
	s.aborted = s.aborted || done && !s.stopped
	return cmp.Or(err, broken)
}

// cut cuts a chunk into pieces. A driver that panics or hangs fails the call.
func (s *streaming) cut(c *provider.Chunk) (all []cellstream.Piece, done bool, err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case error:
			err = &hookFailure{"plugin_driver", p}
		default:
			panic(p)
		}
	}()
	all, done = s.cells.Cut(c)
	return all, done, nil
}

// takePieces shows and collects pieces of a reply with code.
func (s *streaming) takePieces(pieces []cellstream.Piece) {
	for i := range pieces {
		p := &pieces[i]
		s.show(&p.Chunk)
		if p.Code != "" {
			s.grow(protocol.PartCode, p.Shown)
		}
		s.collector.Add(&p.Chunk)
	}
}

// takeUsage collects only the token usage of a chunk, after the reply was stopped. It reports
// whether reading can end.
func (s *streaming) takeUsage(c *provider.Chunk) bool {
	if c.Usage != nil {
		s.collector.Add(&provider.Chunk{Usage: c.Usage})
	}
	return c.Usage != nil || c.Retry != nil || c.Reset
}

// reply returns the reply as collected so far. A reply that lashd stopped ends as a normal
// reply, with an attempt marked aborted.
func (s *streaming) reply() provider.Reply {
	if s.cells != nil {
		s.takePieces(s.cells.End())
	}
	if s.aborted {
		ended := protocol.CallAttempt{Outcome: protocol.AttemptAborted, Position: "streaming"}
		s.collector.Add(&provider.Chunk{Stop: protocol.StopEnd, Attempt: &ended})
	}
	reply := s.collector.Reply()
	reply.Streamed = reply.Streamed || s.sawText
	provider.Sanitize(reply.Parts)
	return reply
}

// show publishes a chunk to subscribers as deltas of items.
func (s *streaming) show(c *provider.Chunk) {
	if c.Reset {
		s.feed.End(s.items, true)
		s.items, s.current, s.parts = nil, nil, 0
	}
	if c.Retry != nil {
		s.feed.Show(protocol.Event{Type: protocol.EventRetryStatus, TurnID: s.run.id, Retry: c.Retry})
	}
	s.growText(protocol.PartReasoning, c.Reasoning)
	s.growText(protocol.PartCommentary, c.Commentary)
	s.growText(protocol.PartProse, c.Text)
	if c.Part != nil {
		s.current = nil
		s.parts++
	}
	if c.Replay != nil {
		s.current = nil
	}
}

// growText is grow for text that may be empty.
func (s *streaming) growText(kind protocol.PartKind, text string) {
	if text != "" {
		s.grow(kind, text)
	}
}

// grow appends text to the current item, or begins a new item if the kind of text changed. The
// opening tag of code begins an item and shows nothing.
func (s *streaming) grow(kind protocol.PartKind, text string) {
	if s.current == nil || s.kind != kind {
		s.kind = kind
		item := protocol.Item{ID: graph.ItemIDOf(s.node, s.parts), Kind: itemKind(kind), TurnID: s.run.id}
		if kind == protocol.PartCode {
			item.Language = s.cells.Language
		}
		s.current = s.feed.Begin(item)
		s.items = append(s.items, s.current)
		s.parts++
	}
	if text != "" {
		s.feed.Grow(s.current, text)
	}
}

// itemKind returns the kind of item that streamed text becomes. Commentary and answers are both
// messages of the agent.
func itemKind(kind protocol.PartKind) protocol.ItemKind {
	switch kind {
	case protocol.PartReasoning:
		return protocol.ItemReasoning
	case protocol.PartCode:
		return protocol.ItemCodeCell
	}
	return protocol.ItemAgentMessage
}
