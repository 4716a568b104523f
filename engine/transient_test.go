package engine_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// passing is a transient message.
func passing(text string) plugin.Message {
	m := user(text)
	m.Origin = &protocol.Origin{Transient: true}
	return m
}

// showing is a model that records which of some texts each of its calls contains.
func showing(seen *notes, model provider.Provider, texts ...string) provider.Provider {
	return modelFunc(func(ctx context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
		var shown strings.Builder
		for _, m := range req.Messages {
			if len(m.Parts) > 0 && slices.Contains(texts, m.Parts[0].Text) {
				shown.WriteString(m.Parts[0].Text + " ")
			}
		}
		seen.add(shown.String())
		for chunk, err := range model.Stream(ctx, req) {
			if !yield(chunk, err) {
				return
			}
		}
	})
}

// speaking is a plugin that adds a transient message at every hook that allows one, and a lasting message before a turn.
func speaking() hooked {
	return hooked{"a", func(r *plugin.Registrar) {
		r.Turn().Before(func(context.Context, *plugin.TurnContext) ([]plugin.Directive, error) {
			return []plugin.Directive{plugin.Enqueue(passing("before"), plugin.Message{Role: protocol.RoleSystem, Content: "stays"})}, nil
		})
		r.ToolResults().After(func(context.Context, *plugin.ToolResultContext) ([]plugin.Directive, error) {
			return []plugin.Directive{plugin.Enqueue(passing("call"))}, nil
		})
		r.Turn().Checkpoint(func(_ context.Context, c *plugin.CheckpointContext) ([]plugin.Directive, error) {
			if c.Kind == protocol.BoundaryBeforeCompletion {
				return nil, nil
			}
			return []plugin.Directive{plugin.Enqueue(passing("checkpoint"))}, nil
		})
		r.Turn().After(func(context.Context, *plugin.TurnSummary) ([]plugin.Directive, error) {
			return []plugin.Directive{plugin.Enqueue(passing("after"))}, nil
		})
	}}
}

