package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

func TestProtocolSession(t *testing.T) {
	every := func(p plugin.Protocol, ctx context.Context) map[string]error {
		_, materialize := p.Materialize(ctx, &plugin.Materialization{})
		_, before := p.BeforeModel(ctx, &plugin.BeforeModel{})
		return map[string]error{
			"initialize": p.Initialize(ctx, "s"), "restore": p.Restore(ctx, nil), "append": p.AppendNodes(ctx, nil),
			"extension": p.ApplyExtension(ctx, raw(`1`)), "turn": p.ValidateTurn(ctx, raw(`1`)), "materialize": materialize, "before": before,
		}
	}
	for name, s := range map[string]*plugin.Session{
		"no protocol session": open(t),
		"an empty one":        open(t, with("p", func(r *plugin.Registrar) { r.Protocol().Session(plugin.ProtocolSession{}) })),
	} {
		t.Run("plugin/PR-01 with "+name+" session extensions are rejected, and all else is accepted", func(t *testing.T) {
			for callback, err := range every(s.Protocol(), t.Context()) {
				if rejected := errors.Is(err, plugin.ErrExtension); rejected != (callback == "extension") || err != nil && !rejected {
					t.Errorf("%s: %v", callback, err)
				}
			}
		})
	}
	t.Run("plugin/PR-01 callbacks that are there are called, and name their plugin", func(t *testing.T) {
		s := open(t, with("p", func(r *plugin.Registrar) {
			r.Protocol().Session(plugin.ProtocolSession{
				Initialize:     func(context.Context, protocol.SessionID) error { return errBoom },
				Restore:        func(context.Context, *plugin.View) error { return errBoom },
				AppendNodes:    func(context.Context, []protocol.NodeBody) error { return errBoom },
				ApplyExtension: func(context.Context, json.RawMessage) error { return errBoom },
				ValidateTurn:   func(context.Context, json.RawMessage) error { panic(errBoom) },
				Materialize:    func(context.Context, *plugin.Materialization) (*plugin.TurnOptions, error) { return nil, errBoom },
				BeforeModel:    func(context.Context, *plugin.BeforeModel) (*protocol.FrameSwitch, error) { return nil, errBoom },
			})
		}))
		for callback, err := range every(s.Protocol(), t.Context()) {
			if e, ok := errors.AsType[*plugin.HookError](err); !ok || e.Plugin != "p" {
				t.Errorf("%s: %v", callback, err)
			}
		}
	})
}

// cells runs code, and keeps what it ran.
type cells struct{ ran string }

func (c *cells) Execute(_ context.Context, call *plugin.CodeCall) (turn.CellReply, error) {
	if call.Source == "crash" {
		panic("clumsy")
	}
	c.ran += call.Source
	return turn.CellReply{Printed: c.ran}, nil
}

func (c *cells) Dirty() bool                              { return c.ran != "" }
func (c *cells) Snapshot(context.Context) ([]byte, error) { return []byte(c.ran), nil }
func (c *cells) Restore(_ context.Context, b []byte) error {
	c.ran = string(b)
	return nil
}

func TestExecutor(t *testing.T) {
	runs := func(e plugin.CodeExecutor) *plugin.Session {
		return open(t, with("p", func(r *plugin.Registrar) { r.Execution().Executor(e) }))
	}
	t.Run("plugin/PR-07 code runs if somebody runs it", func(t *testing.T) {
		if _, err := open(t).Execute(t.Context(), &plugin.CodeCall{}); !errors.Is(err, plugin.ErrNoExecutor) {
			t.Errorf("error %v", err)
		}
		s := runs(&cells{})
		if got, err := s.Execute(t.Context(), &plugin.CodeCall{Source: "x"}); err != nil || got.Printed != "x" {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := s.Execute(t.Context(), &plugin.CodeCall{Source: "crash"}); err == nil || err.Error() != "plugin p: code_executor: panicked: clumsy" {
			t.Errorf("error %v", err)
		}
	})
	t.Run("plugin/PR-07 an executor may keep state, or not", func(t *testing.T) {
		if _, ok := open(t).ExecutionState(); ok {
			t.Error("no executor has state")
		}
		if _, ok := runs(executor{}).ExecutionState(); ok {
			t.Error("a plain executor has state")
		}
		if st, ok := runs(&cells{ran: "x"}).ExecutionState(); !ok || !st.Dirty() {
			t.Error("no state")
		}
	})
}
