package e2e

import (
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// TestNewSessionAgainIsFollowed repeats session/new after a lost answer while the turn streams.
func TestNewSessionAgainIsFollowed(t *testing.T) {
	w := newWorld(t, "allow", step(says("half"), stalls, says(" of it")))
	w.serve()
	params := protocol.SessionNewParams{Cwd: w.work, Mutation: protocol.Mutation{IdempotencyKey: "new"}}
	p := w.dial("")
	id := ask[protocol.SessionNewResult](p, "session/new", params).SessionID
	turn := p.start(id, "go").TurnID
	p.streamed("half")
	again := w.dial("")
	if r := ask[protocol.SessionNewResult](again, "session/new", params); r.SessionID != id || !r.Duplicate {
		t.Errorf("the session is %+v, before %s", r, id)
	}
	again.streamed("half")
	started := false
	for _, e := range first(again.events()) {
		switch {
		case e.Type == protocol.EventItemStarted && e.Seq == 0:
			started = true
		case e.Type == protocol.EventItemDelta && !started:
			t.Errorf("reliability/I9 text of an unknown item: %s", e.raw)
		}
	}
	ask[protocol.TurnInterruptResult](again, "turn/interrupt", protocol.TurnInterruptParams{TurnID: turn})
	again.completed(turn)
	if got := strings.Join(texts(readSession(again, id).Data), "|"); got != "go|half" {
		t.Errorf("the session has %q", got)
	}
}

func first[A, B any](a A, _ B) A { return a }
