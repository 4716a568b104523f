package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

func transforms(id string, priority int, do func(*plugin.ContextView, plugin.PreparedContext) (plugin.PreparedContext, error)) hooked {
	return hooked{id, func(r *plugin.Registrar) {
		r.Context().Transform(priority, func(_ context.Context, v *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
			return do(v, pc)
		})
	}}
}

func userSays(text string) protocol.Message {
	return protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: text}}}
}

func texts(req *provider.Request) (all []string) {
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			all = append(all, p.Text)
		}
	}
	return all
}

func toolNames(req *provider.Request) (names []string) {
	for _, m := range req.Tools {
		names = append(names, m.Name)
	}
	return names
}

// toGo is a model that answers the input "go" with these replies and every other input with "ok".
func toGo(all ...scripted.Reply) provider.Provider {
	return scripted.New(&scripted.Script{
		Turns:     []scripted.Turn{{Match: &scripted.Match{LastUserContains: "go"}, Replies: all}},
		Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "ok"}}},
	})
}

func TestTransforms(t *testing.T) {
	add := func(id string, priority int) hooked {
		return transforms(id, priority, func(_ *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
			pc.Messages = append(pc.Messages, userSays(id))
			return pc, nil
		})
	}
	t.Run("plugin/HK-29 transforms decide what the model sees of history, higher priority first, and history stays unchanged", func(t *testing.T) {
		model := &remembering{Provider: toGo(scripted.Reply{Text: "one"})}
		forget := transforms("forget", 9, func(v *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
			if len(v.View.Messages()) != len(pc.Messages)+1 { // the input
				t.Errorf("the view has %d messages, the context %d", len(v.View.Messages()), len(pc.Messages))
			}
			pc.Messages = nil
			return pc, nil
		})
		d := start(t, setup{model: model, plugins: plugins(add("low", 1), forget, add("high", 5))})
		id := d.session(t)
		d.turn(t, id, "go")
		d.turn(t, id, "and?")
		if got := texts(model.asked[1]); !slices.Equal(got, []string{"high", "low", "and?"}) {
			t.Errorf("the model saw %q", got)
		}
		want := []string{"userMessage: go", "agentMessage: one", "userMessage: and?", "agentMessage: ok"}
		if got := d.history(t, id); !slices.Equal(got, want) {
			t.Errorf("history %q", got)
		}
	})
	t.Run("plugin/HK-29 tools and prompts of a transform apply to one turn", func(t *testing.T) {
		lend := transforms("lend", 0, func(v *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
			if len(pc.Messages) == 0 { // the first turn
				pc.Tools = []tool.Source{{ID: "lend", Provider: says("lent", "it ran")}}
				pc.Prompts = []plugin.Prompt{{Slot: plugin.SlotIntro, Content: "use what is lent", Tools: []string{"lent"}}}
				pc.WithoutBase = true
			}
			return pc, nil
		})
		model := &remembering{Provider: replies(calls("lent"), scripted.Reply{Text: "done"})}
		d := start(t, setup{model: model, tools: []tool.Provider{says("own", "mine")}, plugins: plugins(lend)})
		id := d.session(t)
		report := d.turn(t, id, "go")
		d.turn(t, id, "and?")
		for i, want := range []string{"lent", "lent", "own"} {
			req := model.asked[i]
			if got := toolNames(req); !slices.Equal(got, []string{want}) || strings.Contains(req.System, "use what is lent") != (want == "lent") {
				t.Errorf("request %d has tools %q, system %q", i, got, req.System)
			}
		}
		if report.ToolCalls[0].Output.Text != "it ran" {
			t.Errorf("%+v", report.ToolCalls)
		}
	})
	for _, also := range []string{"", " and hooks before the turn"} {
		t.Run("plugin/HK-29 a transform that fails ends the turn, which keeps its input"+also, func(t *testing.T) {
			fails := transforms("fails", 0, func(_ *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
				return pc, errBoom
			})
			list := plugins(fails)
			if also != "" {
				list = append(list, hooked{"before", before(func() ([]plugin.Directive, error) { return nil, nil })})
			}
			model := &remembering{Provider: replies(scripted.Reply{Text: "one"})}
			d := start(t, setup{model: model, plugins: list})
			report := d.turn(t, d.session(t), "go")
			want := protocol.Issue{Kind: "plugin", Code: "context_prepare_turn", Message: "plugin fails: context_transform: boom"}
			if len(model.asked) != 0 || report.State != protocol.TurnFailed || !slices.Equal(report.Issues, []protocol.Issue{want}) {
				t.Errorf("%d calls, %+v", len(model.asked), report)
			}
			if got := d.history(t, report.SessionID); !slices.Equal(got, []string{"userMessage: go"}) {
				t.Errorf("history %q", got)
			}
		})
	}
	t.Run("plugin/HK-29 a context with a call that lacks its result is rejected", func(t *testing.T) {
		call := protocol.Part{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: "c", Name: "n", Args: json.RawMessage(`{}`)}}
		d := start(t, setup{model: replies(), plugins: plugins(transforms("tears", 0, func(_ *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
			pc.Messages = []protocol.Message{{Role: protocol.RoleAssistant, Parts: []protocol.Part{call}}}
			return pc, nil
		}))})
		if report := d.turn(t, d.session(t), "go"); len(report.Issues) != 1 || report.Issues[0].Code != "context_prepare_turn" {
			t.Errorf("%+v", report.Issues)
		}
	})
	t.Run("plugin/HK-29 runtime/S11 transforms are asked before each model call, with the turn so far", func(t *testing.T) {
		var saw []int
		watch := transforms("watch", 0, func(v *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
			saw = append(saw, len(v.View.Messages()))
			pc.Messages = []protocol.Message{userSays(fmt.Sprintf("seen %d", len(saw)))}
			return pc, nil
		})
		model := &remembering{Provider: toGo(calls("look"), scripted.Reply{Text: "done"})}
		d := start(t, setup{model: model, tools: []tool.Provider{says("look", "fine")}, plugins: plugins(watch)})
		d.turn(t, d.session(t), "go")
		if !slices.Equal(saw, []int{1, 3}) || texts(model.asked[0])[0] != "seen 1" || texts(model.asked[1])[0] != "seen 2" {
			t.Errorf("asked with %d messages; the model saw %q and %q", saw, texts(model.asked[0]), texts(model.asked[1]))
		}
	})
	t.Run("plugin/HK-29 a turn that resumes after a restart is transformed again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := newGate("lent")
			g.contract.Replay = protocol.ReplaySafe
			times := 0
			lend := transforms("lend", 0, func(_ *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
				times++
				pc.Messages = []protocol.Message{userSays("instead")}
				pc.Tools = []tool.Source{{ID: "lend", Provider: g}}
				return pc, nil
			})
			model := &remembering{Provider: toGo(calls("lent"), scripted.Reply{Text: "done"})}
			d := start(t, setup{model: model, plugins: plugins(lend)})
			id := d.session(t)
			turn := d.begin(t, id, "go").TurnID
			<-g.called
			d = d.restart(t, nil)
			<-g.called
			close(g.open)
			report := d.wait(t, turn)
			if report.State != protocol.TurnCompleted || times != 3 || !slices.Equal(texts(model.asked[len(model.asked)-1])[:2], []string{"instead", "go"}) {
				t.Errorf("%s, transformed %d times, issues %+v", report.State, times, report.Issues)
			}
		})
	})
}

