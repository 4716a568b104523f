package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"lashd/engine"
	"lashd/engine/models"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

func TestToolBatch(t *testing.T) {
	t.Run("runtime/T07 calls run at once, results come in order of emission, completion order is recorded", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			slow := func(name string, d time.Duration) toolFunc {
				return toolFunc{name: name, run: func(context.Context, tool.Invocation) (tool.Result, error) {
					time.Sleep(d)
					return tool.Result{Output: protocol.Succeed(name)}, nil
				}}
			}
			d := start(t, setup{
				model: replies(calls("late", "early", "middle"), scripted.Reply{Text: "done"}),
				tools: []tool.Provider{slow("late", 3*time.Second), slow("early", time.Second), slow("middle", 2*time.Second)},
			})
			id := d.session(t)
			began := time.Now()
			report := d.turn(t, id, "go")
			if took := time.Since(began); took != 3*time.Second {
				t.Errorf("the batch took %v, want as long as its longest call", took)
			}
			var names []string
			var order []int
			for _, c := range report.ToolCalls {
				names, order = append(names, c.Name), append(order, c.Order)
			}
			if !slices.Equal(names, []string{"late", "early", "middle"}) || !slices.Equal(order, []int{2, 0, 1}) {
				t.Errorf("calls %v completed in order %v", names, order)
			}
			nodes := must[*protocol.GraphReadResult](t)(d.History.Read(t.Context(), &protocol.GraphReadParams{SessionID: id})).Data
			results := nodes[len(nodes)-2].Message.Parts
			for i, want := range []protocol.CallID{"c1", "c2", "c3"} {
				if results[i].Result.CallID != want {
					t.Errorf("result %d is of %s, want %s", i, results[i].Result.CallID, want)
				}
			}
		})
	})
	t.Run("runtime/T08 arguments are validated before anything runs", func(t *testing.T) {
		ran := false
		strict := toolFunc{name: "strict", schema: `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`,
			run: func(context.Context, tool.Invocation) (tool.Result, error) {
				ran = true
				return tool.Result{Output: protocol.Succeed("ran")}, nil
			}}
		wrong := scripted.Reply{ToolCalls: []scripted.Call{
			{ID: "a", Name: "strict", Args: json.RawMessage(`{"n":"one"}`)}, {ID: "b", Name: "strict"}, {ID: "c", Name: "Strict"},
		}}
		d := start(t, setup{model: replies(wrong, scripted.Reply{Text: "sorry"}), tools: []tool.Provider{strict}})
		report := d.turn(t, d.session(t), "go")
		if ran {
			t.Error("the tool ran with arguments that do not fit its schema")
		}
		var codes []string
		for _, c := range report.ToolCalls {
			codes = append(codes, c.Output.Failure.Code)
			if c.Output.Failure.Class != protocol.FailInvalidRequest {
				t.Errorf("%s has class %s, want %s", c.CallID, c.Output.Failure.Class, protocol.FailInvalidRequest)
			}
		}
		if want := []string{"invalid_tool_args", "invalid_tool_args", "tool_unavailable"}; !slices.Equal(codes, want) {
			t.Errorf("codes %v, want %v", codes, want)
		}
	})
	t.Run("runtime/T08 a call whose arguments are not JSON does not run, and the model gets the error", func(t *testing.T) {
		var ran atomic.Int32
		lax := toolFunc{name: "lax", run: func(context.Context, tool.Invocation) (tool.Result, error) {
			ran.Add(1)
			return tool.Result{Output: protocol.Succeed("ran")}, nil
		}}
		untyped := lax
		untyped.name, untyped.schema = "untyped", `{"properties":{"n":{"type":"integer"}}}`
		var reply scripted.Reply
		for _, args := range []string{`not json`, `{"n":1`, `{}{}`, `{"n":1,}`, strings.Repeat(`{"n":`, 60) + "1" + strings.Repeat("}", 60), ``, `null`} {
			for _, name := range []string{"lax", "untyped"} {
				reply.ToolCalls = append(reply.ToolCalls, scripted.Call{Name: name, Args: json.RawMessage(args)})
			}
		}
		d := start(t, setup{model: replies(reply, scripted.Reply{Text: "sorry"}), tools: []tool.Provider{lax, untyped}})
		report := d.turn(t, d.session(t), "go")
		for i, c := range report.ToolCalls {
			refused := c.Output.Failure != nil && c.Output.Failure.Code == "invalid_tool_args" && strings.Contains(c.Output.Text, "not a JSON object")
			if want := i < 10; refused != want {
				t.Errorf("%s with %s came to %+v", c.Name, reply.ToolCalls[i].Args, c.Output)
			}
		}
		if n := ran.Load(); n != 4 || len(report.ToolCalls) != 14 {
			t.Errorf("%d of %d calls ran, want those four that have no arguments", n, len(report.ToolCalls))
		}
	})
	t.Run("runtime/T07 calls with equal or empty ids get ids of their own", func(t *testing.T) {
		same := scripted.Reply{ToolCalls: []scripted.Call{{ID: "x", Name: "look"}, {ID: "x", Name: "look"}, {Name: "look"}}}
		d := start(t, setup{model: replies(same, scripted.Reply{Text: "done"}), tools: []tool.Provider{says("look", "fine")}})
		report := d.turn(t, d.session(t), "go")
		seen := map[protocol.CallID]bool{}
		for _, c := range report.ToolCalls {
			if c.CallID == "" || seen[c.CallID] || c.Output.Status != protocol.OutputSuccess {
				t.Errorf("call %q ended with %s", c.CallID, c.Output.Status)
			}
			seen[c.CallID] = true
		}
	})
}

