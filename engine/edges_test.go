package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// stalls is a model whose n-th call stalls until its turn is left, once.
func stalls(n int, model provider.Provider) (provider.Provider, chan struct{}) {
	asked, reached := 0, make(chan struct{})
	return modelFunc(func(ctx context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
		if asked++; asked == n {
			close(reached)
			<-ctx.Done()
			yield(provider.Chunk{}, ctx.Err())
			return
		}
		for chunk, err := range model.Stream(ctx, req) {
			if !yield(chunk, err) {
				return
			}
		}
	}), reached
}

func TestCrashEdges(t *testing.T) {
	news := func(name string) plugin.Directive {
		return plugin.Tell(plugin.RuntimeEvent{Kind: "custom", Name: name})
	}
	// interrupted runs a turn, stops the daemon in the n-th model call, and lets the turn go on.
	interrupted := func(t *testing.T, n int, s setup) (*daemon, *observer, protocol.SessionID) {
		var reached chan struct{}
		s.model, reached = stalls(n, s.model)
		d := start(t, s)
		id := d.session(t)
		turn := d.begin(t, id, "go").TurnID
		<-reached
		d = d.restart(t, nil)
		o := d.observe(t, id, 0)
		d.wait(t, turn)
		o.over(turn)
		return d, o, id
	}
	once := func(t *testing.T, o *observer, name string) {
		t.Helper()
		n := 0
		for _, e := range o.of(protocol.EventPluginCustom) {
			if e.Name == name {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s was sent %d times", name, n)
		}
	}
	t.Run("plugin/HK-13 a checkpoint hook that gave directives does not run again after a crash", func(t *testing.T) {
		asked := &notes{}
		d, o, id := interrupted(t, 2, setup{
			model: toGo(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{says("work", "fine")},
			plugins: plugins(atCheckpoint("a", func(k protocol.Boundary) ([]plugin.Directive, error) {
				asked.add(string(k))
				if k == protocol.BoundaryAfterWork {
					return []plugin.Directive{plugin.Enqueue(user("carry on")), news("seen"), newSession("ses_a")}, nil
				}
				return nil, nil
			})),
		})
		if got := said(d.graph(t, id).Data); !slices.Equal(asked.list, []string{"afterWork", "beforeCompletion"}) || strings.Count(strings.Join(got, "|"), "carry on") != 1 {
			t.Errorf("asked %q, history %q", asked.list, got)
		}
		once(t, o, "seen")
	})
	t.Run("plugin/HK-02 a BeforeTurn hook that gave directives does not run again after a crash", func(t *testing.T) {
		asked := &notes{}
		_, o, _ := interrupted(t, 1, setup{model: toGo(scripted.Reply{Text: "done"}), plugins: plugins(hooked{"a", before(func() ([]plugin.Directive, error) {
			asked.add("x")
			return []plugin.Directive{news("began")}, nil
		})})})
		if len(asked.list) != 1 {
			t.Errorf("asked %d times", len(asked.list))
		}
		once(t, o, "began")
	})
	t.Run("plugin/SN-03 plugin state that a direct call changes is stored with the call", func(t *testing.T) {
		k := &keeper{register: func(k *kept, r *plugin.Registrar) {
			r.Tools().Add(toolFunc{name: "note", run: func(context.Context, tool.Invocation) (tool.Result, error) {
				k.set("noted", "")
				return tool.Result{Output: protocol.Succeed("ok")}, nil
			}})
		}}
		d := start(t, with(k))
		id := d.session(t)
		must[*protocol.ToolCallResult](t)(d.Tools.Call(t.Context(), &protocol.ToolCallParams{SessionID: id, Name: "note"}))
		d = d.restart(t, nil)
		if got := d.held(t, id, "keeper").Text; got != "noted" {
			t.Errorf("kept %q", got)
		}
	})
	t.Run("plugin/SN-03 plugin state that a hook changes after the commit is stored when the hook returns", func(t *testing.T) {
		k := &keeper{register: func(k *kept, r *plugin.Registrar) {
			r.Session().On(func(_ context.Context, e *plugin.LifecycleEvent) error {
				if e.Kind == plugin.TurnPersisted {
					k.set("persisted", "")
				}
				return nil
			})
		}}
		d := start(t, with(k))
		id := d.session(t)
		d.turn(t, id, "go")
		d = d.restart(t, nil)
		if got := d.held(t, id, "keeper").Text; got != "persisted" {
			t.Errorf("kept %q", got)
		}
	})
}
