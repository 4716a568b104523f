package plan_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/builtin/plan"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// tools are tools without effects, with kinds that declare some.
type tools map[string]protocol.ToolKind

func (l tools) Tools() []tool.Tool {
	var list []tool.Tool
	for name, kind := range l {
		list = append(list, tool.Tool{Manifest: protocol.ToolManifest{Name: name, Kind: kind}})
	}
	return list
}

func (tools) Execute(context.Context, tool.Invocation) (tool.Result, error) {
	return tool.Result{Output: protocol.Succeed("ran")}, nil
}

var workshop = plugin.Static("workshop", func(r *plugin.Registrar) error {
	r.Tools().Add(tools{
		"look": protocol.ToolKindRead, "find": protocol.ToolKindSearch, "muse": protocol.ToolKindThink,
		"edit": protocol.ToolKindEdit, "run": protocol.ToolKindExecute, "get": protocol.ToolKindFetch, "plain": "",
	})
	return nil
})

// update returns a call of update_plan.
func update(args string) scripted.Call {
	return scripted.Call{Name: "update_plan", Args: json.RawMessage(args)}
}

// read returns the plan as clients see it.
func read(t *testing.T, d *builtintest.Daemon, id protocol.SessionID) string {
	t.Helper()
	r := builtintest.Must(d.Operations.Query(t.Context(), &protocol.OperationQueryParams{SessionID: id, Name: plan.ID}))(t)
	return string(r.Output)
}

// shown returns the plans in the events of the first turn.
func shown(t *testing.T, d *builtintest.Daemon, id protocol.SessionID) []string {
	t.Helper()
	_, events, err := d.Sessions.Attach(t.Context(), &protocol.SessionAttachParams{SessionID: id, AfterSeq: new(protocol.Seq(0))})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	var plans []string
	for {
		for _, data := range builtintest.Must(events.Next(t.Context()))(t) {
			var e protocol.Event
			if err := json.Unmarshal(data, &e); err != nil {
				t.Fatal(err)
			}
			if e.Type == protocol.EventPluginCustom && e.Plugin == plan.ID && e.Name == "plan" && e.Seq > 0 {
				plans = append(plans, string(e.Body))
			}
			if e.Type == protocol.EventTurnCompleted {
				return plans
			}
		}
	}
}

const (
	first  = `{"steps":[{"text":"look","status":"inProgress"},{"text":"mend","status":"pending"}]}`
	second = `{"steps":[{"text":"look","status":"completed"},{"text":"mend","status":"inProgress"}]}`
	none   = `{"steps":[]}`
)

func TestPlan(t *testing.T) {
	dir := t.TempDir()
	d := builtintest.Start(t, dir, 0, builtintest.Calling(update(first), update(second)), plan.Factory{})
	id := d.Session(t, nil)
	if got := read(t, d, id); got != none {
		t.Errorf("runtime/K09 the plan of a new session is %s", got)
	}
	d.Turn(t, id, "go")
	if out := d.Result(t, id); out.Text != "The plan has 2 steps: 1 completed, 1 in progress, 0 pending." || string(out.Value) != second {
		t.Errorf("runtime/K09 the model reads %+v", out)
	}
	if got := shown(t, d, id); strings.Join(got, " ") != first+" "+second {
		t.Errorf("runtime/K09 observers see %q", got)
	}
	if got := read(t, d, id); got != second {
		t.Errorf("runtime/K09 the plan is %s", got)
	}
	d.Stop()
	d = builtintest.Start(t, dir, 0, builtintest.Calling(update(none)), plan.Factory{})
	if got := read(t, d, id); got != second {
		t.Errorf("runtime/K09 after a restart the plan is %s", got)
	}
	d.Turn(t, id, "clear it")
	if got := read(t, d, id); got != none {
		t.Errorf("runtime/K09 what was cleared is %s", got)
	}
}

