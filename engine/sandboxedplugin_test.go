package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"lashd/engine/authority"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// boxed is a plugin that is not built in and whose programs all run in a sandbox.
type boxed struct{ hooked }

func (boxed) Sandboxed() bool { return true }

// foreign is a plugin that is not built in and runs without a sandbox.
type foreign struct{ hooked }

func (foreign) Sandboxed() bool { return false }

// toolbox is a plugin with tools.
func toolbox(id string, all ...tool.Provider) hooked {
	return hooked{id, func(r *plugin.Registrar) {
		for _, p := range all {
			r.Tools().Add(p)
		}
	}}
}

// replacing is a plugin that replaces the arguments of a tool's calls.
func replacing(id, name string) hooked {
	return hooked{id, func(r *plugin.Registrar) {
		r.ToolCalls().Before(func(_ context.Context, c *plugin.ToolCallContext) ([]plugin.Directive, error) {
			if c.Tool != name {
				return nil, nil
			}
			return []plugin.Directive{{Kind: plugin.ReplaceToolArgs, Args: json.RawMessage(`{"replaced":true}`)}}, nil
		})
	}}
}

// obeying is a model that calls, once for each input, the first of some tools whose name is in the input.
func obeying(names ...string) provider.Provider {
	s := &scripted.Script{Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "ok"}}}}
	for _, name := range names {
		turn := scripted.Turn{Match: &scripted.Match{LastUserContains: name}, Replies: []scripted.Reply{calls(name), {Text: "done"}}}
		s.Turns = append(s.Turns, slices.Repeat([]scripted.Turn{turn}, 12)...)
	}
	return scripted.New(s)
}

// calling is a serial tool that calls another tool and returns its result.
func calling(name, other string) toolFunc {
	return toolFunc{name: name, contract: protocol.ToolContract{Serial: true, Replay: protocol.ReplaySafe}, run: func(ctx context.Context, c tool.Invocation) (tool.Result, error) {
		out, err := c.Host.Call(ctx, []tool.Request{{Name: other, Args: json.RawMessage(`{}`)}})
		if err != nil {
			return tool.Result{}, err
		}
		return tool.Result{Output: protocol.Succeed(result(out[0]))}, nil
	}}
}

// creating is a tool that asks for the session ses_made.
func creating(name string) toolFunc {
	return toolFunc{name: name, run: func(ctx context.Context, c tool.Invocation) (tool.Result, error) {
		_, err := plugin.ForTool(c).Lifecycle.CreateSession(ctx, &protocol.SessionNewParams{SessionID: "ses_made"})
		return tool.Result{Output: protocol.Succeed(name)}, err
	}}
}

// result returns the text of a tool result, or the code of its failure.
func result(out protocol.ToolOutput) string {
	if out.Failure != nil {
		return out.Failure.Code
	}
	return out.Text
}

// answered follows a turn to its end. It allows calls of some tools once and rejects all others. It returns the tools that it was asked
// about and the result of each call.
func (d *daemon) answered(t *testing.T, id protocol.SessionID, turn protocol.TurnID, allowed ...string) (asked []string, came map[string]string) {
	t.Helper()
	o := d.observe(t, id, 0)
	for {
		e := o.until(func(e protocol.Event) bool {
			return e.TurnID == turn && (e.Type == protocol.EventDecisionOpened || e.Type == protocol.EventTurnCompleted)
		})
		if e.Type == protocol.EventTurnCompleted {
			break
		}
		q, choice := e.Decision, protocol.ChooseReject
		if slices.Contains(allowed, q.Call.Name) {
			choice = protocol.ChooseAllowOnce
		}
		asked = append(asked, q.Call.Name)
		must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", &protocol.DecisionRespondParams{DecisionID: q.ID, Choice: choice, ArgsHash: q.ArgsHash}))
	}
	came = map[string]string{}
	for _, call := range d.wait(t, turn).ToolCalls {
		came[call.Name] = result(call.Output)
	}
	return asked, came
}

// asksAbout fails the test unless a turn asks for approval of exactly these tools, in order.
func (d *daemon) asksAbout(t *testing.T, what string, id protocol.SessionID, turn protocol.TurnID, want ...string) {
	t.Helper()
	asked, came := d.answered(t, id, turn, want[:max(len(want)-1, 0)]...)
	if !slices.Equal(asked, want) {
		t.Errorf("%s: a person is asked about %q, want %q; call results: %v", what, asked, want, came)
	}
}

