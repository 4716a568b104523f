package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lashd/engine/builtin/batch"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// watch starts a task that runs outside lashd and adds tick events.
func watch(id protocol.TaskID) protocol.ToolIntent {
	return protocol.ToolIntent{StartTask: &protocol.StartTaskIntent{TaskID: id, Spec: protocol.TaskSpec{
		Kind: protocol.TaskOther, Recovery: protocol.RecoverExternal, Events: []protocol.TaskEventType{{
			Name: "tick", Schema: json.RawMessage(`{"type":"object","required":["n"]}`),
		}},
	}}}
}

func tick(id protocol.TaskID, payload string) protocol.ToolIntent {
	return protocol.ToolIntent{EmitTaskEvent: &protocol.TaskEventIntent{TaskID: id, Name: "tick", Payload: json.RawMessage(payload)}}
}

// happens emits an occurrence.
func happens(payload string) protocol.ToolIntent {
	return protocol.ToolIntent{EmitTrigger: &protocol.EmitTriggerIntent{Type: protocol.TypeManualEmitted, Payload: json.RawMessage(payload)}}
}

// wanting is a tool whose calls have intents.
func wanting(name string, all ...protocol.ToolIntent) toolFunc {
	return toolFunc{name: name, run: func(context.Context, tool.Invocation) (tool.Result, error) {
		return tool.Result{Output: protocol.Succeed(name), Intents: all}, nil
	}}
}

// happenings returns the events of a task, in order.
func (d *daemon) happenings(t *testing.T, session protocol.SessionID, id protocol.TaskID) (kinds []string) {
	t.Helper()
	r := must[*protocol.TaskReadResult](t)(d.Tasks.Read(t.Context(), &protocol.TaskReadParams{TaskParams: protocol.TaskParams{SessionID: session, TaskID: id}}))
	for _, e := range r.Events {
		if e.Kind == protocol.TaskLostCaller {
			continue // its turn is over
		}
		kinds = append(kinds, strings.TrimSpace(string(e.Kind)+" "+string(e.Payload)))
	}
	return kinds
}

