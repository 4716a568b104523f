package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/builtin/batch"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// batched is a reply that makes one call, with the id c1, of the tool batch.
func batched(calls string) scripted.Reply {
	return scripted.Reply{ToolCalls: []scripted.Call{{ID: "c1", Name: "batch", Args: json.RawMessage(`{"calls":[` + calls + `]}`)}}}
}

// inBatch is the setup of a session whose model makes one batch and is then done.
func inBatch(calls string, tools ...tool.Provider) setup {
	return setup{model: replies(batched(calls), scripted.Reply{Text: "done"}), tools: tools, plugins: []plugin.Factory{batch.Factory{}}}
}

// came is what the calls of a batch came to.
func came(t *testing.T, out protocol.ToolOutput) []batch.Result {
	t.Helper()
	var got struct{ Results []batch.Result }
	if err := json.Unmarshal(out.Value, &got); err != nil {
		t.Fatalf("output %+v: %v", out, err)
	}
	return got.Results
}

func short(all []batch.Result) string {
	var list []string
	for _, r := range all {
		list = append(list, strings.Join([]string{fmt.Sprint(r.Index), r.Name, string(r.Status), r.Code, r.Text}, " "))
	}
	return strings.Join(list, "|")
}

func TestBatch(t *testing.T) {
	t.Run("runtime/T13 results are in the order of the calls, and each failed call has its own error", func(t *testing.T) {
		slow := toolFunc{name: "slow", schema: `{"type":"object","properties":{"n":{"type":"integer"}}}`, run: func(context.Context, tool.Invocation) (tool.Result, error) {
			time.Sleep(20 * time.Millisecond)
			return tool.Result{Output: protocol.Succeed("late")}, nil
		}}
		d := start(t, inBatch(`{"name":"slow","args":{"n":1}},{"name":"quick"},{"name":"batch","args":{"calls":[{"name":"quick"}]}},{"name":"none"},{"name":"slow","args":{"n":"x"}}`, slow, says("quick", "early")))
		report := d.turn(t, d.session(t), "go")
		got := short(came(t, report.ToolCalls[0].Output))
		if want := "0 slow success  late|1 quick success  early|2 batch failure batch_nested a batch cannot contain a batch|3 none failure tool_unavailable "; !strings.HasPrefix(got, want) || !strings.Contains(got, "|4 slow failure invalid_tool_args ") {
			t.Errorf("results %s", got)
		}
	})
	t.Run("runtime/T13 a batch makes at most 25 calls", func(t *testing.T) {
		ran := &notes{}
		count := toolFunc{name: "count", contract: protocol.ToolContract{Serial: true}, run: func(_ context.Context, c tool.Invocation) (tool.Result, error) {
			ran.add(string(c.CallID))
			return tool.Result{Output: protocol.Succeed("x")}, nil
		}}
		d := start(t, inBatch(strings.TrimSuffix(strings.Repeat(`{"name":"count"},`, 27), ","), count))
		report := d.turn(t, d.session(t), "go")
		got := came(t, report.ToolCalls[0].Output)
		if len(got) != 27 || got[24].Status != protocol.OutputSuccess || got[25].Code != "batch_too_long" || got[26].Index != 26 || got[26].Code != "batch_too_long" {
			t.Errorf("%d results, the last %+v", len(got), got[24:])
		}
		if len(ran.list) != 25 || ran.list[0] != "c1/0" || ran.list[24] != "c1/24" || len(report.ToolCalls) != 26 {
			t.Errorf("ran %q, %d recorded", ran.list, len(report.ToolCalls))
		}
	})
	t.Run("runtime/T13 each call passes the hooks and the projector, and is recorded with its parent", func(t *testing.T) {
		seen := &notes{}
		guard := hooked{"guard", func(r *plugin.Registrar) {
			r.ToolCalls().Before(func(_ context.Context, c *plugin.ToolCallContext) ([]plugin.Directive, error) {
				seen.add(fmt.Sprintf("before %s %s %s", c.CallID, c.Parent, c.Tool))
				if c.Tool == "rm" {
					return []plugin.Directive{plugin.Abort("policy", "not that")}, nil
				}
				return nil, nil
			})
			r.ToolResults().After(func(_ context.Context, c *plugin.ToolResultContext) ([]plugin.Directive, error) {
				seen.add(fmt.Sprintf("after %s %s", c.CallID, c.Output.Text))
				return []plugin.Directive{plugin.Enqueue(user("after " + c.Tool))}, nil
			})
			r.ToolResults().Projector(func(_ context.Context, c *plugin.ToolResultContext) (protocol.ToolOutput, error) {
				if c.Tool != "batch" {
					c.Output.Text = "seen " + c.Output.Text
				}
				return c.Output, nil
			})
		}}
		s := inBatch(`{"name":"look"},{"name":"rm"}`, says("look", "fine"), says("rm", "gone"))
		s.plugins = append(s.plugins, guard)
		d := start(t, s)
		id := d.session(t)
		report := d.turn(t, id, "go")
		if got := short(came(t, report.ToolCalls[0].Output)); got != "0 look success  seen fine|1 rm failure policy seen not that" {
			t.Errorf("results %s", got)
		}
		if want := []string{"before c1  batch", "before c1/0 c1 look", "before c1/1 c1 rm", "after c1/0 fine", "after c1 "}; !slices.Equal(seen.list, want) {
			t.Errorf("hooks saw %q", seen.list)
		}
		if c := report.ToolCalls; len(c) != 3 || c[1].CallID != "c1/0" || c[1].Parent != "c1" || c[1].Output.Text != "fine" || c[2].Parent != "c1" || c[0].Parent != "" {
			t.Errorf("recorded %+v", c)
		}
		if got := said(d.graph(t, id).Data); !slices.Equal(got, []string{"go", "", "", "after look", "after batch", "ok"}) {
			t.Errorf("history has %q", got)
		}
	})
	t.Run("runtime/T13 a person is asked about each call as if the model had made it", func(t *testing.T) {
		ran := &notes{}
		work := toolFunc{name: "work", run: func(_ context.Context, c tool.Invocation) (tool.Result, error) {
			ran.add(string(c.CallID))
			return tool.Result{Output: protocol.Succeed("worked")}, nil
		}}
		s := inBatch(`{"name":"work"},{"name":"work"}`, work)
		s.config = asking
		d := start(t, s)
		id := d.session(t)
		o := d.observe(t, id)
		turn := d.begin(t, id, "go").TurnID
		first := o.typed(protocol.EventDecisionOpened).Decision
		if first.Call.CallID == "c1" { // about the batch itself
			d.answer(t, first, protocol.ChooseAllowOnce)
			first = o.typed(protocol.EventDecisionOpened).Decision
		}
		second := o.typed(protocol.EventDecisionOpened).Decision
		if first.Call.CallID != "c1/0" || first.Call.Parent != "c1" || second.Call.CallID != "c1/1" {
			t.Errorf("asked about %+v and %+v", first.Call, second.Call)
		}
		d.answer(t, second, protocol.ChooseReject)
		d.answer(t, first, protocol.ChooseAllowOnce)
		got := came(t, d.wait(t, turn).ToolCalls[0].Output)
		if !slices.Equal(ran.list, []string{"c1/0"}) || got[0].Text != "worked" || got[1].Code != "denied" {
			t.Errorf("ran %q, results %+v", ran.list, got)
		}
	})
	t.Run("runtime/T13 no call of the model has the id of one that a batch makes", func(t *testing.T) {
		s := inBatch("", says("look", "fine"), says("rm", "gone"))
		both := batched(`{"name":"look"}`)
		both.ToolCalls = append(both.ToolCalls, scripted.Call{ID: "c1/0", Name: "rm"})
		s.model = replies(both, scripted.Reply{Text: "done"})
		d := start(t, s)
		tools := map[protocol.CallID]string{}
		for _, c := range d.turn(t, d.session(t), "go").ToolCalls {
			if other := tools[c.CallID]; other != "" {
				t.Errorf("%s is the id of a call of %s and of one of %s", c.CallID, other, c.Name)
			}
			tools[c.CallID] = c.Name
		}
	})
	t.Run("runtime/T13 control requests of calls count, and a batch of failures is no progress", func(t *testing.T) {
		quit := toolFunc{name: "quit", run: func(context.Context, tool.Invocation) (tool.Result, error) {
			return tool.Result{Output: protocol.Succeed("bye"), Control: &protocol.ToolControl{Kind: protocol.ControlFinish, Value: json.RawMessage(`7`)}}, nil
		}}
		d := start(t, inBatch(`{"name":"quit"}`, quit))
		if report := d.turn(t, d.session(t), "go"); report.Outcome.Kind != protocol.OutcomeToolValue || string(report.Outcome.Value) != `7` {
			t.Errorf("outcome %+v", report.Outcome)
		}
		s := inBatch(`{"name":"none"}`)
		s.model = scripted.New(&scripted.Script{Otherwise: &scripted.Turn{Replies: slices.Repeat([]scripted.Reply{batched(`{"name":"none"}`)}, 30)}})
		d = start(t, s)
		if report := d.turn(t, d.session(t), "go"); report.Outcome.Kind != protocol.OutcomeMaxTurns || report.Issues[0].Code != "no_progress_budget" {
			t.Errorf("outcome %+v, issues %+v", report.Outcome, report.Issues)
		}
	})
	t.Run("runtime/T13 a direct batch makes its calls, once for each key", func(t *testing.T) {
		ran := &notes{}
		work := toolFunc{name: "work", run: func(_ context.Context, c tool.Invocation) (tool.Result, error) {
			ran.add("x")
			return tool.Result{Output: protocol.Succeed("worked")}, nil
		}}
		d := start(t, inBatch("", work))
		p := &protocol.ToolCallParams{SessionID: d.session(t), Name: "batch", Args: json.RawMessage(`{"calls":[{"name":"work"},{"name":"none"}]}`)}
		p.IdempotencyKey = "once"
		for range 2 {
			res := must[*protocol.ToolCallResult](t)(d.Tools.Call(t.Context(), p))
			if got := came(t, res.Output); got[0].Text != "worked" || got[1].Code != "tool_unavailable" || len(ran.list) != 1 {
				t.Errorf("results %+v, ran %d times", got, len(ran.list))
			}
		}
	})
}

