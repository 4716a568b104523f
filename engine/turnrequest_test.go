package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

func TestTurnRequest(t *testing.T) {
	t.Run("plugin/HC-07 a contradictory request, or one with an id in use, starts no turn", func(t *testing.T) {
		d, _, host := lent(t, setup{model: replies(scripted.Reply{Text: "ok"})})
		other, third := d.session(t), d.session(t)
		sound := plugin.TurnRequest{
			TurnID: "trn_1", SessionID: other, Input: text("hi"), Trace: "trn_1", Scope: plugin.TurnScope{TurnID: "trn_1", SessionID: other},
		}
		id := must[protocol.TurnID](t)(host.Lifecycle.StartTurn(t.Context(), &sound))
		if report := d.wait(t, id); id != "trn_1" || report.SessionID != other || report.State != protocol.TurnCompleted {
			t.Errorf("turn %s: %+v", id, report)
		}
		for _, c := range []struct {
			want  plugin.TurnRequestCode
			spoil func(*plugin.TurnRequest)
		}{
			{plugin.BadTurnID, func(q *plugin.TurnRequest) { *q = plugin.TurnRequest{SessionID: other, Input: text("hi")} }},
			{plugin.BadTurnID, func(q *plugin.TurnRequest) { q.TurnID = " " }},
			{plugin.BadTurnID, func(q *plugin.TurnRequest) { q.TurnID = protocol.TurnID(strings.Repeat("x", 129)) }},
			{plugin.OtherScopeTurn, func(q *plugin.TurnRequest) { q.Scope.TurnID = "trn_2" }},
			{plugin.OtherScope, func(q *plugin.TurnRequest) { q.Scope.SessionID = third }},
			{plugin.OtherTrace, func(q *plugin.TurnRequest) { q.Trace = "trn_2" }},
			{plugin.TurnIDInUse, func(q *plugin.TurnRequest) { q.Input = text("something else") }},
			{plugin.TurnIDInUse, func(q *plugin.TurnRequest) { q.SessionID, q.Scope.SessionID = third, third }},
			{plugin.TurnIDInUse, func(q *plugin.TurnRequest) {
				*q = plugin.TurnRequest{TurnID: d.turn(t, third, "by a client").TurnID, SessionID: third, Input: text("hi")}
			}},
		} {
			q := sound
			c.spoil(&q)
			_, err := host.Lifecycle.StartTurn(t.Context(), &q)
			if e, ok := errors.AsType[*plugin.TurnRequestError](err); !ok || e.Code != c.want || e.TurnID != q.TurnID {
				t.Errorf("%+v: %v, want %s", q, err, c.want)
			}
		}
		for session, want := range map[protocol.SessionID]int{other: 2, third: 2} {
			if got := said(d.graph(t, session).Data); len(got) != want {
				t.Errorf("history %q, want %d messages", got, want)
			}
		}
	})
	t.Run("plugin/HC-07 repeating a request returns the same turn, also after a restart", func(t *testing.T) {
		d, _, host := lent(t, setup{model: replies(scripted.Reply{Text: "ok"})})
		q := &plugin.TurnRequest{TurnID: "trn_1", SessionID: d.session(t), Input: text("hi")}
		for range 2 {
			for range 2 {
				d.wait(t, must[protocol.TurnID](t)(host.Lifecycle.StartTurn(t.Context(), q)))
			}
			f := lentAgain(t, d)
			d, host = f.daemon, f.host
			d.setup.plugins = nil
		}
		if got := said(d.graph(t, q.SessionID).Data); len(got) != 2 {
			t.Errorf("history %q", got)
		}
	})
	t.Run("plugin/HC-07 starting a turn without waiting for it does not block the next one", func(t *testing.T) {
		var other protocol.SessionID
		careless := hooked{"careless", func(r *plugin.Registrar) {
			r.Turn().Checkpoint(func(ctx context.Context, c *plugin.CheckpointContext) ([]plugin.Directive, error) {
				if c.View.Session.ID == other {
					return nil, nil
				}
				_, err := c.Host.Lifecycle.StartTurn(ctx, &plugin.TurnRequest{TurnID: "of-" + c.TurnID, SessionID: other, Input: text("hi")})
				return nil, err
			})
		}}
		d := start(t, setup{cwd: t.TempDir(), model: replies(scripted.Reply{Text: "ok"}), plugins: plugins(careless)})
		other = d.session(t)
		id := d.session(t)
		for range 3 {
			if report := d.turn(t, id, "go"); report.State != protocol.TurnCompleted {
				t.Errorf("report %+v", report.Issues)
			}
		}
		must[*protocol.SessionWaitResult](t)(d.Sessions.Wait(t.Context(), &protocol.SessionWaitParams{SessionID: other}))
		if got := said(d.graph(t, other).Data); len(got) != 6 {
			t.Errorf("history %q, want three turns", got)
		}
	})
}
