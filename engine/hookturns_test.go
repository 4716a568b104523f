package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

func atCheckpoint(id string, f func(protocol.Boundary) ([]plugin.Directive, error)) hooked {
	return hooked{id, func(r *plugin.Registrar) {
		r.Turn().Checkpoint(func(_ context.Context, c *plugin.CheckpointContext) ([]plugin.Directive, error) { return f(c.Kind) })
	}}
}

func TestCheckpointHooks(t *testing.T) {
	worked := func() setup {
		return setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{says("work", "fine")}}
	}
	t.Run("plugin/HK-13 the hook runs once after each batch, and once before completion", func(t *testing.T) {
		kinds := &notes{}
		s := worked()
		s.plugins = plugins(atCheckpoint("a", func(k protocol.Boundary) ([]plugin.Directive, error) { kinds.add(string(k)); return nil, nil }))
		d := start(t, s)
		d.turn(t, d.session(t), "go")
		if !slices.Equal(kinds.list, []string{"afterWork", "beforeCompletion"}) {
			t.Errorf("checkpoints %q", kinds.list)
		}
	})
	t.Run("plugin/HK-14 messages from tool call hooks come before those from the checkpoint", func(t *testing.T) {
		s := worked()
		s.plugins = plugins(
			atCheckpoint("a", func(k protocol.Boundary) ([]plugin.Directive, error) {
				if k == protocol.BoundaryBeforeCompletion {
					return nil, nil
				}
				return []plugin.Directive{plugin.Enqueue(user("second"))}, nil
			}),
			hooked{"b", func(r *plugin.Registrar) {
				r.ToolResults().After(func(context.Context, *plugin.ToolResultContext) ([]plugin.Directive, error) {
					return []plugin.Directive{plugin.Enqueue(user("first"))}, nil
				})
			}},
		)
		d := start(t, s)
		id := d.session(t)
		d.turn(t, id, "go")
		if got := said(d.graph(t, id).Data); !slices.Equal(got, []string{"go", "", "", "first", "second", "ok"}) {
			t.Errorf("history has %q", got)
		}
	})
	t.Run("plugin/HK-15 a message before completion makes the model continue", func(t *testing.T) {
		s, once := worked(), false
		s.plugins = plugins(atCheckpoint("a", func(k protocol.Boundary) ([]plugin.Directive, error) {
			if once || k != protocol.BoundaryBeforeCompletion {
				return nil, nil
			}
			once = true
			return []plugin.Directive{plugin.Enqueue(user("are you sure?"))}, nil
		}))
		d := start(t, s)
		if report := d.turn(t, d.session(t), "go"); report.Outcome.Text != "ok" {
			t.Errorf("outcome %+v", report.Outcome)
		}
	})
	t.Run("plugin/HK-16 an abort ends the turn with the plugin's code, and steered input waits for the next turn", func(t *testing.T) {
		g := newGate("work")
		s, aborted := worked(), false
		s.tools = []tool.Provider{g}
		s.plugins = plugins(atCheckpoint("a", func(protocol.Boundary) ([]plugin.Directive, error) {
			if aborted {
				return nil, nil
			}
			aborted = true
			return []plugin.Directive{plugin.Abort("curfew", "go to bed")}, nil
		}))
		d := start(t, s)
		id := d.session(t)
		turn := d.begin(t, id, "go").TurnID
		<-g.called
		must[*protocol.TurnSteerResult](t)(d.Turns.Steer(t.Context(), &protocol.TurnSteerParams{TurnID: turn, Input: text("one more thing")}))
		close(g.open)
		report := d.wait(t, turn)
		if report.Outcome.Kind != protocol.OutcomePluginAbort || report.Issues[0].Code != "curfew" {
			t.Errorf("report %+v %+v", report.Outcome, report.Issues)
		}
		must[*protocol.SessionWaitResult](t)(d.Sessions.Wait(t.Context(), &protocol.SessionWaitParams{SessionID: id}))
		if got := said(d.graph(t, id).Data); !slices.Contains(got[3:], "one more thing") {
			t.Errorf("history has %q", got)
		}
	})
	t.Run("plugin/HK-09 an error ends the turn with a code of its own", func(t *testing.T) {
		s := worked()
		s.plugins = plugins(atCheckpoint("a", func(protocol.Boundary) ([]plugin.Directive, error) { return nil, errors.New("no") }))
		d := start(t, s)
		if report := d.turn(t, d.session(t), "go"); report.Issues[0].Code != "plugin_checkpoint" {
			t.Errorf("issues %+v", report.Issues)
		}
	})
}

func afterTurn(id string, all ...plugin.Directive) hooked {
	return hooked{id, func(r *plugin.Registrar) {
		r.Turn().After(func(context.Context, *plugin.TurnSummary) ([]plugin.Directive, error) { return all, nil })
	}}
}