// answer answers a decision.
func (d *daemon) answer(t *testing.T, asked *protocol.Decision, choice protocol.DecisionChoice) {
	t.Helper()
	must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", &protocol.DecisionRespondParams{DecisionID: asked.ID, Choice: choice, ArgsHash: asked.ArgsHash}))
}

func TestCaller(t *testing.T) {
	// caller is a tool that makes calls in its own way.
	caller := func(serial bool, run func(context.Context, tool.Host) error) toolFunc {
		return toolFunc{name: "caller", contract: protocol.ToolContract{Serial: serial, Replay: protocol.ReplaySafe}, run: func(ctx context.Context, c tool.Invocation) (tool.Result, error) {
			if err := run(ctx, c.Host); err != nil {
				return tool.Result{}, err
			}
			return tool.Result{Output: protocol.Succeed("called")}, nil
		}}
	}
	turn := func(t *testing.T, tools ...tool.Provider) (*daemon, *protocol.TurnReport) {
		d := start(t, setup{model: replies(calls("caller"), scripted.Reply{Text: "done"}), tools: tools})
		return d, d.turn(t, d.session(t), "go")
	}
	t.Run("runtime/T13 only a serial tool can make calls, and its calls cannot make more", func(t *testing.T) {
		_, report := turn(t, caller(false, func(ctx context.Context, h tool.Host) error {
			_, err := h.Call(ctx, []tool.Request{{Name: "x"}})
			return err
		}))
		if got := report.ToolCalls[0].Output; got.Text != tool.ErrNotSerial.Error() {
			t.Errorf("output %+v", got)
		}
		_, report = turn(t, caller(true, func(ctx context.Context, h tool.Host) error {
			out, err := h.Call(ctx, []tool.Request{{Name: "caller"}})
			if err == nil && out[0].Text != tool.ErrNestedCall.Error() {
				err = fmt.Errorf("a nested call came to %+v", out[0])
			}
			return err
		}))
		if got := report.ToolCalls[0].Output; got.Text != "called" {
			t.Errorf("output %+v", got)
		}
	})
	t.Run("runtime/T13 a finished call cannot make calls", func(t *testing.T) {
		var host tool.Host
		ran := &notes{}
		d, _ := turn(t, caller(true, func(_ context.Context, h tool.Host) error { host = h; return nil }), toolFunc{name: "x", run: func(context.Context, tool.Invocation) (tool.Result, error) {
			ran.add("x")
			return tool.Result{}, nil
		}})
		if _, err := host.Call(t.Context(), []tool.Request{{Name: "x"}}); !errors.Is(err, tool.ErrCallOver) || len(ran.list) != 0 {
			t.Errorf("error %v, ran %q", err, ran.list)
		}
		_ = d
	})
	t.Run("runtime/T13 the next attempt neither repeats a finished call nor replaces it with another", func(t *testing.T) {
		ran := &notes{}
		work := toolFunc{name: "work", run: func(_ context.Context, c tool.Invocation) (tool.Result, error) {
			ran.add(string(c.Args))
			return tool.Result{Output: protocol.Succeed("worked")}, nil
		}}
		tries := 0
		again := toolFunc{name: "caller", contract: protocol.ToolContract{Serial: true, Replay: protocol.ReplaySafe, Retry: &protocol.ToolRetry{Attempts: 3}}}
		again.run = func(ctx context.Context, c tool.Invocation) (tool.Result, error) {
			tries++
			args := []string{`1`, `1`, `2`}[tries-1]
			if _, err := c.Host.Call(ctx, []tool.Request{{Name: "work", Args: json.RawMessage(`{"n":` + args + `}`)}}); err != nil {
				return tool.Result{}, err
			}
			out := protocol.Fail(protocol.FailIO, "io", "again", protocol.FromTool)
			out.Failure.Retry = true
			return tool.Result{Output: out}, nil
		}
		_, report := turn(t, again, work)
		if !slices.Equal(ran.list, []string{`{"n":1}`}) || !strings.Contains(report.ToolCalls[0].Output.Text, "does not match the journal") || len(report.ToolCalls) != 2 {
			t.Errorf("ran %q, recorded %+v", ran.list, report.ToolCalls)
		}
	})
	t.Run("runtime/T13 a cancelled batch ends, and each of its calls has a result", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := inBatch(`{"name":"work"},{"name":"quick"}`, obedient("work", 0), says("quick", "fine"))
			d := start(t, s)
			turn := d.begin(t, d.session(t), "go").TurnID
			synctest.Wait()
			d.interrupt(t, turn)
			report := d.wait(t, turn)
			if report.State != protocol.TurnCancelled || len(report.ToolCalls) != 3 || report.ToolCalls[1].Output.Text != "stopped" || report.ToolCalls[2].Output.Text != "fine" {
				t.Errorf("state %s, recorded %+v", report.State, report.ToolCalls)
			}
		})
	})
}

