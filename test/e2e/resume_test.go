package e2e

import (
	"fmt"
	"slices"
	"testing"

	"lashd/rpc/protocol"
)

func TestResumeAfterStops(t *testing.T) {
	w := newWorld(t, "allow")
	d := w.serve()
	id := w.dial("").session(w.home)
	var said []string // inputs and answers in turn
	for life := range 3 {
		p := w.dial("")
		if items := texts(readSession(p, id).Data); !slices.Equal(items, said) {
			t.Errorf("reliability/P25 daemon %d has %q, want %q", life, items, said)
		}
		q, a := fmt.Sprint("question ", life), fmt.Sprint("answer ", life)
		w.model.Push(step(says(a)))
		p.attach(id, 0)
		report := p.turn(id, q)
		if report.Output.Safe != a || p.completed(report.TurnID).Outcome.Text != a {
			t.Errorf("the turn of daemon %d answers %q", life, report.Output.Safe)
		}
		said = append(said, q)
		if sent := w.sent(); !slices.Equal(sent, said) {
			t.Errorf("reliability/P25 the model reads %q from daemon %d, want %q", sent, life, said)
		}
		said = append(said, a)
		d.stop()
		d = w.serve()
	}
	all := w.replay(id)
	if err := gapless(all, 1); err != nil {
		t.Error(err)
	}
	if s := readSession(w.dial(""), id).Session; s.TurnIndex != 3 || int(s.Seq) != len(all) {
		t.Errorf("the session has %d turns and ends at seq %d of %d", s.TurnIndex, s.Seq, len(all))
	}
}

func readSession(p *peer, id protocol.SessionID) protocol.SessionReadResult {
	p.t.Helper()
	return ask[protocol.SessionReadResult](p, "session/read", protocol.SessionReadParams{SessionID: id})
}

func texts(items []protocol.Item) (list []string) {
	for _, i := range items {
		list = append(list, i.Text)
	}
	return list
}

// sent returns the messages of the newest request, without the system prompt.
func (w *world) sent() (list []string) {
	all := w.model.Requests()
	for _, m := range all[len(all)-1].Chat.Messages {
		if m.Role != "system" {
			list = append(list, string(m.Content))
		}
	}
	return list
}