// boxes reports whether a session is limited to a sandbox.
func (d *daemon) boxes(t *testing.T, id protocol.SessionID) bool {
	t.Helper()
	c := d.state(t, id).Authority.Ceiling
	return c != nil && c.Sandboxed
}

func TestCallsOfSandboxedPlugins(t *testing.T) {
	run := says("run", "ran")
	t.Run("outside/1 calls of a sandboxed plugin need approval and are rejected if no person can be asked", func(t *testing.T) {
		for name, c := range map[string]struct {
			maker  plugin.Factory
			asked  []string
			direct string
		}{
			"a plugin in a sandbox":    {boxed{toolbox("maker", calling("make", "run"))}, []string{"run"}, "denied"},
			"a plugin without sandbox": {foreign{toolbox("maker", calling("make", "run"))}, nil, "ran"},
		} {
			d := start(t, setup{model: obeying("make"), tools: []tool.Provider{run}, plugins: []plugin.Factory{c.maker}})
			id := d.session(t)
			d.asksAbout(t, name, id, d.begin(t, id, "make").TurnID, c.asked...)
			got := must[*protocol.ToolCallResult](t)(d.Tools.Call(t.Context(), &protocol.ToolCallParams{SessionID: id, Name: "make"})).Output
			if result(got) != c.direct {
				t.Errorf("%s: called directly, its call returned %q, want %q", name, result(got), c.direct)
			}
		}
	})
	t.Run("outside/1 calls made by a call whose arguments a sandboxed plugin replaced need approval too, even after a restart without the plugin", func(t *testing.T) {
		begun := make(chan struct{}, 1)
		hold := calling("make", "run")
		hold.run = func(ctx context.Context, c tool.Invocation) (tool.Result, error) {
			begun <- struct{}{}
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		}
		d := start(t, setup{model: obeying("make"), tools: []tool.Provider{run, calling("make", "run")}, plugins: []plugin.Factory{boxed{replacing("box", "make")}}})
		id := d.session(t)
		d.asksAbout(t, "at once", id, d.begin(t, id, "make").TurnID, "make", "run")
		d = d.restart(t, func(s *setup) { s.tools = []tool.Provider{run, hold} })
		o := d.observe(t, id)
		turn := d.begin(t, id, "make").TurnID
		q := o.typed(protocol.EventDecisionOpened).Decision
		must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", &protocol.DecisionRespondParams{DecisionID: q.ID, Choice: protocol.ChooseAllowOnce, ArgsHash: q.ArgsHash}))
		<-begun
		d = d.restart(t, func(s *setup) { s.tools, s.plugins = []tool.Provider{run, calling("make", "run")}, nil })
		if asked, came := d.answered(t, id, turn); !slices.Contains(asked, "run") || came["run"] != "denied" {
			t.Errorf("after a restart a person is asked about %q; call results: %v", asked, came)
		}
	})
	t.Run("outside/1 requests of a tool are limited to the sandbox of the plugin that calls it", func(t *testing.T) {
		d := start(t, setup{model: obeying("make"), tools: []tool.Provider{creating("create")}, plugins: []plugin.Factory{boxed{toolbox("box", calling("make", "create"))}}})
		id := d.session(t)
		d.answered(t, id, d.begin(t, id, "make").TurnID, "create")
		if !d.boxes(t, "ses_made") {
			t.Error("the session is held to no sandbox")
		}
	})
	t.Run("outside/1 only tools that start no program outside a sandbox are exempt from approval", func(t *testing.T) {
		look, peek, box := says("look", "seen"), says("peek", "seen"), says("box", "seen")
		look.kind, peek.kind = protocol.ToolKindRead, protocol.ToolKindRead
		d := start(t, setup{
			model: obeying("look", "peek", "box"), tools: []tool.Provider{look},
			plugins: []plugin.Factory{boxed{toolbox("boxed", box)}, foreign{toolbox("foreign", peek)}},
		})
		id := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{
			Cwd: t.TempDir(), Authority: protocol.Authority{Ceiling: &protocol.Ceiling{Sandboxed: true}},
		})).SessionID
		d.asksAbout(t, "a tool that ships with lashd and reads", id, d.begin(t, id, "look").TurnID)
		d.asksAbout(t, "a tool of a plugin in a sandbox", id, d.begin(t, id, "box").TurnID)
		d.asksAbout(t, "a tool of a plugin that says that it reads", id, d.begin(t, id, "peek").TurnID, "peek")
	})
	t.Run("outside/1 a task started by a sandboxed tool runs no command and passes its sandbox on", func(t *testing.T) {
		command := protocol.ToolIntent{StartTask: &protocol.StartTaskIntent{TaskID: "tsk_command", Spec: protocol.TaskSpec{
			Kind: protocol.TaskCommand, Recovery: protocol.RecoverOwner, Command: &protocol.TaskShell{Script: "true"},
		}}}
		box := boxed{toolbox("box", wanting("start", watch("tsk_boxed"), command))}
		d := start(t, setup{cwd: t.TempDir(), model: obeying("start", "other"), tools: []tool.Provider{wanting("other", watch("tsk_asked"))}, plugins: []plugin.Factory{box, handling("p", nil)}})
		id := d.session(t)
		out := d.turn(t, id, "start").ToolCalls[0].Output
		if len(out.Intents) != 2 || out.Intents[0].Refused != "" || out.Intents[1].Refused == "" {
			t.Errorf("the intents have the outcomes %+v", out.Intents)
		}
		turn := d.asksFor(t, id, "other")
		d.answered(t, id, turn, "other")
		for _, task := range []protocol.TaskID{"tsk_boxed", "tsk_asked"} {
			if c := d.readTask(t, id, task).Task.Origin.Ceiling; c == nil || !c.Sandboxed {
				t.Errorf("%s is held to %+v", task, c)
			}
		}
	})
}

