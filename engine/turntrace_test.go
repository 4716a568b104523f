package engine_test

import (
	"errors"
	"slices"
	"testing"

	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

func TestTurnTrace(t *testing.T) {
	t.Run("issue/6-1 a trace has exactly the durable events of its turn, as subscribers received them", tracedWhole)
	t.Run("issue/6-1 a trace is read in pages", func(t *testing.T) {
		d := start(t, setup{model: replies(calls("work")), tools: []tool.Provider{says("work", "done")}})
		id := d.session(t)
		turn := d.turn(t, id, "go").TurnID
		whole := d.traced(t, turn, 500)
		if paged := d.traced(t, turn, 2); !slices.Equal(seqs(paged), seqs(whole)) {
			t.Errorf("in pages %v, at once %v", seqs(paged), seqs(whole))
		}
	})
	t.Run("issue/6-1 a trace of a running turn has its events so far, with items that are not history yet", func(t *testing.T) {
		g := newGate("work")
		d := start(t, setup{model: replies(calls("work")), tools: []tool.Provider{g}})
		id := d.session(t)
		turn := d.begin(t, id, "go").TurnID
		<-g.called
		all := d.traced(t, turn, 500)
		at := slices.IndexFunc(all, func(e protocol.Event) bool { return e.Type == protocol.EventItemStarted })
		if at < 0 || all[at].Item == nil || all[at].Item.Tool != "work" {
			t.Errorf("of the call it has %+v", all)
		}
		close(g.open)
		d.wait(t, turn)
		if all = d.traced(t, turn, 500); all[len(all)-1].Type != protocol.EventTurnCompleted {
			t.Errorf("it ends with %s", all[len(all)-1].Type)
		}
	})
	t.Run("issue/6-1 the trace of an unknown turn is an error", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		if _, err := d.Turns.Trace(t.Context(), &protocol.TurnTraceParams{TurnID: "trn_none"}); !errors.Is(err, persistence.ErrNotFound) {
			t.Errorf("traced with %v", err)
		}
	})
}

func tracedWhole(t *testing.T) {
	d := start(t, setup{model: replies(calls("work")), tools: []tool.Provider{says("work", "done")}})
	id := d.session(t)
	o := d.observe(t, id)
	d.turn(t, id, "before")
	turn := d.turn(t, id, "go").TurnID
	last := d.turn(t, id, "after").TurnID
	o.until(func(e protocol.Event) bool { return e.Type == protocol.EventTurnCompleted && e.TurnID == last })
	var told []protocol.Event
	for _, e := range o.all {
		if e.TurnID == turn && e.Seq > 0 {
			told = append(told, e)
		}
	}
	d = d.restart(t, nil)
	all := d.traced(t, turn, 500)
	if !slices.Equal(seqs(all), seqs(told)) || len(all) < 6 {
		t.Fatalf("traced %v, told %v", types(all), types(told))
	}
	for i := range all {
		if c := all[i].Call; c != nil && c.Attempts == nil {
			t.Errorf("attempts of %+v are no list", c)
		}
		if a, b := all[i], told[i]; a.Type != b.Type || a.SessionID != id || (a.Item == nil) != (b.Item == nil) || a.Item != nil && a.Item.Text != b.Item.Text {
			t.Errorf("traced %+v, told %+v", a, b)
		}
	}
}

// traced reads the whole trace of a turn in pages.
func (d *daemon) traced(t *testing.T, turn protocol.TurnID, limit int) (all []protocol.Event) {
	t.Helper()
	p := &protocol.TurnTraceParams{TurnID: turn, Limit: limit}
	for {
		r := must[*protocol.TurnTraceResult](t)(d.Turns.Trace(t.Context(), p))
		all = append(all, r.Data...)
		if p.Cursor = r.NextCursor; p.Cursor == "" {
			return all
		}
	}
}

func seqs(all []protocol.Event) (n []protocol.Seq) {
	for _, e := range all {
		n = append(n, e.Seq)
	}
	return n
}
