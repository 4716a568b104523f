package plugin_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// before is a plugin with a hook before turns.
func before(id string, hook plugin.TurnHook) plugin.Factory {
	return with(id, func(r *plugin.Registrar) { r.Turn().Before(hook) })
}

func wants(directives ...plugin.Directive) plugin.TurnHook {
	return func(context.Context, *plugin.TurnContext) ([]plugin.Directive, error) { return directives, nil }
}

var create = plugin.Directive{Kind: plugin.CreateSession, Session: &protocol.SessionNewParams{Cwd: "/w"}}

func TestTurnSeams(t *testing.T) {
	t.Run("plugin/PH-01 plugin/HK-01 hooks run in the order of the factories, and all their directives are collected", func(t *testing.T) {
		var marks []string
		s := open(t, before("c", wants(create, plugin.Tell())), before("a", wants()), before("b", wants(plugin.Abort("x", "y"))))
		s.SetProbe(func(mark string) { marks = append(marks, mark) })
		got, err := s.BeforeTurn(t.Context(), &plugin.TurnContext{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"c create_session", "c emit_runtime_events", "b abort_turn"}, ids(got)); diff != "" {
			t.Error(diff)
		}
		want := []string{"plugin_hook.before_turn.c begin", "plugin_hook.before_turn.c end", "plugin_hook.before_turn.a begin",
			"plugin_hook.before_turn.a end", "plugin_hook.before_turn.b begin", "plugin_hook.before_turn.b end"}
		if diff := cmp.Diff(want, marks); diff != "" {
			t.Error(diff)
		}
	})
	for name, bad := range map[string]plugin.TurnHook{
		"plugin b: before_turn: boom":             func(context.Context, *plugin.TurnContext) ([]plugin.Directive, error) { return nil, errBoom },
		"plugin b: before_turn: panicked: clumsy": func(context.Context, *plugin.TurnContext) ([]plugin.Directive, error) { panic("clumsy") },
	} {
		t.Run("plugin/S-01 plugin/HK-01 a failing hook drops the directives of the others: "+name, func(t *testing.T) {
			var last string
			s := open(t, before("a", wants(create)), before("b", bad), before("c", wants(create)))
			s.SetProbe(func(mark string) { last = mark })
			got, err := s.BeforeTurn(t.Context(), &plugin.TurnContext{})
			if got != nil || err == nil || err.Error() != name {
				t.Errorf("%v, %v", got, err)
			}
			if last != "plugin_hook.before_turn.b end" {
				t.Errorf("the last mark is %s", last)
			}
		})
	}
	t.Run("every hook gets its own copies", func(t *testing.T) {
		spoil := func(_ context.Context, tc *plugin.TurnContext) ([]plugin.Directive, error) {
			tc.TurnID, tc.Input[0].Parts[0].Text, tc.Inputs["p"][0] = "spoilt", "spoilt", 'X'
			return nil, nil
		}
		var seen plugin.TurnContext
		see := func(_ context.Context, tc *plugin.TurnContext) ([]plugin.Directive, error) {
			seen = *tc
			return nil, nil
		}
		tc := plugin.TurnContext{TurnID: "t", Inputs: protocol.PluginInputs{"p": raw(`1`)},
			Input: []protocol.Message{{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: "hi"}}}}}
		if _, err := open(t, before("a", spoil), before("b", see)).BeforeTurn(t.Context(), &tc); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc, seen); diff != "" || tc.Input[0].Parts[0].Text != "hi" {
			t.Error(diff)
		}
	})
	t.Run("no hook runs after the turn has ended, and a hook that ends with it has not failed", func(t *testing.T) {
		ended := errors.New("ended")
		ctx, cancel := context.WithCancelCause(t.Context())
		late := false
		s := open(t, before("a", func(ctx context.Context, _ *plugin.TurnContext) ([]plugin.Directive, error) {
			cancel(ended)
			return nil, ctx.Err()
		}), before("b", func(context.Context, *plugin.TurnContext) ([]plugin.Directive, error) {
			late = true
			return nil, nil
		}))
		for range 2 {
			if _, err := s.BeforeTurn(ctx, &plugin.TurnContext{}); !errors.Is(err, ended) || late {
				t.Errorf("error %v, asked %v", err, late)
			}
		}
	})
	t.Run("directives of checkpoint and after-turn hooks are collected, and no hooks return none", func(t *testing.T) {
		var kind protocol.Boundary
		s := open(t, with("p", func(r *plugin.Registrar) {
			r.Turn().Checkpoint(func(_ context.Context, cc *plugin.CheckpointContext) ([]plugin.Directive, error) {
				kind = cc.Kind
				return []plugin.Directive{plugin.Enqueue()}, nil
			})
			r.Turn().After(func(_ context.Context, sum *plugin.TurnSummary) ([]plugin.Directive, error) {
				sum.Report.TurnID = "spoilt"
				return []plugin.Directive{plugin.Enqueue()}, nil
			})
		}))
		report := &protocol.TurnReport{TurnID: "t"}
		at, err1 := s.Checkpoint(t.Context(), &plugin.CheckpointContext{Kind: protocol.BoundaryAfterWork})
		after, err2 := s.AfterTurn(t.Context(), &plugin.TurnSummary{Report: report})
		if err := errors.Join(err1, err2); err != nil || !slices.Equal(ids(at), []string{"p enqueue_messages"}) || len(after) != 1 || report.TurnID != "t" || kind != protocol.BoundaryAfterWork {
			t.Errorf("%v, %v, %v, %v", at, after, report, err)
		}
		empty := open(t)
		if s.HasBeforeTurn() || !s.HasCheckpoint() || !s.HasAfterTurn() || empty.HasCheckpoint() || empty.HasAfterTurn() {
			t.Error("has")
		}
	})
}