func TestBatchStopped(t *testing.T) {
	t.Run("runtime/T13 results from before the daemon stopped are kept, and started calls do not run again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ran := &notes{}
			work := toolFunc{name: "work", run: func(_ context.Context, c tool.Invocation) (tool.Result, error) {
				ran.add("work")
				return tool.Result{Output: protocol.Succeed("worked")}, nil
			}}
			deaf := toolFunc{name: "deaf", run: func(context.Context, tool.Invocation) (tool.Result, error) {
				ran.add("deaf")
				time.Sleep(10 * time.Second)
				return tool.Result{Output: protocol.Succeed("too late")}, nil
			}}
			s := inBatch(`{"name":"work"},{"name":"deaf"}`, work, deaf)
			s.config = soon
			d := start(t, s)
			turn := d.begin(t, d.session(t), "go").TurnID
			synctest.Wait()
			d = d.restart(t, nil)
			report := d.wait(t, turn)
			got := came(t, report.ToolCalls[0].Output)
			slices.Sort(ran.list)
			if !slices.Equal(ran.list, []string{"deaf", "work"}) || got[0].Text != "worked" || got[1].Status != protocol.OutputUnknown || report.State != protocol.TurnCompleted {
				t.Errorf("ran %q, results %+v, state %s", ran.list, got, report.State)
			}
		})
	})
}

func TestKilledBatch(t *testing.T) {
	t.Run("runtime/T13 runtime/P11 killed after one call of a batch returned and another started", func(t *testing.T) {
		dir := t.TempDir()
		kill(t, dir, innerStarted)
		s := crashSetup(dir, innerStarted, nil)
		s.dir = filepath.Join(dir, "store")
		d := start(t, s)
		turns := must[*protocol.TurnListResult](t)(d.Turns.List(t.Context(), &protocol.TurnListParams{SessionID: victimSession})).Data
		report := d.wait(t, turns[0].TurnID)
		got := came(t, report.ToolCalls[0].Output)
		if got[0].Text != "once" || got[1].Text != "again" || report.Outcome.Text != "done" {
			t.Errorf("results %+v, outcome %+v", got, report.Outcome)
		}
		if never, safe := counted(dir, "never"), counted(dir, "safe-c1-1"); never != 1 || safe != 2 {
			t.Errorf("the call that must not be repeated ran %d times, the other %d", never, safe)
		}
	})
}