func TestToolControl(t *testing.T) {
	control := func(name string, c *protocol.ToolControl, status protocol.OutputStatus) toolFunc {
		return toolFunc{name: name, run: func(context.Context, tool.Invocation) (tool.Result, error) {
			return tool.Result{Output: protocol.ToolOutput{Status: status}, Control: c}, nil
		}}
	}
	finish := &protocol.ToolControl{Kind: protocol.ControlFinish, Value: json.RawMessage(`42`)}
	for _, c := range []struct {
		name  string
		tools []toolFunc
		want  protocol.TurnOutcome
		state protocol.TurnState
	}{
		{"finish", []toolFunc{control("a", finish, protocol.OutputSuccess)},
			protocol.TurnOutcome{Kind: protocol.OutcomeToolValue, Tool: "a", Value: json.RawMessage(`42`)}, protocol.TurnCompleted},
		{"fail", []toolFunc{control("a", &protocol.ToolControl{Kind: protocol.ControlFail, Value: json.RawMessage(`"no"`)}, protocol.OutputSuccess)},
			protocol.TurnOutcome{Kind: protocol.OutcomeToolError, Tool: "a", Value: json.RawMessage(`"no"`)}, protocol.TurnFailed},
		{"frame switch", []toolFunc{control("a", &protocol.ToolControl{Kind: protocol.ControlSwitchFrame, Frame: &protocol.FrameSwitch{Key: "k", Task: "more"}}, protocol.OutputSuccess)},
			protocol.TurnOutcome{Kind: protocol.OutcomeFrameSwitch, Frame: &protocol.FrameSwitch{Key: "k", Task: "more"}}, protocol.TurnCompleted},
		{"the first successful control counts", []toolFunc{
			control("a", &protocol.ToolControl{Kind: protocol.ControlFail}, protocol.OutputFailure), control("b", finish, protocol.OutputSuccess),
			control("c", &protocol.ToolControl{Kind: protocol.ControlFail}, protocol.OutputSuccess),
		}, protocol.TurnOutcome{Kind: protocol.OutcomeToolValue, Tool: "b", Value: json.RawMessage(`42`)}, protocol.TurnCompleted},
	} {
		t.Run("runtime/T11 "+c.name, func(t *testing.T) {
			var names []string
			var tools []tool.Provider
			for _, f := range c.tools {
				names, tools = append(names, f.name), append(tools, f)
			}
			d := start(t, setup{model: replies(calls(names...)), tools: tools})
			id := d.session(t)
			report := d.turn(t, id, "go")
			if diff := cmp.Diff(&c.want, report.Outcome); diff != "" || report.State != c.state {
				t.Errorf("state %s, outcome (-want +got):\n%s", report.State, diff)
			}
			if next := d.turn(t, id, "and?"); next.State != protocol.TurnCompleted {
				t.Errorf("the next turn ended as %s %+v", next.State, next.Issues)
			}
		})
	}
}

