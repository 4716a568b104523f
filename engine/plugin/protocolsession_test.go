package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

func TestProtocolSession(t *testing.T) {
	every := func(p plugin.Protocol, ctx context.Context) map[string]error {
		_, materialize := p.Materialize(ctx, &plugin.Materialization{})
		_, before := p.BeforeModel(ctx, &plugin.BeforeModel{})
		return map[string]error{
			"initialize": p.Initialize(ctx, "s"), "restore": p.Restore(ctx, nil), "append": p.AppendNodes(ctx, nil),
			"extension": p.ApplyExtension(ctx, raw(`1`)), "turn": p.ValidateTurn(ctx, &protocol.TurnOptions{}), "materialize": materialize, "before": before,
		}
	}
	for name, s := range map[string]*plugin.Session{
		"no protocol session":       open(t),
		"an empty protocol session": open(t, with("p", func(r *plugin.Registrar) { r.Protocol().Session(plugin.ProtocolSession{}) })),
	} {
		t.Run("plugin/PR-01 with "+name+" session extensions are rejected and everything else is accepted", func(t *testing.T) {
			for callback, err := range every(s.Protocol(), t.Context()) {
				if rejected := errors.Is(err, plugin.ErrExtension); rejected != (callback == "extension") || err != nil && !rejected {
					t.Errorf("%s: %v", callback, err)
				}
			}
		})
	}
	t.Run("plugin/PR-01 existing callbacks are called, and their errors name the plugin", func(t *testing.T) {
		s := open(t, with("p", func(r *plugin.Registrar) {
			r.Protocol().Session(plugin.ProtocolSession{
				Initialize:     func(context.Context, protocol.SessionID) error { return errBoom },
				Restore:        func(context.Context, *plugin.View) error { return errBoom },
				AppendNodes:    func(context.Context, []protocol.NodeBody) error { return errBoom },
				ApplyExtension: func(context.Context, json.RawMessage) error { return errBoom },
				ValidateTurn:   func(context.Context, *protocol.TurnOptions) error { panic(errBoom) },
				Materialize:    func(context.Context, *plugin.Materialization) (*plugin.Materialized, error) { return nil, errBoom },
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