// legality lists the seams at which each directive is allowed.
var legality = map[plugin.DirectiveKind][]plugin.Hook{
	plugin.AbortTurn:        {plugin.HookBeforeTurn, plugin.HookBeforeTool, plugin.HookAfterTool, plugin.HookCheckpoint},
	plugin.EnqueueMessages:  {plugin.HookBeforeTurn, plugin.HookAfterTool, plugin.HookCheckpoint, plugin.HookAfterTurn},
	plugin.CreateSession:    {plugin.HookBeforeTurn, plugin.HookBeforeTool, plugin.HookAfterTool, plugin.HookCheckpoint, plugin.HookAfterTurn},
	plugin.ReplaceToolArgs:  {plugin.HookBeforeTool},
	plugin.ShortCircuitTool: {plugin.HookBeforeTool, plugin.HookAfterTool},
	plugin.RequireApproval:  {plugin.HookBeforeTool},
	plugin.CompactHistory:   {plugin.HookAfterTurn},
	plugin.EmitEvents:       {plugin.HookBeforeTurn, plugin.HookBeforeTool, plugin.HookAfterTool, plugin.HookCheckpoint, plugin.HookAfterTurn},
	plugin.EmitTrace:        {plugin.HookBeforeTurn, plugin.HookBeforeTool, plugin.HookAfterTool, plugin.HookCheckpoint, plugin.HookAfterTurn},
}

var directives = []plugin.Directive{
	plugin.Abort("c", "m"), plugin.Enqueue(), create, plugin.ReplaceArgs(raw(`{}`)), plugin.ShortCircuit(protocol.Succeed("x")),
	plugin.AskFirst("why"), plugin.Tell(), plugin.TraceWith("n", nil), plugin.Compact(),
}

func TestLegality(t *testing.T) {
	seams := []plugin.Hook{plugin.HookBeforeTurn, plugin.HookBeforeTool, plugin.HookAfterTool, plugin.HookCheckpoint, plugin.HookAfterTurn}
	for _, d := range directives {
		for _, seam := range seams {
			err := plugin.CheckSeam(seam, plugin.Owned{Plugin: "p", Directive: d})
			if want := slices.Contains(legality[d.Kind], seam); (err == nil) != want {
				t.Errorf("plugin/HK-03 plugin/HK-07 %s at %s: %v, want legal %v", d.Kind, seam, err, want)
			}
		}
	}
	for want, d := range map[string]plugin.Directive{
		"plugin p: after_turn: abort_turn is too late, because the turn has ended: c: m": plugin.Abort("c", "m"),
		"plugin p: after_turn: replace_tool_args is not allowed here":                    plugin.ReplaceArgs(raw(`{}`)),
		"plugin p: after_turn: create_session has no session":                            {Kind: plugin.CreateSession},
		"plugin p: after_turn: emit_trace has no record":                                 {Kind: plugin.EmitTrace},
		"plugin p: after_turn: handoff_session is not allowed here":                      {Kind: "handoff_session"},
	} {
		if err := plugin.CheckSeam(plugin.HookAfterTurn, plugin.Owned{Plugin: "p", Directive: d}); err == nil || err.Error() != want {
			t.Errorf("plugin/HK-03 %v, want %s", err, want)
		}
	}
}