func TestReport(t *testing.T) {
	t.Run("runtime/T14 a report has the complete outcome of the turn", func(t *testing.T) {
		first := calls("look")
		first.Text = "Let me see."
		d := start(t, setup{
			model: replies(first, scripted.Reply{Text: "It is fine.", Usage: &protocol.Usage{Input: 20, Output: 7, CacheRead: 3}}),
			tools: []tool.Provider{says("look", "sunny")},
		})
		id := d.session(t)
		report := d.turn(t, id, "how is it?")
		if report.State != protocol.TurnCompleted || report.Outcome.Kind != protocol.OutcomeAssistantMessage || report.Outcome.Text != "It is fine." {
			t.Errorf("state %s, outcome %+v", report.State, report.Outcome)
		}
		if *report.Output != (protocol.AssistantOutput{Safe: "It is fine.", State: protocol.OutputUsable}) {
			t.Errorf("output %+v", report.Output)
		}
		if want := (protocol.Usage{Input: 30, Output: 12, CacheRead: 3}); report.Usage != want {
			t.Errorf("usage %+v, want %+v", report.Usage, want)
		}
		if len(report.Calls) != 2 || len(report.ToolCalls) != 1 || !report.HadTools || report.HadCode {
			t.Errorf("%d model calls, %d tool calls", len(report.Calls), len(report.ToolCalls))
		}
		head := must[*protocol.GraphReadResult](t)(d.History.Read(t.Context(), &protocol.GraphReadParams{SessionID: id})).Head
		if report.HeadRevision != head.Revision || report.SessionID != id || report.StartedAtMs < report.AcceptedAtMs {
			t.Errorf("head revision %d, the head has %d; session %s", report.HeadRevision, head.Revision, report.SessionID)
		}
	})
	for _, c := range []struct {
		name  string
		reply scripted.Reply
		kind  protocol.OutcomeKind
		out   protocol.OutputState
	}{
		{"output limit", scripted.Reply{Text: "half", Stop: protocol.StopOutputLimit}, protocol.OutcomeIncomplete, protocol.OutputRecovered},
		{"content filter", scripted.Reply{Text: "half", Stop: protocol.StopContentFilter}, protocol.OutcomeProviderError, protocol.OutputRecovered},
		{"provider error", scripted.Reply{Error: &scripted.Failure{Kind: "http", Code: "teapot"}}, protocol.OutcomeProviderError, protocol.OutputEmpty},
		{"empty reply", scripted.Reply{}, protocol.OutcomeProviderError, protocol.OutputEmpty},
	} {
		t.Run("runtime/T14 "+c.name, func(t *testing.T) {
			d := start(t, setup{model: replies(c.reply)})
			id := d.session(t)
			report := d.turn(t, id, "go")
			if report.Outcome.Kind != c.kind || report.Output.State != c.out || report.State != protocol.TurnFailed {
				t.Errorf("outcome %s, output %s, state %s", report.Outcome.Kind, report.Output.State, report.State)
			}
			if next := d.turn(t, id, "and?"); next.State != protocol.TurnCompleted {
				t.Errorf("the next turn ended as %s", next.State)
			}
		})
	}
	t.Run("runtime/T14 a model that is no longer configured fails the turn, not the session", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		id := d.session(t)
		d = d.restart(t, func(s *setup) { s.config = otherModel })
		report := d.turn(t, id, "go")
		if len(report.Issues) != 1 || report.Issues[0].Code != "model_not_configured" {
			t.Errorf("issues %+v", report.Issues)
		}
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Model: "other"}))
		if next := d.turn(t, id, "and?"); next.State != protocol.TurnCompleted {
			t.Errorf("the next turn ended as %s %+v", next.State, next.Issues)
		}
	})
}

func otherModel(c *engine.Config) {
	c.Models.(models.Fixed)[0].Name, c.Models.(models.Fixed)[0].Spec.ID = "other", "other"
}

func TestLongReply(t *testing.T) {
	t.Run("plugin/HK-21 a reply that no plugin stops may take longer than an hour", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			slow := modelFunc(func(ctx context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
				if pause := sleep(ctx, 3*time.Hour); pause != nil {
					yield(provider.Chunk{}, pause)
					return
				}
				replies(scripted.Reply{Text: "at last"}).Stream(ctx, req)(yield)
			})
			d := start(t, setup{model: slow})
			if report := d.turn(t, d.session(t), "think"); report.Outcome.Text != "at last" {
				t.Errorf("outcome %+v, issues %+v", report.Outcome, report.Issues)
			}
		})
	})
}

// sleep waits for a duration or until ctx is done.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestHandOvers counts how often a turn hands over to another goroutine. Each function that the actor runs is two hand-overs, and so is
// each commit; the start of a turn is one. A plain turn has nine. Built-in plugins run on the caller's goroutine.
func TestHandOvers(t *testing.T) {
	handed := func(t *testing.T, d *daemon, id protocol.SessionID, what func()) (taken, commits int) {
		t.Helper()
		before, stored, err := d.Handed(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		what()
		taken, commits, err = d.Handed(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return taken - before - 1, commits - stored
	}
	t.Run("runtime/P01 a plain turn visits the actor twice and commits twice", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		id := d.session(t)
		d.turn(t, id, "first")
		taken, commits := handed(t, d, id, func() { d.turn(t, id, "second") })
		if taken != 2 || commits != 2 {
			t.Errorf("the actor took %d functions and made %d commits, want 2 and 2", taken, commits)
		}
	})
	t.Run("runtime/P08 a wake of an idle session is one commit, and its turn another", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		id := d.session(t)
		d.turn(t, id, "first")
		taken, commits := handed(t, d, id, func() {
			in, refused, err := d.WakeSession(t.Context(), id, engine.Wake{Source: "s:1", Delivery: protocol.DeliverEarliest, Cause: protocol.TurnCause{ID: "1", Type: "test", Text: "wake up"}})
			if err != nil || refused != "" {
				t.Fatal(refused, err)
			}
			d.wait(t, in.TurnID)
		})
		if taken != 3 || commits != 2 {
			t.Errorf("the actor took %d functions and made %d commits, want 3 and 2", taken, commits)
		}
	})
}
