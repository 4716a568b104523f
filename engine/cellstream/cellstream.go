// Package cellstream cuts the chunks of a model's reply at the borders between prose and code cells, with the splitter of a
// driver. The turn that reads a reply uses it while the reply arrives.
package cellstream

import (
	"lashd/engine/provider"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// Stream is the state for one reply, including its retries. The driver reads stored replies by the same rules, so the parts
// of history are the ones that were shown. It is not safe for concurrent use.
type Stream struct {
	Language string // of the cells
	begin    func() turn.Splitter
	splitter turn.Splitter     // of the current attempt
	kind     protocol.PartKind // of the text that the splitter reads: prose or commentary; "": none yet
}

// New returns the stream of a reply with cells in the language. begin returns a new splitter for each attempt; if it returns
// nil, so does New, because the reply has no cells.
func New(language string, begin func(language string) turn.Splitter) *Stream {
	splitter := begin(language)
	if splitter == nil {
		return nil
	}
	return &Stream{Language: language, splitter: splitter, begin: func() turn.Splitter { return begin(language) }}
}

// Piece is a chunk with content of one kind.
type Piece struct {
	provider.Chunk
	Shown string // of Code: the text that people see
}

// Cut returns a chunk as pieces, in order. The first has the facts about the call, and no content. done reports whether the
// cell is complete, and the rest of the reply not needed.
func (s *Stream) Cut(c *provider.Chunk) (all []Piece, done bool) {
	if c.Reset {
		s.splitter, s.kind = s.begin(), ""
	}
	facts := *c
	facts.Text, facts.Commentary, facts.Reasoning, facts.Part, facts.Replay, facts.Route = "", "", "", nil, nil, ""
	all = append([]Piece{{Chunk: facts}}, s.content(c)...)
	return all, s.splitter.Done()
}

// content returns the content of a chunk as pieces.
func (s *Stream) content(c *provider.Chunk) (all []Piece) {
	if c.Reasoning != "" {
		all = s.between(provider.Chunk{Reasoning: c.Reasoning})
	}
	all = append(all, s.write(protocol.PartCommentary, c.Commentary)...)
	all = append(all, s.write(protocol.PartProse, c.Text)...)
	if c.Part != nil {
		all = append(all, s.part(c.Part)...)
	}
	if c.Replay != nil {
		all = append(all, s.between(provider.Chunk{Replay: c.Replay, Route: c.Route})...)
	}
	if c.Stop != "" {
		all = append(all, s.End()...)
	}
	return all
}

// between returns what was held back, and then content that is not text. After the cell it returns nothing.
func (s *Stream) between(c provider.Chunk) []Piece {
	all := s.End()
	if !s.splitter.Done() {
		all = append(all, Piece{Chunk: c})
	}
	return all
}

// write returns what is known of the text after a delta of prose or commentary.
func (s *Stream) write(kind protocol.PartKind, delta string) (all []Piece) {
	if delta == "" {
		return nil
	}
	if s.kind != kind {
		all = s.End()
	}
	s.kind = kind
	return append(all, s.pieces(s.splitter.Write(delta))...)
}

// part returns a whole part of a reply that is not streamed.
func (s *Stream) part(p *protocol.Part) []Piece {
	if p.Kind != protocol.PartProse && p.Kind != protocol.PartCommentary {
		return s.between(provider.Chunk{Part: p})
	}
	all := append(s.End(), s.write(p.Kind, p.Text)...)
	if p.Replay != nil {
		return append(all, s.between(provider.Chunk{Replay: p.Replay, Route: p.Route})...)
	}
	return append(all, s.End()...)
}

// End returns the text that was held back because more text could follow. Call it at the end of the reply, too: a reply
// that fails has no chunk that says so.
func (s *Stream) End() []Piece { return s.pieces(s.splitter.Break()) }

// pieces converts the pieces of the splitter.
func (s *Stream) pieces(from []turn.Piece) []Piece {
	all := make([]Piece, len(from))
	for i, p := range from {
		switch {
		case p.Kind == protocol.PartCode:
			all[i] = Piece{provider.Chunk{Code: p.Text}, p.Shown}
		case s.kind == protocol.PartCommentary:
			all[i].Commentary = p.Text
		default:
			all[i].Text = p.Text
		}
	}
	return all
}
