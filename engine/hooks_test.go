package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"lashd/engine"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// hooked is a plugin made of a function that registers.
type hooked struct {
	id       string
	register func(*plugin.Registrar)
}

func (h hooked) ID() string                                       { return h.id }
func (h hooked) Build(plugin.BuildContext) (plugin.Plugin, error) { return h, nil }
func (h hooked) Register(r *plugin.Registrar) error               { h.register(r); return nil }

func plugins(all ...hooked) (list []plugin.Factory) {
	for _, h := range all {
		list = append(list, h)
	}
	return list
}

// notes is what hooks write down.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) add(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, s)
}

func user(text string) plugin.Message { return plugin.Message{Role: protocol.RoleUser, Content: text} }

// soon has questions about unknown outcomes expire at once.
func soon(c *engine.Config) { c.Defaults.Unknown.DeadlineMs = new(int64(1)) }

// newSession is a directive that creates a session with a known id.
func newSession(id protocol.SessionID) plugin.Directive {
	return plugin.Directive{Kind: plugin.CreateSession, Session: &protocol.SessionNewParams{SessionID: id}}
}

func (d *daemon) exists(t *testing.T, id protocol.SessionID) bool {
	t.Helper()
	_, err := d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id})
	return err == nil
}

func before(f func() ([]plugin.Directive, error)) func(*plugin.Registrar) {
	return func(r *plugin.Registrar) {
		r.Turn().Before(func(context.Context, *plugin.TurnContext) ([]plugin.Directive, error) { return f() })
	}
}

func TestBeforeTurn(t *testing.T) {
	does := func(all ...plugin.Directive) func() ([]plugin.Directive, error) {
		return func() ([]plugin.Directive, error) { return all, nil }
	}
	t.Run("plugin/HK-01 plugin/S-01 no directive is applied until all hooks have answered", func(t *testing.T) {
		d := start(t, setup{model: replies(), plugins: plugins(
			hooked{"a", before(does(newSession("ses_a")))},
			hooked{"b", before(func() ([]plugin.Directive, error) { return nil, errors.New("no") })},
		)})
		report := d.turn(t, d.session(t), "go")
		if report.State != protocol.TurnFailed || report.Issues[0].Code != "plugin_prepare_turn" || d.exists(t, "ses_a") {
			t.Errorf("report %+v, ses_a exists: %t", report, d.exists(t, "ses_a"))
		}
	})
	t.Run("plugin/S-01 directives before an illegal one stay applied", func(t *testing.T) {
		d := start(t, setup{model: replies(), plugins: plugins(
			hooked{"a", before(does(newSession("ses_a")))},
			hooked{"b", before(does(plugin.ReplaceArgs(json.RawMessage(`{}`))))},
		)})
		report := d.turn(t, d.session(t), "go")
		if report.State != protocol.TurnFailed || report.Issues[0].Code != "plugin_prepare_turn" || !d.exists(t, "ses_a") {
			t.Errorf("report %+v, ses_a exists: %t", report, d.exists(t, "ses_a"))
		}
	})
	t.Run("plugin/HK-02 an abort ends the turn, and the input is kept", func(t *testing.T) {
		model := &remembering{Provider: replies()}
		d := start(t, setup{model: model, plugins: plugins(hooked{"a", before(does(plugin.Abort("quota", "enough for today")))})})
		id := d.session(t)
		report := d.turn(t, id, "go")
		if report.Outcome.Kind != protocol.OutcomePluginAbort || report.Issues[0].Code != "quota" || report.Issues[0].Kind != "plugin" || len(model.asked) != 0 {
			t.Errorf("report %+v, %d model calls", report, len(model.asked))
		}
		if got := said(d.graph(t, id).Data); !slices.Equal(got, []string{"go"}) {
			t.Errorf("history has %q", got)
		}
	})
	t.Run("plugin/HK-03 messages are added to the input, except assistant messages", func(t *testing.T) {
		d := start(t, setup{model: replies(scripted.Reply{Text: "ok"}), plugins: plugins(hooked{"a", before(does(plugin.Enqueue(
			user("mind the gap"), plugin.Message{Role: protocol.RoleAssistant, Content: "I said so"},
		)))})})
		id := d.session(t)
		d.turn(t, id, "go")
		if got := said(d.graph(t, id).Data); !slices.Equal(got, []string{"go", "mind the gap", "ok"}) {
			t.Errorf("history has %q", got)
		}
	})
	t.Run("plugin/HK-02 the results of BeforeTurn hooks survive a restart, and the hooks do not run again", func(t *testing.T) {
		asked := &notes{}
		g := newGate("work")
		hook := hooked{"a", before(func() ([]plugin.Directive, error) {
			asked.add("x")
			return []plugin.Directive{plugin.Enqueue(user("once"))}, nil
		})}
		model := scripted.New(&scripted.Script{Otherwise: &scripted.Turn{Replies: []scripted.Reply{calls("work"), {Text: "done"}}}})
		d := start(t, setup{model: model, tools: []tool.Provider{g}, plugins: plugins(hook), config: soon})
		id := d.session(t)
		turn := d.begin(t, id, "go").TurnID
		<-g.called
		d = d.restart(t, nil)
		d.wait(t, turn)
		if got := said(d.graph(t, id).Data); len(asked.list) != 1 || strings.Count(strings.Join(got, " "), "once") != 1 {
			t.Errorf("asked %d times, history has %q", len(asked.list), got)
		}
	})
}