func TestTransientMessages(t *testing.T) {
	worked := func(model provider.Provider, seen *notes) setup {
		return setup{
			model: showing(seen, model, "before", "stays", "call", "checkpoint", "after"), tools: []tool.Provider{says("work", "fine")},
			plugins: plugins(speaking()),
		}
	}
	t.Run("runtime/T05 the model sees a transient message once, and it is never stored", func(t *testing.T) {
		seen := &notes{}
		d := start(t, worked(replies(calls("work"), calls("work"), scripted.Reply{Text: "done"}), seen))
		id := d.session(t)
		o := d.observe(t, id)
		turn := d.begin(t, id, "go").TurnID
		o.over(turn)
		d.wait(t, turn)
		if want := []string{"stays before ", "stays call checkpoint ", "stays call checkpoint "}; !slices.Equal(seen.list, want) {
			t.Errorf("the model was shown %q, want %q", seen.list, want)
		}
		if got, want := said(d.graph(t, id).Data), []string{"go", "stays", "", "", "", "", "done"}; !slices.Equal(got, want) {
			t.Errorf("history has %q, want %q", got, want)
		}
		if shown, kept := shownItems(o.all), d.itemIDs(t, id); !slices.Equal(shown, kept) {
			t.Errorf("an observer is left with items %v, history has %v", shown, kept)
		}
	})
	t.Run("runtime/T05 a transient message after the turn is reported as an issue", func(t *testing.T) {
		d := start(t, worked(replies(scripted.Reply{Text: "done"}), &notes{}))
		r := d.turn(t, d.session(t), "go")
		if len(r.Issues) != 1 || r.Issues[0].Code != "transient_message_dropped" || r.State != protocol.TurnCompleted {
			t.Errorf("%s with issues %+v", r.State, r.Issues)
		}
	})
	t.Run("runtime/T05 a model call that is repeated after a crash includes it again", func(t *testing.T) {
		for n, want := range map[int]string{1: "stays before ", 2: "stays call checkpoint "} {
			seen := &notes{}
			model, reached := stalls(n, toGo(calls("work"), scripted.Reply{Text: "done"}))
			d := start(t, worked(model, seen))
			id := d.session(t)
			turn := d.begin(t, id, "go").TurnID
			<-reached
			d = d.restart(t, nil)
			d.wait(t, turn)
			if len(seen.list) != 3 || seen.list[n-1] != want || seen.list[n] != want {
				t.Errorf("call %d: the model was shown %q, want %q twice", n, seen.list, want)
			}
			if got := said(d.graph(t, id).Data); !slices.Equal(got, []string{"go", "stays", "", "", "done"}) {
				t.Errorf("call %d: history has %q", n, got)
			}
		}
	})
	t.Run("runtime/T05 appending a transient message is rejected", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		nodes := []protocol.NodeBody{{Message: &protocol.Message{
			Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: "x"}},
			Origin: &protocol.Origin{Kind: protocol.OriginPlugin, Plugin: "a", Transient: true},
		}}}
		_, appended := d.History.Append(t.Context(), &protocol.GraphAppendParams{SessionID: d.session(t), Nodes: nodes})
		_, created := d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), Nodes: nodes})
		for what, err := range map[string]error{"graph/append": appended, "session/new": created} {
			if bad, ok := errors.AsType[*param.Error](err); !ok || bad.Pointer != "/nodes/0/message/origin/transient" {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

func TestClaimedOrigins(t *testing.T) {
	claims := map[string]protocol.Origin{
		"kind":    {Kind: protocol.OriginTurnInput},
		"kind ":   {Kind: protocol.OriginProcess},
		"turnId":  {Kind: protocol.OriginPlugin, TurnID: "trn_x"},
		"inputId": {Kind: protocol.OriginPlugin, InputID: "inp_x"},
		"cause":   {Kind: protocol.OriginPlugin, Cause: &protocol.TurnCause{ID: "x"}},
	}
	t.Run("outside/1 neither a client nor a plugin appends a message with an origin that only lashd sets", func(t *testing.T) {
		d, id, host := setup{model: replies()}.asksForAll(t)
		for field, origin := range claims {
			nodes := summary("x")
			nodes[0].Message.Origin = &origin
			add := &protocol.GraphAppendParams{SessionID: id, Nodes: nodes}
			fresh := &protocol.SessionNewParams{Cwd: t.TempDir(), Nodes: nodes}
			_, appended := d.History.Append(t.Context(), add)
			_, created := d.Sessions.New(t.Context(), fresh)
			_, pluginAppended := host.Graph.AppendNodes(t.Context(), add)
			_, pluginCreated := host.Lifecycle.CreateSession(t.Context(), &protocol.SessionNewParams{Nodes: nodes})
			for who, err := range map[string]error{"graph/append": appended, "session/new": created, "AppendNodes": pluginAppended, "CreateSession": pluginCreated} {
				if bad, ok := errors.AsType[*param.Error](err); !ok || bad.Pointer != "/nodes/0/message/origin/"+strings.TrimSpace(field) {
					t.Errorf("%s with %+v: %v", who, origin, err)
				}
			}
		}
		if got := said(d.graph(t, id).Data); len(got) != 0 {
			t.Errorf("history has %q, want nothing", got)
		}
	})
	t.Run("outside/1 a hook that enqueues a message with an origin that only lashd sets fails the turn", func(t *testing.T) {
		for _, origin := range claims {
			d := start(t, setup{model: replies(scripted.Reply{Text: "done"}), plugins: plugins(hooked{"a", func(r *plugin.Registrar) {
				r.Turn().Before(func(context.Context, *plugin.TurnContext) ([]plugin.Directive, error) {
					return []plugin.Directive{plugin.Enqueue(plugin.Message{Role: protocol.RoleUser, Content: "x", Origin: &origin})}, nil
				})
			}})})
			r := d.turn(t, d.session(t), "go")
			if r.State == protocol.TurnCompleted || len(r.Issues) == 0 || !strings.Contains(r.Issues[0].Message, "enqueue_messages has an invalid origin: /messages/0/origin/") {
				t.Errorf("with %+v the turn is %s, issues %+v", origin, r.State, r.Issues)
			}
		}
	})
	t.Run("outside/1 a compactor keeps origins of the history and cannot invent any", func(t *testing.T) {
		for input, keeps := range map[protocol.InputID]bool{"": true, "inp_x": false} {
			d := start(t, setup{model: replies(scripted.Reply{Text: "done"}), plugins: plugins(
				compactor("a", 1, func(r *plugin.CompactRequest) ([]protocol.NodeBody, error) {
					m := r.View.Messages()[0]
					m.Origin = &protocol.Origin{Kind: m.Origin.Kind, TurnID: m.Origin.TurnID, InputID: cmp.Or(input, m.Origin.InputID)}
					return []protocol.NodeBody{{Message: &m}}, nil
				}),
			)})
			id := d.session(t)
			d.turn(t, id, "go")
			if done, err := d.Sessions.Compact(t.Context(), &protocol.SessionCompactParams{SessionID: id}); keeps != (err == nil && done.Compacted) {
				t.Errorf("with the input %q: %+v, %v", input, done, err)
			}
		}
	})
}
