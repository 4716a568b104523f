package cellstream_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"lashd/engine/cellstream"
	"lashd/engine/driver/rlm"
	"lashd/engine/provider"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

func splitter(language string) turn.Splitter { return rlm.Driver{}.Splitter(language) }

// lines returns the content of pieces, one line for each, and what a collector makes of them.
func lines(pieces []cellstream.Piece) (all []string, reply provider.Reply) {
	var c provider.Collector
	for _, p := range pieces {
		c.Add(&p.Chunk)
		for kind, text := range map[string]string{"prose": p.Text, "commentary": p.Commentary, "reasoning": p.Reasoning, "code": p.Code} {
			if text != "" {
				all = append(all, fmt.Sprintf("%s %q", kind, text))
			}
		}
		if p.Part != nil {
			all = append(all, string(p.Part.Kind))
		}
	}
	return all, c.Reply()
}

// cut cuts chunks until the cell is complete.
func cut(chunks ...provider.Chunk) (pieces []cellstream.Piece, done bool) {
	s := cellstream.New("calc", splitter)
	for i := range chunks {
		more, ends := s.Cut(&chunks[i])
		if pieces = append(pieces, more...); ends {
			return pieces, true
		}
	}
	return append(pieces, s.End()...), false
}

func TestCut(t *testing.T) {
	t.Run("runtime/R02 a driver without cells has no stream", func(t *testing.T) {
		if s := cellstream.New("", func(string) turn.Splitter { return nil }); s != nil {
			t.Errorf("%+v", s)
		}
	})
	t.Run("runtime/R02 text that is held back comes before reasoning that follows it", func(t *testing.T) {
		pieces, _ := cut(provider.Chunk{Text: "a\n<ca"}, provider.Chunk{Reasoning: "hm"}, provider.Chunk{Text: "lc>\n"})
		if got, _ := lines(pieces); strings.Join(got, ", ") != `prose "a\n", prose "<ca", reasoning "hm", prose "lc>\n"` {
			t.Errorf("pieces %s", got)
		}
	})
	t.Run("runtime/R02 a cell in commentary is a cell, and what follows it in the same chunk is dropped", func(t *testing.T) {
		pieces, done := cut(provider.Chunk{Commentary: "I look.\n<calc>\nx\n", Usage: &protocol.Usage{Input: 1}},
			provider.Chunk{Commentary: "</calc>\nand", Text: "It is 3.", Replay: []byte(`{}`), Part: &protocol.Part{Kind: protocol.PartToolCall}})
		got, reply := lines(pieces)
		if strings.Join(got, ", ") != `commentary "I look.\n", code "<calc>\nx", code "\n</calc>"` || !done || reply.Usage.Input != 1 || len(reply.Parts) != 2 {
			t.Errorf("pieces %s, done %t", got, done)
		}
	})
	t.Run("runtime/R02 a reply that is not streamed is cut, too, and keeps the provider's own block", func(t *testing.T) {
		part := &protocol.Part{Kind: protocol.PartProse, Text: "a\n<calc>\nx", Replay: []byte(`{"s":1}`), Route: "r"}
		pieces, done := cut(provider.Chunk{Part: part}, provider.Chunk{Part: &protocol.Part{Kind: protocol.PartToolCall}})
		_, reply := lines(pieces)
		if len(reply.Parts) != 3 || reply.Parts[1].Kind != protocol.PartCode || string(reply.Parts[1].Replay) != `{"s":1}` || done {
			t.Errorf("parts %+v", reply.Parts)
		}
	})
	t.Run("runtime/R02 a reply that starts again is cut from its start", func(t *testing.T) {
		pieces, done := cut(provider.Chunk{Text: "<calc>\nx"}, provider.Chunk{Reset: true}, provider.Chunk{Text: "hello\n"})
		if got, reply := lines(pieces); len(reply.Parts) != 1 || reply.Parts[0].Kind != protocol.PartProse || reply.Parts[0].Text != "hello\n" || done {
			t.Errorf("pieces %s", got)
		}
	})
	t.Run("runtime/R02 the driver reads the parts of a reply as they were cut while it arrived", func(t *testing.T) {
		scraps := []string{"<calc>\n", "</calc>\n", "x = 1\n", "hello ", "\n", " ", "<ca", "lc>\n"}
		rnd := rand.New(rand.NewPCG(1, 2))
		for range 5000 {
			var chunks []provider.Chunk
			for range rnd.IntN(10) {
				text := scraps[rnd.IntN(len(scraps))]
				chunks = append(chunks, []provider.Chunk{{Text: text}, {Text: text}, {Text: text}, {Commentary: text}, {Reasoning: "hm"}}[rnd.IntN(5)])
			}
			pieces, _ := cut(chunks...)
			_, reply := lines(pieces)
			reply.Stop = protocol.StopEnd
			actions := turn.New(rlm.Driver{}, turn.Config{})
			e, _ := actions.Next()
			actions.Deliver(e.ID, turn.Response{Sync: &turn.Environment{Code: &turn.CodeEnvironment{Language: "calc"}}})
			e, _ = actions.Next()
			actions.Deliver(e.ID, turn.Response{Model: &turn.ModelReply{Reply: reply}})
			if len(actions.Messages()) == 0 {
				continue // nothing was said
			}
			if got, want := fmt.Sprintf("%+v", actions.Messages()[0].Parts), fmt.Sprintf("%+v", reply.Parts); got != want {
				t.Fatalf("%+v\nshown as %s\nstored as %s", chunks, want, got)
			}
		}
	})
}
