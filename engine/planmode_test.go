package engine_test

import (
	"encoding/json"
	"errors"
	"testing"

	"lashd/engine/builtin/plan"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

var (
	planning = protocol.PluginOptions{plan.ID: json.RawMessage(`{"mode":"plan"}`)}
	acting   = protocol.PluginOptions{plan.ID: json.RawMessage(`{}`)}
)

// plans is a daemon with a session in plan mode whose settings allow every call, and the services of its plugins. The model calls the
// tool run, which changes things, in each turn whose input has "run" in it.
func plans(t *testing.T) (*daemon, protocol.SessionID, plugin.Capabilities) {
	t.Helper()
	look := says("look", "seen")
	look.kind = protocol.ToolKindRead
	calling := func(name string) scripted.Turn {
		return scripted.Turn{Match: &scripted.Match{LastUserContains: name}, Replies: []scripted.Reply{calls(name), {Text: "done"}}}
	}
	turns := []scripted.Turn{calling("look"), calling("peek")}
	for range 12 {
		turns = append(turns, calling("run"))
	}
	d := start(t, setup{
		cwd: t.TempDir(), tools: []tool.Provider{says("run", "ran"), look}, plugins: plugins(handling("p", nil)),
		model: scripted.New(&scripted.Script{Turns: turns, Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "ok"}}}}),
	}.with(plan.Factory{}))
	id := d.session(t)
	must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Approval: allowing, Options: planning}))
	return d, id, d.host(t, id)
}

// with returns a setup with one more plugin.
func (s setup) with(f plugin.Factory) setup {
	s.plugins = append(s.plugins, f)
	return s
}

// free creates a session of a person that allows everything.
func (d *daemon) free(t *testing.T) protocol.SessionID {
	t.Helper()
	id := d.session(t)
	must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Approval: allowing}))
	return id
}

// act ends plan mode.
func (d *daemon) act(t *testing.T, id protocol.SessionID) {
	t.Helper()
	must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Approval: allowing, Options: acting}))
}