func TestIntents(t *testing.T) {
	run := func(t *testing.T, names []string, tools ...tool.Provider) (*daemon, protocol.SessionID, *protocol.TurnReport, *remembering) {
		t.Helper()
		model := &remembering{Provider: replies(calls(names...), scripted.Reply{Text: "done"})}
		d := start(t, setup{model: model, tools: tools})
		id := d.session(t)
		return d, id, d.turn(t, id, "go"), model
	}
	outcomes := func(report *protocol.TurnReport, call int) (all []string) {
		for _, out := range report.ToolCalls[call].Output.Intents {
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s", out.Kind, out.TaskID, out.Refused)))
		}
		return all
	}
	t.Run("runtime/T12 the intents of a batch are applied in call order, and the model and clients see the outcomes", func(t *testing.T) {
		order := make(chan struct{})
		first := toolFunc{name: "first", run: func(context.Context, tool.Invocation) (tool.Result, error) {
			<-order // it returns last
			return tool.Result{Output: protocol.Succeed("first"), Intents: []protocol.ToolIntent{watch("tsk_w"), tick("tsk_w", `{"n":1}`)}}, nil
		}}
		second := toolFunc{name: "second", run: func(context.Context, tool.Invocation) (tool.Result, error) {
			defer close(order)
			cancel := protocol.ToolIntent{CancelTask: &protocol.CancelTaskIntent{TaskID: "tsk_w", Reason: "enough"}}
			return tool.Result{Output: protocol.Succeed("second"), Intents: []protocol.ToolIntent{tick("tsk_w", `{"n":2}`), cancel}}, nil
		}}
		d, id, report, model := run(t, []string{"first", "second"}, first, second)
		if got, want := d.happenings(t, id, "tsk_w"), []string{"created", `event {"n":1}`, `event {"n":2}`, "cancelRequested"}; !slices.Equal(got, want) {
			t.Errorf("the task saw %q, want %q", got, want)
		}
		task := must[*protocol.TaskReadResult](t)(d.Tasks.Read(t.Context(), &protocol.TaskReadParams{TaskParams: protocol.TaskParams{SessionID: id, TaskID: "tsk_w"}})).Task
		if o := task.Origin; o.SessionID != id || o.TurnID != report.TurnID || o.CallID != "c1" {
			t.Errorf("its origin is %+v", o)
		}
		want := []string{"startTask tsk_w", "emitTaskEvent tsk_w"}
		if got := outcomes(report, 0); !slices.Equal(got, want) {
			t.Errorf("outcomes %q, want %q", got, want)
		}
		for _, item := range must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id})).Data {
			if item.CallID == "c1" && len(item.Output.Intents) != 2 {
				t.Errorf("clients see %+v", item.Output)
			}
		}
		if told := string(encoded(t, model.asked[1].Messages)); strings.Count(told, `"intents":[{"intentId":"int_`) != 2 {
			t.Errorf("the model sees %s", told)
		}
	})
	t.Run("runtime/T12 each refused intent has a code and changes nothing", func(t *testing.T) {
		shell := func(script string) *protocol.StartTaskIntent {
			return &protocol.StartTaskIntent{TaskID: "tsk_w", Spec: protocol.TaskSpec{Kind: protocol.TaskCommand, Recovery: protocol.RecoverOwner, Command: &protocol.TaskShell{Script: script}}}
		}
		d, id, report, _ := run(t, []string{"many"}, wanting("many",
			watch("tsk_w"), watch("tsk_w"),
			protocol.ToolIntent{StartTask: shell("true")},
			protocol.ToolIntent{StartTask: &protocol.StartTaskIntent{Spec: protocol.TaskSpec{Kind: "nothing"}}},
			protocol.ToolIntent{},
			protocol.ToolIntent{StartTask: shell("true"), CancelTask: &protocol.CancelTaskIntent{TaskID: "tsk_w"}},
			tick("tsk_w", `{"n":`),
			tick("tsk_w", `{}`), tick("tsk_none", `{"n":1}`),
			protocol.ToolIntent{SignalTask: &protocol.SignalTaskIntent{TaskID: "tsk_w", Name: "stdin"}},
			protocol.ToolIntent{EmitTrigger: &protocol.EmitTriggerIntent{Type: "x.y"}},
		))
		got := outcomes(report, 0)
		derived := strings.Fields(got[3])[1]
		want := []string{"startTask tsk_w", "startTask tsk_w", "startTask tsk_w conflict", "startTask " + derived + " invalid", "malformed", "malformed", "emitTaskEvent  malformed",
			"emitTaskEvent tsk_w invalid", "emitTaskEvent tsk_none taskNotFound", "signalTask tsk_w invalid", "emitTrigger  invalid"}
		for i := range want {
			if strings.Join(strings.Fields(got[i]), " ") != strings.Join(strings.Fields(want[i]), " ") {
				t.Errorf("intent %d: %q, want %q", i, got[i], want[i])
			}
		}
		if got := d.happenings(t, id, "tsk_w"); !slices.Equal(got, []string{"created"}) {
			t.Errorf("the task saw %q", got)
		}
		if report.State != protocol.TurnCompleted {
			t.Errorf("the turn ended as %s", report.State)
		}
	})
	t.Run("runtime/T12 a call may have 32 intents, 16 of one kind and 64 KiB in total", func(t *testing.T) {
		var many, large []protocol.ToolIntent
		for range 20 {
			many = append(many, tick("tsk_w", `{"n":1}`))
		}
		for range 14 {
			many = append(many, protocol.ToolIntent{CancelTask: &protocol.CancelTaskIntent{TaskID: "tsk_none"}})
		}
		large = append(large, watch("tsk_w"), tick("tsk_w", `{"n":"`+strings.Repeat("x", 64<<10)+`"}`))
		d, id, report, _ := run(t, []string{"large", "many"}, wanting("large", large...), wanting("many", many...))
		count := map[protocol.IntentRefusal]int{}
		for _, out := range report.ToolCalls[1].Output.Intents {
			count[out.Refused]++
		}
		if count[""] != 16 || count[protocol.IntentTooManyKind] != 4 || count[protocol.IntentNoTask] != 12 || count[protocol.IntentTooMany] != 1 {
			t.Errorf("refused %v", count)
		}
		if got := outcomes(report, 0); !slices.Equal(got, []string{"startTask tsk_w", "emitTaskEvent  tooLarge"}) {
			t.Errorf("outcomes %q", got)
		}
		if got := d.happenings(t, id, "tsk_w"); len(got) != 17 {
			t.Errorf("the task saw %d things", len(got))
		}
	})
	t.Run("runtime/T12 only successful calls of the model may have intents", func(t *testing.T) {
		fails := toolFunc{name: "fails", run: func(context.Context, tool.Invocation) (tool.Result, error) {
			return tool.Result{Output: protocol.Fail(protocol.FailExecution, "no", "no", protocol.FromTool), Intents: []protocol.ToolIntent{watch("tsk_w")}}, nil
		}}
		model := replies(batched(`{"name":"works"},{"name":"fails"}`), calls("fails"), scripted.Reply{Text: "done"})
		d := start(t, setup{model: model, tools: []tool.Provider{fails, wanting("works", watch("tsk_w"))}, plugins: []plugin.Factory{batch.Factory{}}})
		id := d.session(t)
		report := d.turn(t, id, "go")
		var got []protocol.IntentRefusal
		for _, c := range report.ToolCalls {
			for _, out := range c.Output.Intents {
				got = append(got, out.Refused)
			}
		}
		if want := []protocol.IntentRefusal{protocol.IntentNoTurn, protocol.IntentNoTurn, protocol.IntentCallFailed}; !slices.Equal(got, want) {
			t.Errorf("refused as %q, want %q", got, want)
		}
		direct := must[*protocol.ToolCallResult](t)(d.Tools.Call(t.Context(), &protocol.ToolCallParams{SessionID: id, Name: "works"}))
		if out := direct.Output.Intents; len(out) != 1 || out[0].Refused != protocol.IntentNoTurn {
			t.Errorf("outcomes of a call outside of a turn: %+v", out)
		}
		if _, err := d.Tasks.Read(t.Context(), &protocol.TaskReadParams{TaskParams: protocol.TaskParams{SessionID: id, TaskID: "tsk_w"}}); err == nil {
			t.Error("the task was started")
		}
	})
	t.Run("runtime/T12 intents of a call that ended during shutdown are applied by the next daemon", func(t *testing.T) {
		called := make(chan struct{})
		late := toolFunc{name: "late", run: func(ctx context.Context, _ tool.Invocation) (tool.Result, error) {
			close(called)
			<-ctx.Done()
			return tool.Result{Output: protocol.Succeed("late"), Intents: []protocol.ToolIntent{watch("tsk_w")}}, nil
		}}
		d := start(t, setup{model: replies(calls("late"), scripted.Reply{Text: "done"}), tools: []tool.Provider{late}})
		id := d.session(t)
		turn := d.begin(t, id, "go").TurnID
		<-called
		d = d.restart(t, nil)
		report := d.wait(t, turn)
		if got := outcomes(report, 0); !slices.Equal(got, []string{"startTask tsk_w"}) {
			t.Errorf("outcomes %q", got)
		}
		if got := d.happenings(t, id, "tsk_w"); !slices.Equal(got, []string{"created"}) {
			t.Errorf("the task saw %q", got)
		}
	})
	t.Run("runtime/T12 the id of an intent depends on its session, turn, call and position", func(t *testing.T) {
		_, _, report, _ := run(t, []string{"work", "work"}, wanting("work", protocol.ToolIntent{}, protocol.ToolIntent{}))
		seen := map[string]bool{}
		for _, c := range report.ToolCalls {
			for _, out := range c.Output.Intents {
				seen[out.ID] = true
			}
		}
		if len(seen) != 4 {
			t.Errorf("ids %v", seen)
		}
	})
}