func prompting(id string, do func(context.Context, *plugin.PromptContext) ([]plugin.Prompt, error)) hooked {
	return hooked{id, func(r *plugin.Registrar) { r.Prompt().Hook(do) }}
}

func TestPromptHooks(t *testing.T) {
	guidance := func(content string, tools ...string) plugin.Prompt {
		return plugin.Prompt{Slot: plugin.SlotGuidance, Content: content, Tools: tools}
	}
	t.Run("plugin/HK-28 prompt hooks run for each iteration, beside the actor, and gates use the catalog", func(t *testing.T) {
		var d *daemon
		var id protocol.SessionID
		asks := prompting("asks", func(ctx context.Context, pc *plugin.PromptContext) ([]plugin.Prompt, error) {
			if _, err := d.Tools.List(ctx, &protocol.SessionParams{SessionID: id}); err != nil {
				return nil, err
			}
			last := pc.View.Messages()[len(pc.View.Messages())-1]
			return []plugin.Prompt{guidance("last said: " + string(last.Role)), guidance("about look", "look"), guidance("about gone", "gone"), guidance("last said: " + string(last.Role))}, nil
		})
		model := &remembering{Provider: replies(calls("look"), scripted.Reply{Text: "done"})}
		d = start(t, setup{model: model, tools: []tool.Provider{says("look", "fine")}, plugins: plugins(asks)})
		id = d.session(t)
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Prompt: new("of the session")}))
		must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), "cli_a", &protocol.SessionOverlayParams{SessionID: id, Prompt: "of the client"}))
		d.turn(t, id, "go")
		for i := range 2 {
			system := model.asked[i].System
			if want := "\n\nlast said: user\n\nabout look\n\nof the session\n\nof the client"; !strings.HasSuffix(system, want) || !strings.HasPrefix(system, "Call tools") {
				t.Errorf("iteration %d was asked with %q", i+1, system)
			}
		}
	})
	t.Run("plugin/HK-28 a failed prompt hook fails the turn", func(t *testing.T) {
		d := start(t, setup{model: replies(), plugins: plugins(prompting("fails", func(context.Context, *plugin.PromptContext) ([]plugin.Prompt, error) {
			return nil, errBoom
		}))})
		report := d.turn(t, d.session(t), "go")
		want := protocol.Issue{Kind: "plugin", Code: "plugin_prompt", Message: "plugin fails: prompt: boom"}
		if report.State != protocol.TurnFailed || !slices.Equal(report.Issues, []protocol.Issue{want}) {
			t.Errorf("%+v", report)
		}
	})
	t.Run("plugin/HK-28 a turn can be cancelled while a prompt hook runs", func(t *testing.T) {
		asked := make(chan struct{})
		d := start(t, setup{model: replies(), plugins: plugins(prompting("waits", func(ctx context.Context, _ *plugin.PromptContext) ([]plugin.Prompt, error) {
			close(asked)
			<-ctx.Done()
			return nil, ctx.Err()
		}))})
		turn := d.begin(t, d.session(t), "go").TurnID
		<-asked
		d.interrupt(t, turn)
		if report := d.wait(t, turn); report.State != protocol.TurnCancelled || len(report.Issues) != 0 {
			t.Errorf("%+v", report)
		}
	})
}