func TestPlanMode(t *testing.T) {
	t.Run("outside/1 a session requested in plan mode stays in it despite configuration, in forks and after a restart", func(t *testing.T) {
		d, _, host := plans(t)
		made := must[*protocol.SessionNewResult](t)(host.Lifecycle.CreateSession(t.Context(), &protocol.SessionNewParams{Approval: allowing, Options: acting})).SessionID
		child := must[*protocol.SessionNewResult](t)(d.host(t, made).Lifecycle.CreateSession(t.Context(), &protocol.SessionNewParams{
			Options: acting, Relation: protocol.Relation{Kind: protocol.RelationChild},
		})).SessionID
		fork := d.fork(t, made, "").SessionID
		for range 2 {
			for name, id := range map[string]protocol.SessionID{"the session": made, "one below it": child, "a fork": fork} {
				d.act(t, id)
				if got := cameTo(t, d.turn(t, id, "run")); got != "plan_mode" {
					t.Errorf("%s: the call came to %q", name, got)
				}
				out := must[*protocol.ToolCallResult](t)(d.Tools.Call(t.Context(), &protocol.ToolCallParams{SessionID: id, Name: "run"})).Output
				if out.Failure == nil || out.Failure.Code != "plan_mode" {
					t.Errorf("%s: a direct call came to %+v", name, out)
				}
			}
			d = d.restart(t, nil)
		}
		if got := cameTo(t, d.turn(t, made, "look")); got != "seen" {
			t.Errorf("a tool that reads came to %q", got)
		}
	})
	t.Run("outside/1 a turn started from plan mode changes nothing, and other turns are not limited", func(t *testing.T) {
		d, _, host := plans(t)
		free := d.free(t)
		if got := d.askedFor(t, host, t.Context(), "trn_1", free); got != "plan_mode" {
			t.Errorf("the call came to %q", got)
		}
		if got := cameTo(t, d.turn(t, free, "run")); got != "ran" {
			t.Errorf("a person's own call came to %q", got)
		}
	})
	t.Run("outside/1 wakes of a task started in plan mode stay limited after a person ends plan mode", func(t *testing.T) {
		d, id, host := plans(t)
		free := d.free(t)
		spec := protocol.TaskSpec{Kind: protocol.TaskOther, Recovery: protocol.RecoverExternal, Ended: &protocol.TaskWake{Text: "run"}}
		for _, at := range []protocol.SessionID{id, free} {
			must[*protocol.TaskResult](t)(host.Tasks.StartTask(t.Context(), &plugin.TaskStart{SessionID: at, TaskID: "tsk_1", Spec: spec}))
		}
		d.act(t, id)
		d = d.restart(t, nil)
		for _, at := range []protocol.SessionID{id, free} {
			o := d.observe(t, at)
			must[*protocol.TaskResult](t)(d.Tasks.Complete(t.Context(), "cli_a", &protocol.TaskCompleteParams{
				TaskParams: protocol.TaskParams{SessionID: at, TaskID: "tsk_1"}, Outcome: protocol.TaskOutcome{Kind: protocol.TaskDone},
			}))
			if got := cameTo(t, d.wait(t, o.typed(protocol.EventTurnAccepted).TurnID)); got != "plan_mode" {
				t.Errorf("the call came to %q", got)
			}
			if got := cameTo(t, d.turn(t, at, "run")); got != "ran" {
				t.Errorf("a person's own call came to %q", got)
			}
		}
	})
	t.Run("outside/1 plan mode starts no commands or monitors and sends no input to running commands", func(t *testing.T) {
		d, id, host := plans(t)
		shell := protocol.TaskSpec{Kind: protocol.TaskCommand, Recovery: protocol.RecoverOwner, Command: &protocol.TaskShell{Script: "cat"}}
		_, command := host.Tasks.StartTask(t.Context(), &plugin.TaskStart{Spec: shell})
		_, monitor := host.Monitors.Start(t.Context(), &protocol.MonitorStartParams{Spec: protocol.MonitorSpec{ID: "m", Command: "true"}})
		d.act(t, id)
		must[*protocol.TaskResult](t)(d.host(t, id).Tasks.StartTask(t.Context(), &plugin.TaskStart{TaskID: "tsk_cat", Spec: shell}))
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Options: planning}))
		_, signal := host.Tasks.SignalTask(t.Context(), &protocol.TaskSignalParams{TaskParams: protocol.TaskParams{TaskID: "tsk_cat"}, Name: "stdin", Payload: json.RawMessage(`"x"`)})
		for name, err := range map[string]error{"a command": command, "a monitor": monitor, "the input of a command": signal} {
			if !errors.As(err, new(*plugin.UnavailableError)) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("outside/1 an operation called in plan mode queues inputs that change nothing", func(t *testing.T) {
		queue := operator(func(o plugin.OperationGroup) {
			o.Command(named("go", protocol.SessionRequired), gives(plugin.OperationResult{Queue: []plugin.QueueTurn{{Input: text("run")}}}))
		})
		d := start(t, setup{tools: []tool.Provider{says("run", "ran")}, model: scripted.New(&scripted.Script{Turns: []scripted.Turn{
			{Match: &scripted.Match{LastUserContains: "run"}, Replies: []scripted.Reply{calls("run"), {Text: "done"}}},
		}}), plugins: []plugin.Factory{queue, plan.Factory{}}})
		id := d.session(t)
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Approval: allowing, Options: planning}))
		o := d.observe(t, id)
		r := must[*protocol.OperationReceipt](t)(d.Operations.Command(t.Context(), d.operation(id, "go")))
		if len(r.Inputs) != 1 || r.Inputs[0].Ceiling == nil || !r.Inputs[0].Ceiling.ReadOnly {
			t.Errorf("it has queued %+v", r.Inputs)
		}
		if got := cameTo(t, d.wait(t, o.typed(protocol.EventTurnAccepted).TurnID)); got != "plan_mode" {
			t.Errorf("the call came to %q", got)
		}
	})
	t.Run("outside/1 in plan mode a client's tool counts as reading only if it replaces a tool that reads", func(t *testing.T) {
		d, id, _ := plans(t)
		for name, want := range map[string]bool{"peek": false, "run": false, "look": true} {
			overlay := &protocol.SessionOverlayParams{SessionID: id, Tools: []protocol.ClientTool{{ToolManifest: protocol.ToolManifest{Name: name, Kind: protocol.ToolKindRead}}}}
			must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), "cli_a", overlay))
			o := d.observe(t, id)
			turn := d.begin(t, id, name).TurnID
			asked := o.until(func(e protocol.Event) bool {
				return e.Type == protocol.EventToolRequested || e.Type == protocol.EventTurnCompleted
			})
			if got := asked.Type == protocol.EventToolRequested; got != want {
				t.Errorf("%s: the client is asked for it: %t", name, got)
			}
			d.interrupt(t, turn)
			d.wait(t, turn)
		}
	})
}