func TestAfterTurn(t *testing.T) {
	t.Run("plugin/HK-17 messages are stored with the turn, and events are published after it", func(t *testing.T) {
		d := start(t, setup{model: replies(scripted.Reply{Text: "ok"}), plugins: plugins(afterTurn("a",
			plugin.Enqueue(user("by the way"), plugin.Message{Role: protocol.RoleAssistant, Content: "dropped"}),
			plugin.Tell(plugin.RuntimeEvent{Kind: "custom", Name: "a.done"}),
		))})
		id := d.session(t)
		o := d.observe(t, id)
		turn := d.begin(t, id, "go").TurnID
		o.over(turn)
		told := o.typed(protocol.EventPluginCustom)
		if told.Name != "a.done" || told.Plugin != "a" {
			t.Errorf("told %+v", told)
		}
		d = d.restart(t, nil)
		if got := said(d.graph(t, id).Data); !slices.Equal(got, []string{"go", "ok", "by the way"}) {
			t.Errorf("history has %q", got)
		}
		if shown, kept := shownItems(o.all), d.itemIDs(t, id); !slices.Equal(shown, kept) {
			t.Errorf("an observer is left with items %v, history has %v", shown, kept)
		}
	})
	t.Run("plugin/HK-18 an abort is too late: nothing of the turn becomes history", func(t *testing.T) {
		d := start(t, setup{model: replies(scripted.Reply{Text: "ok"}), plugins: plugins(afterTurn("a", plugin.Abort("x", "y")))})
		id := d.session(t)
		before := d.graph(t, id).Head.Leaf
		report := d.turn(t, id, "go")
		if report.State != protocol.TurnFailed || report.Issues[len(report.Issues)-1].Code != "plugin_finalize_turn" || d.graph(t, id).Head.Leaf != before {
			t.Errorf("report %+v", report)
		}
	})
	t.Run("plugin/HK-20 events and traces name their plugin", func(t *testing.T) {
		keep, read := traced(t)
		d := start(t, setup{model: replies(scripted.Reply{Text: "ok"}), config: keep, plugins: plugins(hooked{"noisy", func(r *plugin.Registrar) {
			r.Turn().Before(func(context.Context, *plugin.TurnContext) ([]plugin.Directive, error) {
				return []plugin.Directive{plugin.Tell(plugin.RuntimeEvent{Kind: "status", Key: "mood", Label: "fine"}), plugin.TraceWith("seen", nil)}, nil
			})
		}})})
		id := d.session(t)
		o := d.observe(t, id)
		turn := d.begin(t, id, "go").TurnID
		if e := o.typed(protocol.EventPluginStatus); e.Plugin != "noisy" || e.Name != "mood" || e.Text != "fine" {
			t.Errorf("told %+v", e)
		}
		d.wait(t, turn)
		all, _ := read()
		if got := kinds(all)["plugin.noisy.seen"]; len(got) != 1 || got[0].SessionID != id || got[0].TurnID != turn {
			t.Errorf("the trace has %+v, want one record of the plugin in this turn", got)
		}
	})
}

func TestLifecycleHooks(t *testing.T) {
	t.Run("plugin/HK-25 plugin/HK-26 all plugins are notified, and a failure after the commit is reported without undoing it", func(t *testing.T) {
		heard := &notes{}
		listen := func(id string, fails bool) hooked {
			return hooked{id, func(r *plugin.Registrar) {
				r.Session().On(func(_ context.Context, e *plugin.LifecycleEvent) error {
					heard.add(id + " " + string(e.Kind))
					if fails && e.Kind == plugin.TurnPersisted {
						return errors.New("memory is full")
					}
					return nil
				})
			}}
		}
		d := start(t, setup{model: replies(scripted.Reply{Text: "ok"}), plugins: plugins(listen("a", true), listen("b", false))})
		id := d.session(t)
		o := d.observe(t, id)
		turn := d.begin(t, id, "go").TurnID
		o.over(turn)
		if e := o.typed(protocol.EventPluginStatus); e.Name != "lifecycle_hook_failed" || len(e.Issues) != 1 || e.Issues[0].Message != "a: plugin a: turn_persisted: memory is full" {
			t.Errorf("told %+v", e)
		}
		for _, want := range []string{"a turnFinalized", "b turnFinalized", "a turnPersisted", "b turnPersisted"} {
			if !slices.Contains(heard.list, want) {
				t.Errorf("no hook heard %q: %q", want, heard.list)
			}
		}
		if got := said(d.graph(t, id).Data); !slices.Equal(got, []string{"go", "ok"}) {
			t.Errorf("history has %q", got)
		}
	})
}

func TestDirectiveConflicts(t *testing.T) {
	t.Run("plugin/HK-12 an ignored directive is an event and a trace record of the later plugin", func(t *testing.T) {
		refuses := func(id string) hooked {
			return hooked{id, func(r *plugin.Registrar) {
				r.ToolCalls().Before(func(context.Context, *plugin.ToolCallContext) ([]plugin.Directive, error) {
					return []plugin.Directive{plugin.ShortCircuit(protocol.Fail(protocol.FailPermission, "no", id, protocol.FromPlugin))}, nil
				})
			}}
		}
		keep, read := traced(t)
		d := start(t, setup{
			model: replies(calls("work"), scripted.Reply{Text: "ok"}), tools: []tool.Provider{says("work", "fine")}, config: keep,
			plugins: plugins(refuses("a"), refuses("b")),
		})
		id := d.session(t)
		o := d.observe(t, id)
		turn := d.begin(t, id, "go").TurnID
		shown := o.until(func(e protocol.Event) bool { return e.Name == "directive_conflict" })
		if want := "ignored short_circuit_tool from plugin b, because it conflicts with short_circuit_tool from plugin a"; shown.Plugin != "b" || shown.TurnID != turn || shown.Text != want {
			t.Errorf("shown %+v, want %q of b", shown, want)
		}
		o.over(turn)
		all, _ := read()
		got := kinds(all)["plugin.b.before_tool_call.directive_conflict"]
		if len(got) != 1 || got[0].TurnID != turn || !strings.Contains(string(got[0].Body), `"Winner":"a"`) {
			t.Errorf("the trace has %+v, want one record of the conflict", got)
		}
	})
}