func TestToolHooks(t *testing.T) {
	run := func(t *testing.T, s setup) (*daemon, protocol.SessionID, *protocol.TurnReport) {
		t.Helper()
		if s.model == nil {
			s.model = replies(calls("work"), scripted.Reply{Text: "done"})
		}
		d := start(t, s)
		id := d.session(t)
		return d, id, d.turn(t, id, "go")
	}
	beforeCall := func(id string, all ...plugin.Directive) hooked {
		return hooked{id, func(r *plugin.Registrar) {
			r.ToolCalls().Before(func(context.Context, *plugin.ToolCallContext) ([]plugin.Directive, error) { return all, nil })
		}}
	}
	afterCall := func(id string, all ...plugin.Directive) hooked {
		return hooked{id, func(r *plugin.Registrar) {
			r.ToolResults().After(func(context.Context, *plugin.ToolResultContext) ([]plugin.Directive, error) { return all, nil })
		}}
	}
	// work notes the arguments that it was run with.
	work := func(ran *notes) toolFunc {
		return toolFunc{name: "work", schema: `{"type":"object","properties":{"n":{"type":"integer"}}}`, run: func(_ context.Context, call tool.Invocation) (tool.Result, error) {
			ran.add(string(call.Args))
			return tool.Result{Output: protocol.Succeed("worked")}, nil
		}}
	}
	t.Run("plugin/HK-04 replaced arguments are validated, run and recorded", func(t *testing.T) {
		ran := &notes{}
		_, _, report := run(t, setup{tools: []tool.Provider{work(ran)}, plugins: plugins(beforeCall("a", plugin.ReplaceArgs(json.RawMessage(`{"n":2}`))))})
		if !slices.Equal(ran.list, []string{`{"n":2}`}) || string(report.ToolCalls[0].Args) != `{"n":2}` {
			t.Errorf("ran with %q, recorded %s", ran.list, report.ToolCalls[0].Args)
		}
		ran = &notes{}
		_, _, report = run(t, setup{tools: []tool.Provider{work(ran)}, plugins: plugins(beforeCall("a", plugin.ReplaceArgs(json.RawMessage(`{"n":"two"}`))))})
		if f := report.ToolCalls[0].Output.Failure; len(ran.list) != 0 || f == nil || f.Code != tool.CodeArgs {
			t.Errorf("ran with %q, failure %+v", ran.list, f)
		}
	})
	t.Run("runtime/T23 a hook sees the kind of the tool and its terms", func(t *testing.T) {
		got := &notes{}
		look := func(_ context.Context, c *plugin.ToolCallContext) ([]plugin.Directive, error) {
			got.add(fmt.Sprintf("%s %s %s %t", c.Tool, c.Kind, c.Replay, c.Serial))
			return nil, nil
		}
		tool1 := says("work", "fine")
		tool1.kind, tool1.contract = protocol.ToolKindSearch, protocol.ToolContract{Replay: protocol.ReplaySafe, Serial: true}
		run(t, setup{tools: []tool.Provider{tool1}, plugins: plugins(hooked{"a", func(r *plugin.Registrar) {
			r.ToolCalls().Before(look)
			r.ToolResults().After(func(ctx context.Context, c *plugin.ToolResultContext) ([]plugin.Directive, error) {
				return look(ctx, &c.ToolCallContext)
			})
		}})})
		if want := "work search safe true"; !slices.Equal(got.list, []string{want, want}) {
			t.Errorf("hooks know %q", got.list)
		}
	})
	t.Run("plugin/HK-05 a result before the call skips it and the hooks after it, not the projector", func(t *testing.T) {
		ran, after := &notes{}, &notes{}
		watch := hooked{"b", func(r *plugin.Registrar) {
			r.ToolResults().After(func(context.Context, *plugin.ToolResultContext) ([]plugin.Directive, error) {
				after.add("x")
				return nil, nil
			})
			r.ToolResults().Projector(func(_ context.Context, c *plugin.ToolResultContext) (protocol.ToolOutput, error) {
				return protocol.Succeed("seen " + c.Output.Text), nil
			})
		}}
		d, id, report := run(t, setup{tools: []tool.Provider{work(ran)}, plugins: plugins(beforeCall("a", plugin.ShortCircuit(protocol.Succeed("cached"))), watch)})
		if len(ran.list)+len(after.list) != 0 || report.ToolCalls[0].Output.Text != "cached" {
			t.Errorf("ran %q, hooks after %q, recorded %+v", ran.list, after.list, report.ToolCalls[0].Output)
		}
		if got := resultsOf(d.graph(t, id).Data); !slices.Equal(got, []string{"seen cached"}) {
			t.Errorf("the model saw %q", got)
		}
	})
	t.Run("runtime/T23 plugin/HK-06 plugin/S-02 an abort fails the call, and the turn goes on", func(t *testing.T) {
		ran := &notes{}
		_, _, report := run(t, setup{tools: []tool.Provider{work(ran)}, plugins: plugins(
			beforeCall("a", plugin.ShortCircuit(protocol.Fail(protocol.FailPermission, "policy", "not this", protocol.FromPlugin))),
			beforeCall("b", plugin.Abort("later", "nor that")),
		)})
		if f := report.ToolCalls[0].Output.Failure; len(ran.list) != 0 || f == nil || f.Code != "policy" || report.Outcome.Text != "done" {
			t.Errorf("ran %q, failure %+v, outcome %+v", ran.list, f, report.Outcome)
		}
	})
	t.Run("plugin/HK-07 plugin/HK-09 misuse and errors make the call fail", func(t *testing.T) {
		fails := hooked{"a", func(r *plugin.Registrar) {
			r.ToolResults().After(func(context.Context, *plugin.ToolResultContext) ([]plugin.Directive, error) {
				return nil, errors.New("no")
			})
		}}
		for name, c := range map[string]struct {
			h    hooked
			code string
		}{
			"enqueue before":       {beforeCall("a", plugin.Enqueue(user("x"))), "before_tool_call_failed"},
			"replace args after":   {afterCall("a", plugin.ReplaceArgs(json.RawMessage(`{}`))), "after_tool_call_failed"},
			"error after the call": {fails, "after_tool_call_failed"},
		} {
			_, _, report := run(t, setup{tools: []tool.Provider{work(&notes{})}, plugins: plugins(c.h)})
			if f := report.ToolCalls[0].Output.Failure; f == nil || f.Code != c.code || report.Outcome.Text != "done" {
				t.Errorf("%s: failure %+v, outcome %+v", name, f, report.Outcome)
			}
		}
	})
	t.Run("plugin/HK-08 messages from AfterToolCall hooks come before the next model call", func(t *testing.T) {
		d, id, _ := run(t, setup{tools: []tool.Provider{work(&notes{})}, plugins: plugins(afterCall("a", plugin.Enqueue(user("careful"))))})
		got := said(d.graph(t, id).Data)
		if !slices.Equal(got, []string{"go", "", "", "careful", "ok"}) {
			t.Errorf("history has %q", got)
		}
	})
	t.Run("plugin/HK-19 sessions can be created at every seam", func(t *testing.T) {
		made := func(id string) []plugin.Directive {
			return []plugin.Directive{newSession(protocol.SessionID("ses_" + id))}
		}
		all := hooked{"a", func(r *plugin.Registrar) {
			r.Turn().Before(func(context.Context, *plugin.TurnContext) ([]plugin.Directive, error) { return made("before"), nil })
			r.Turn().Checkpoint(func(_ context.Context, c *plugin.CheckpointContext) ([]plugin.Directive, error) {
				return made(string(c.Kind)), nil
			})
			r.Turn().After(func(context.Context, *plugin.TurnSummary) ([]plugin.Directive, error) { return made("after"), nil })
			r.ToolCalls().Before(func(context.Context, *plugin.ToolCallContext) ([]plugin.Directive, error) { return made("call"), nil })
			r.ToolResults().After(func(context.Context, *plugin.ToolResultContext) ([]plugin.Directive, error) {
				return made("result"), nil
			})
		}}
		d, _, report := run(t, setup{tools: []tool.Provider{work(&notes{})}, plugins: plugins(all)})
		for _, id := range []protocol.SessionID{"ses_before", "ses_call", "ses_result", "ses_afterWork", "ses_beforeCompletion", "ses_after"} {
			if !d.exists(t, id) {
				t.Errorf("%s was not created; the turn ended as %+v %+v", id, report.Outcome, report.Issues)
			}
		}
	})
	t.Run("plugin/HK-10 a plugin can require approval although rules allow, for the final arguments", func(t *testing.T) {
		ran := &notes{}
		d := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{work(ran)}, plugins: plugins(
			beforeCall("a", plugin.AskFirst("it costs money"), plugin.ReplaceArgs(json.RawMessage(`{"n":3}`))),
		)})
		id := d.session(t)
		o := d.observe(t, id)
		turn := d.begin(t, id, "go").TurnID
		asked := o.typed(protocol.EventDecisionOpened).Decision
		if asked.ArgsHash != protocol.DigestOf([]byte(`{"n":3}`)) || !strings.Contains(asked.Prompt, "it costs money") || len(ran.list) != 0 {
			t.Errorf("asked %+v, ran %q", asked, ran.list)
		}
		must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", &protocol.DecisionRespondParams{DecisionID: asked.ID, Choice: protocol.ChooseAllowOnce, ArgsHash: asked.ArgsHash}))
		d.wait(t, turn)
		if !slices.Equal(ran.list, []string{`{"n":3}`}) {
			t.Errorf("ran %q", ran.list)
		}
	})
}