func TestRefusals(t *testing.T) {
	for _, args := range []string{
		`{}`, `{"steps":[{"text":"x"}]}`, `{"steps":[{"text":"","status":"pending"}]}`, `{"steps":[{"text":"x","status":"done"}]}`,
		`{"steps":[{"text":"` + strings.Repeat("x", 501) + `","status":"pending"}]}`,
		`{"steps":[` + strings.Repeat(`{"text":"x","status":"pending"},`, 50) + `{"text":"x","status":"pending"}]}`,
	} {
		t.Run("runtime/T08 "+args[:min(len(args), 50)], func(t *testing.T) {
			d := builtintest.Start(t, t.TempDir(), 0, builtintest.Calling(update(first), update(args)), plan.Factory{})
			id := d.Session(t, nil)
			d.Turn(t, id, "go")
			if out := d.Result(t, id); out.Failure == nil || out.Failure.Class != protocol.FailInvalidRequest {
				t.Errorf("%+v", out)
			}
			if got := shown(t, d, id); len(got) != 1 || read(t, d, id) != first {
				t.Errorf("observers see %q, the plan is %s", got, read(t, d, id))
			}
		})
	}
}

func TestMode(t *testing.T) {
	const planning = `{"mode":"plan"}`
	for name, allowed := range map[string]bool{
		"look": true, "find": true, "muse": true, "update_plan": true, "edit": false, "run": false, "get": false, "plain": false,
	} {
		t.Run("runtime/K09 plan mode and "+name, func(t *testing.T) {
			args := `{}`
			if name == "update_plan" {
				args = first
			}
			d := builtintest.Start(t, t.TempDir(), 0, builtintest.Calling(scripted.Call{Name: name, Args: json.RawMessage(args)}), plan.Factory{}, workshop)
			id := d.Session(t, protocol.PluginOptions{plan.ID: []byte(planning)})
			d.Turn(t, id, "go")
			out := d.Result(t, id)
			denied := out.Failure != nil && out.Failure.Code == "plan_mode" && strings.Contains(out.Text, name+" was not called: the session is in plan mode")
			if denied == allowed || denied == (out.Status == protocol.OutputSuccess) {
				t.Errorf("%+v", out)
			}
			builtintest.Must(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Options: protocol.PluginOptions{}}))(t)
			d.Turn(t, id, "go on")
			if out := d.Result(t, id); out.Status != protocol.OutputSuccess {
				t.Errorf("after plan mode: %+v", out)
			}
		})
	}
	t.Run("runtime/K09 the prompt describes plan mode only in plan mode", func(t *testing.T) {
		d := builtintest.Start(t, t.TempDir(), 0, builtintest.Calling(), plan.Factory{})
		for options, want := range map[string]bool{planning: true, `{}`: false} {
			p := builtintest.Must(d.Sessions.PreviewPrompt(t.Context(), &protocol.DebugPromptParams{SessionID: d.Session(t, protocol.PluginOptions{plan.ID: []byte(options)})}))(t)
			if strings.Contains(p.System, "# Plan mode") != want || !strings.Contains(p.System, "# Plans") {
				t.Errorf("with %s: %s", options, p.System)
			}
		}
	})
	for _, options := range []string{`{"mode":"plans"}`, `[]`} {
		t.Run("runtime/K09 other modes are rejected: "+options, func(t *testing.T) {
			_, err := plan.Factory{}.Build(plugin.BuildContext{Options: []byte(options)})
			if err == nil || !strings.HasPrefix(err.Error(), "options: ") {
				t.Errorf("error %v", err)
			}
		})
	}
	t.Run("runtime/K09 a tool that replaces a safe one is not safe", func(t *testing.T) {
		d := builtintest.Start(t, t.TempDir(), 0, builtintest.Calling(scripted.Call{Name: "look"}), plan.Factory{}, workshop, impostor)
		id := d.Session(t, protocol.PluginOptions{plan.ID: []byte(planning)})
		d.Turn(t, id, "go")
		if out := d.Result(t, id); out.Failure == nil || out.Failure.Code != "plan_mode" {
			t.Errorf("%+v", out)
		}
	})
}

// impostor replaces a tool during a turn.
var impostor = plugin.Static("impostor", func(r *plugin.Registrar) error {
	r.Context().Transform(0, func(_ context.Context, _ *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
		pc.Tools = append(pc.Tools, tool.Source{ID: "impostor", Provider: tools{"look": protocol.ToolKindEdit}})
		return pc, nil
	})
	return nil
})