func TestIntentsKilled(t *testing.T) {
	for _, point := range []string{intentsKept, intentsDrained} {
		t.Run("runtime/T12 intents are applied once if the daemon is killed "+point, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			kill(t, dir, point)
			s := crashSetup(dir, point, nil)
			s.dir = filepath.Join(dir, "store")
			d := start(t, s)
			turns := must[*protocol.TurnListResult](t)(d.Turns.List(t.Context(), &protocol.TurnListParams{SessionID: victimSession})).Data
			if report := d.wait(t, turns[0].TurnID); report.State != protocol.TurnCompleted {
				t.Errorf("the turn ended as %s %+v", report.State, report.Issues)
			}
			if never := counted(dir, "never"); never != 1 {
				t.Errorf("the call ran %d times", never)
			}
			if got, want := d.happenings(t, victimSession, "tsk_w"), []string{"created", `event {"n":1}`}; !slices.Equal(got, want) {
				t.Errorf("the task saw %q, want %q", got, want)
			}
			happened := must[*protocol.TriggerHistoryResult](t)(d.Triggers.History(t.Context(), &protocol.TriggerHistoryParams{})).Data
			if len(happened) != 1 || string(happened[0].Payload) != `{"n":1}` || !strings.HasPrefix(happened[0].Key, "int_") {
				t.Errorf("what happened: %+v", happened)
			}
		})
	}
}