func TestDirectCallHooks(t *testing.T) {
	t.Run("plugin/HK-04 plugin/HK-06 hooks see direct tool calls like any others", func(t *testing.T) {
		ran := &notes{}
		work := toolFunc{name: "work", run: func(_ context.Context, call tool.Invocation) (tool.Result, error) {
			ran.add(string(call.Args))
			return tool.Result{Output: protocol.Succeed("worked")}, nil
		}}
		guard := hooked{"guard", func(r *plugin.Registrar) {
			r.ToolCalls().Before(func(_ context.Context, c *plugin.ToolCallContext) ([]plugin.Directive, error) {
				if string(c.Args) == `{"evil":true}` {
					return []plugin.Directive{plugin.Abort("policy", "no")}, nil
				}
				return []plugin.Directive{plugin.ReplaceArgs(json.RawMessage(`{"n":1}`)), plugin.Tell(plugin.RuntimeEvent{Kind: "custom", Name: "seen"})}, nil
			})
		}}
		d := start(t, setup{model: replies(), tools: []tool.Provider{work}, plugins: plugins(guard)})
		id := d.session(t)
		o := d.observe(t, id)
		call := func(args string) protocol.ToolOutput {
			return must[*protocol.ToolCallResult](t)(d.Tools.Call(t.Context(), &protocol.ToolCallParams{SessionID: id, Name: "work", Args: json.RawMessage(args)})).Output
		}
		if out := call(`{}`); out.Text != "worked" || !slices.Equal(ran.list, []string{`{"n":1}`}) {
			t.Errorf("output %+v, ran %q", out, ran.list)
		}
		if e := o.typed(protocol.EventPluginCustom); e.Plugin != "guard" || e.Name != "seen" {
			t.Errorf("told %+v", e)
		}
		if out := call(`{"evil":true}`); out.Failure == nil || out.Failure.Code != "policy" || len(ran.list) != 1 {
			t.Errorf("output %+v, ran %q", out, ran.list)
		}
	})
}

// resultsOf are the texts of tool results as the conversation has them.
func resultsOf(nodes []protocol.Node) (texts []string) {
	for _, n := range nodes {
		if n.Message == nil {
			continue
		}
		for _, p := range n.Message.Parts {
			if p.Result != nil {
				texts = append(texts, p.Result.Output.Text)
			}
		}
	}
	return texts
}