// TestTasksOfReplacedArguments lets a sandboxed plugin replace the arguments of a call that starts a task. The task is limited to its sandbox.
func TestTasksOfReplacedArguments(t *testing.T) {
	d := start(t, setup{cwd: t.TempDir(), model: obeying("start"), tools: []tool.Provider{wanting("start", watch("tsk_1"))}, plugins: []plugin.Factory{boxed{replacing("box", "start")}}})
	id := d.session(t)
	d.answered(t, id, d.begin(t, id, "start").TurnID, "start")
	if c := d.readTask(t, id, "tsk_1").Task.Origin.Ceiling; c == nil || !c.Sandboxed {
		t.Errorf("outside/29 the task is limited to %+v", c)
	}
}

// asksFor lets a sandboxed plugin request a turn in a session.
func (d *daemon) asksFor(t *testing.T, id protocol.SessionID, input string) protocol.TurnID {
	t.Helper()
	host := d.host(t, d.session(t))
	return must[protocol.TurnID](t)(host.Lifecycle.StartTurn(authority.FromSandbox(t.Context()), &plugin.TurnRequest{TurnID: protocol.NewTurnID(), SessionID: id, Input: text(input)}))
}

func TestSessionsOfSandboxedPlugins(t *testing.T) {
	directs := hooked{"makes", func(r *plugin.Registrar) {
		r.Turn().Before(func(context.Context, *plugin.TurnContext) ([]plugin.Directive, error) {
			return []plugin.Directive{{Kind: plugin.CreateSession, Session: &protocol.SessionNewParams{SessionID: "ses_made"}}}, nil
		})
	}}
	hook := hooked{"makes", func(r *plugin.Registrar) {
		r.Context().Transform(0, func(ctx context.Context, v *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
			_, err := v.Host.Lifecycle.CreateSession(ctx, &protocol.SessionNewParams{SessionID: "ses_made"})
			return pc, err
		})
	}}
	for _, c := range []struct {
		by         string
		maker      plugin.Factory
		held, want bool // a sandboxed plugin requests the turn; the session is limited to a sandbox
	}{
		{"a directive", directs, false, false},
		{"a directive of a sandboxed plugin", boxed{directs}, false, true},
		{"a directive in a turn that a sandboxed plugin requests", directs, true, true},
		{"a hook", hook, false, false},
		{"a hook in a turn that a sandboxed plugin requests", hook, true, true},
	} {
		t.Run("outside/1 a session is created by "+c.by, func(t *testing.T) {
			d := start(t, setup{cwd: t.TempDir(), model: replies(), plugins: []plugin.Factory{c.maker, handling("p", nil)}})
			id := d.session(t)
			if c.held {
				d.wait(t, d.asksFor(t, id, "go"))
			} else {
				d.turn(t, id, "go")
			}
			if got := d.boxes(t, "ses_made"); got != c.want {
				t.Errorf("the session is limited to a sandbox: %t", got)
			}
		})
	}
}
