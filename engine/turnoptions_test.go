package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine"
	"lashd/engine/driver/standard"
	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/engine/workgroup"
	"lashd/rpc/protocol"
)

// optioned is the standard driver and records the options of each turn.
type optioned struct {
	standard.Driver
	*notes
}

func (o optioned) Prepare(v turn.View) []turn.Action {
	o.add("driver " + payload(v.Options))
	return o.Driver.Prepare(v)
}

func payload(o *protocol.TurnOptions) string {
	if o == nil {
		return "none"
	}
	return string(o.Payload)
}

// picky is a driver that records options and checks those of turns.
func picky(plugin.BuildContext) plugin.ProtocolSession {
	return plugin.ProtocolSession{
		Materialize: func(context.Context, *plugin.Materialization) (*plugin.Materialized, error) {
			return &plugin.Materialized{Options: turnOptions(`{"format":"markdown","depth":1}`), AllFrames: true}, nil
		},
		ValidateTurn: func(_ context.Context, o *protocol.TurnOptions) error {
			if strings.Contains(string(o.Payload), "bad") {
				return errors.New("no such format")
			}
			return nil
		},
		ApplyExtension: func(_ context.Context, x json.RawMessage) error {
			if string(x) == `"bad"` {
				return errors.New("not that")
			}
			return nil
		},
	}
}

func TestTurnOptions(t *testing.T) {
	watch := func(seen *notes) setup {
		s := with(hooked{"watch", func(r *plugin.Registrar) {
			r.Prompt().Hook(func(_ context.Context, pc *plugin.PromptContext) ([]plugin.Prompt, error) {
				seen.add("prompt " + payload(pc.View.TurnOptions))
				return nil, nil
			})
			r.Turn().Before(func(_ context.Context, tc *plugin.TurnContext) ([]plugin.Directive, error) {
				seen.add("before " + payload(tc.View.TurnOptions))
				return nil, nil
			})
		}})
		s.driver = scheme{driver: optioned{notes: seen}, callbacks: picky}
		return s
	}
	begin := func(t *testing.T, d *daemon, id protocol.SessionID, o protocol.TurnOptions) (*protocol.TurnStartResult, error) {
		t.Helper()
		p := &protocol.TurnStartParams{SessionID: id, Input: text("go"), TurnOptions: &o}
		p.IdempotencyKey = "k" + string(o.Payload)
		return d.Turns.Start(t.Context(), p)
	}
	t.Run("plugin/PR-04 options of a turn override the session's for that turn only", func(t *testing.T) {
		seen := &notes{}
		d := start(t, watch(seen))
		id := d.session(t)
		d.wait(t, must[*protocol.TurnStartResult](t)(begin(t, d, id, turnOptions(`{"format":"json"}`))).TurnID)
		d.turn(t, id, "next")
		mine, theirs := `{"depth":1,"format":"json"}`, `{"format":"markdown","depth":1}`
		want := []string{"before " + mine, "prompt " + mine, "driver " + mine, "before " + theirs, "prompt " + theirs, "driver " + theirs}
		if got := seen.all(); !slices.Equal(got, want) {
			t.Errorf("seen\n%q, want\n%q", got, want)
		}
	})
	t.Run("plugin/PR-04 they survive a restart, for a running turn and for a queued one", func(t *testing.T) {
		seen, g := &notes{}, newGate("work")
		s := watch(seen)
		s.model, s.tools, s.config = replies(calls("work")), []tool.Provider{g}, soon
		d := start(t, s)
		id := d.session(t)
		first := must[*protocol.TurnStartResult](t)(begin(t, d, id, turnOptions(`{"n":1}`))).TurnID
		<-g.called
		second := must[*protocol.TurnStartResult](t)(begin(t, d, id, turnOptions(`{"n":2}`))).TurnID
		d = d.restart(t, nil)
		d.wait(t, first)
		d.wait(t, second)
		last := seen.all()
		for i, want := range []string{`"n":1`, `"n":2`} {
			if got := last[len(last)-4+3*i]; !strings.Contains(got, want) {
				t.Errorf("seen %q, want %s in %q", last, want, got)
			}
		}
	})
	t.Run("plugin/PR-04 options that the driver rejects change nothing", func(t *testing.T) {
		d := start(t, watch(&notes{}))
		id := d.session(t)
		must[*protocol.ToolListResult](t)(d.Tools.List(t.Context(), &protocol.SessionParams{SessionID: id}))
		before := must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id})).Session
		for _, o := range []protocol.TurnOptions{turnOptions(`"bad"`), {SchemaVersion: 2, Payload: []byte(`{}`)}} {
			if _, err := begin(t, d, id, o); !errors.As(err, new(*engine.RejectedError)) {
				t.Errorf("%s: %v", o.Payload, err)
			}
		}
		if _, err := begin(t, d, id, protocol.TurnOptions{Payload: []byte(`{}`)}); !errors.As(err, new(*param.Error)) {
			t.Errorf("without a version: %v", err)
		}
		after := must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id})).Session
		if after.Seq != before.Seq || after.UpdatedAtMs != before.UpdatedAtMs {
			t.Errorf("before %+v, after %+v", before, after)
		}
	})
	t.Run("plugin/PR-01 plugin/PR-04 an extension reaches the driver or is rejected", func(t *testing.T) {
		apply := func(s setup, x string) error {
			d := start(t, s)
			_, err := d.Sessions.ApplyExtension(t.Context(), &protocol.SessionExtensionParams{SessionID: d.session(t), Extension: []byte(x)})
			return err
		}
		if err := apply(watch(&notes{}), `1`); err != nil {
			t.Error(err)
		}
		if err := apply(watch(&notes{}), `"bad"`); !errors.As(err, new(*engine.RejectedError)) {
			t.Errorf("error %v", err)
		}
		if err := apply(with(), `1`); !errors.Is(err, plugin.ErrExtension) || !errors.As(err, new(*engine.RejectedError)) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("plugin/PR-04 a driver that does not answer fails the request, and the session continues", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			hang := make(chan struct{})
			s := watch(&notes{})
			s.driver = scheme{callbacks: func(plugin.BuildContext) plugin.ProtocolSession {
				return plugin.ProtocolSession{
					ValidateTurn:   func(context.Context, *protocol.TurnOptions) error { <-hang; return nil },
					ApplyExtension: func(context.Context, json.RawMessage) error { <-hang; return nil },
				}
			}}
			d := start(t, s)
			id := d.session(t)
			for name, call := range map[string]func() error{
				"turn/start": func() error { _, err := begin(t, d, id, turnOptions(`1`)); return err },
				"session/applyExtension": func() error {
					_, err := d.Sessions.ApplyExtension(t.Context(), &protocol.SessionExtensionParams{SessionID: id, Extension: []byte(`1`)})
					return err
				},
			} {
				began := time.Now()
				if err := call(); !errors.Is(err, workgroup.ErrSlowPlugin) || errors.As(err, new(*engine.RejectedError)) || time.Since(began) > 11*time.Second {
					t.Errorf("%s: after %v: %v", name, time.Since(began), err)
				}
				if report := d.turn(t, id, "go"); report.State != protocol.TurnCompleted {
					t.Errorf("%s: the next turn ended as %s", name, report.State)
				}
			}
			close(hang)
			synctest.Wait()
			if got := said(d.graph(t, id).Data); len(got) != 4 {
				t.Errorf("history has %q", got)
			}
		})
	})
}
