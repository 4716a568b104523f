package e2e

import (
	"slices"
	"testing"

	"lashd/rpc/protocol"
)

func TestReconnectByCursor(t *testing.T) {
	for name, end := range map[string]func(*daemon){"SIGKILL": (*daemon).kill, "SIGTERM": (*daemon).stop} {
		t.Run("reliability/P11 across "+name, func(t *testing.T) {
			w := newWorld(t, "allow", step(says("one"), shell(once)), step(says("half"), stalls), step(says("whole")), step(says("two")))
			d := w.serve()
			p := w.dial("")
			id := p.session(w.home)
			first := p.start(id, "go").TurnID
			p.streamed("onehalf")
			seen := p.log(id)
			end(d)

			w.serve()
			q := w.dial("")
			r := attachAt(q, id, seen[len(seen)-1].Seq, p.init.Epoch)
			if r.Gap != nil || r.Items != nil {
				t.Errorf("attached with gap %+v and %d items, want a snapshot", r.Gap, len(r.Items))
			}
			q.completed(first)
			q.turn(id, "again")
			later := q.log(id)
			if err := gapless(append(seen, later...), 1); err != nil {
				t.Error("events of both daemons:", err)
			}
			if err := repeats(w.replay(id), append(seen, later...)); err != nil {
				t.Error(err)
			}
			if w.size("ran") != 1 {
				t.Errorf("the command ran %d times", w.size("ran"))
			}
		})
	}
}

func attachAt(p *peer, id protocol.SessionID, after protocol.Seq, epoch int64) protocol.SessionAttachResult {
	p.t.Helper()
	params := protocol.SessionAttachParams{SessionID: id, AfterSeq: &after, Epoch: epoch}
	return ask[protocol.SessionAttachResult](p, "session/attach", params)
}

func TestCursorThatCannotBeReplayed(t *testing.T) {
	w := newWorld(t, "allow", step(says("hello")), step(says("again")))
	d := w.serve()
	p := w.dial("")
	id := p.session(w.home)
	p.turn(id, "go")
	d.kill()
	w.serve()
	newest := w.dial("").attach(id, 0).Seq
	for _, c := range []struct {
		name   string
		after  protocol.Seq
		epoch  int64
		reason string
	}{
		{"ahead of the store", newest + 7, p.init.Epoch, "rolledBack"},
		{"of another store", 1, p.init.Epoch + 1, "otherStore"},
	} {
		r := attachAt(w.dial(""), id, c.after, c.epoch)
		want := protocol.Gap{SessionID: id, FromSeq: c.after + 1, ToSeq: newest, Reason: c.reason}
		if r.Gap == nil || *r.Gap != want || r.Seq != newest {
			t.Errorf("reliability/P11 a cursor %s: gap %+v at seq %d, want %+v at %d", c.name, r.Gap, r.Seq, want, newest)
		}
		if said := texts(r.Items); !slices.Equal(said, []string{"go", "hello"}) {
			t.Errorf("reliability/P11 a cursor %s: items of the snapshot: %q", c.name, said)
		}
	}

	q := w.dial("") // events after a gap are delivered
	r := attachAt(q, id, newest+7, 0)
	end := q.completed(q.start(id, "again").TurnID)
	if err := gapless(q.log(id), r.Seq+1); err != nil || end.Outcome.Text != "again" {
		t.Errorf("reliability/P11 after a gap: %v; the turn's answer is %q", err, end.Outcome.Text)
	}

	_, err := try[protocol.SessionAttachResult](q, "session/attach", protocol.SessionAttachParams{SessionID: "ses_lost", AfterSeq: &newest})
	if code, kind := refusal(err); code != -32002 || kind != protocol.KindSessionNotFound {
		t.Errorf("reliability/P11 a cursor of a session that does not exist: %v", err)
	}
}

// TestNothingFollowsADetachment detaches repeatedly while text streams.
func TestNothingFollowsADetachment(t *testing.T) {
	w := newWorld(t, "allow")
	w.serve()
	p := w.dial("")
	id := p.session(w.home)
	turn := p.start(id, "[[fake deltas=100000 size=8]]").TurnID
	for range 40 {
		p.attach(id, 0)
		p.detach(id)
		before, _ := p.events()
		ask[protocol.Empty](p, "ping", protocol.Empty{})
		if after, _ := p.events(); len(after) != len(before) {
			t.Fatalf("issue/6-3 %d events follow a detachment, such as %s", len(after)-len(before), after[len(before)].raw)
		}
	}
	ask[protocol.TurnInterruptResult](p, "turn/interrupt", protocol.TurnInterruptParams{TurnID: turn})
}

func (p *peer) detach(id protocol.SessionID) {
	p.t.Helper()
	ask[protocol.Empty](p, "session/detach", protocol.SessionParams{SessionID: id})
}
