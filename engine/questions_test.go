package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/engine/trace"
	"lashd/rpc/protocol"
)

// TestTraceOfQuestions checks that the trace records a call's question and the answer.
func TestTraceOfQuestions(t *testing.T) {
	keep, read := traced(t)
	var ran notes
	d := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{asker(protocol.ReplayNever, &ran, 2)}, config: keep})
	id := d.session(t)
	o := d.observe(t, id)
	turn := d.begin(t, id, "go").TurnID
	var asked []protocol.DecisionID
	for range 2 {
		q := o.typed(protocol.EventDecisionOpened).Decision
		asked = append(asked, q.ID)
		ok(t, d.replies(t, q.ID, protocol.ChooseAnswer, `{"n":1}`))
	}
	d.wait(t, turn)
	records, _ := read()
	found := kinds(records)
	for kind, choice := range map[trace.Kind]string{trace.WaitParked: "", trace.WaitResolved: "answer"} {
		var got []protocol.DecisionID
		for _, r := range found[kind] {
			var body struct {
				DecisionID           protocol.DecisionID
				Kind, CallID, Choice string
			}
			ok(t, json.Unmarshal(r.Body, &body))
			if got = append(got, body.DecisionID); body.Kind != "question" || body.CallID != "c1" || body.Choice != choice {
				t.Errorf("outside/29 the record is %s", r.Body)
			}
		}
		if !slices.Equal(got, asked) {
			t.Errorf("outside/29 %s has %q, want %q", kind, got, asked)
		}
	}
}

// questionOf returns the question of a call of a turn.
func (d *daemon) questionOf(t *testing.T, turn protocol.TurnID) protocol.DecisionID {
	t.Helper()
	open := d.asking(t)
	i := slices.IndexFunc(open, func(q protocol.Decision) bool { return q.TurnID == turn && q.Kind == protocol.DecisionQuestion })
	return open[i].ID
}

// TestQuestionAfterLaxerSettings restarts the daemon during an approval, with settings that allow the call. The call still waits for its answer.
func TestQuestionAfterLaxerSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wants := hooked{"wants", func(r *plugin.Registrar) {
			r.ToolCalls().Before(func(context.Context, *plugin.ToolCallContext) ([]plugin.Directive, error) {
				return []plugin.Directive{{Kind: plugin.RequireApproval, Approval: &plugin.Approval{Reason: "because"}}}, nil
			})
		}}
		d := start(t, setup{model: obeying("run"), tools: []tool.Provider{says("run", "ran")}, plugins: plugins(wants)})
		id := d.session(t)
		turn := d.begin(t, id, "run").TurnID
		synctest.Wait()
		before := d.asking(t)
		d = d.restart(t, func(s *setup) { s.plugins = nil })
		must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id}))
		synctest.Wait()
		after := d.asking(t)
		if len(before) != 1 || len(after) != 1 || after[0].ID != before[0].ID {
			t.Fatalf("outside/29 open were %+v, and are %+v", before, after)
		}
		ok(t, d.replies(t, after[0].ID, protocol.ChooseReject, ""))
		if got := cameTo(t, d.wait(t, turn)); got != "denied" {
			t.Errorf("outside/29 rejected, the call came to %q", got)
		}
	})
}

// TestAbandonedQuestion restarts the daemon after a call abandoned one question and asked another. The next attempt asks both.
func TestAbandonedQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asks := toolFunc{name: "asks", contract: protocol.ToolContract{Replay: protocol.ReplaySafe}, run: func(ctx context.Context, c tool.Invocation) (tool.Result, error) {
			short, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			a, err := c.Host.Ask(short, tool.Question{Prompt: "first", Deadline: time.Hour})
			if err != nil {
				a, err = c.Host.Ask(ctx, tool.Question{Prompt: "second", Deadline: time.Hour})
			}
			return tool.Result{Output: protocol.Succeed(string(a.Choice))}, err
		}}
		d := start(t, setup{model: replies(calls("asks"), scripted.Reply{Text: "done"}), tools: []tool.Provider{asks}})
		id := d.session(t)
		turn := d.begin(t, id, "go").TurnID
		prompts := func(want ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for _, q := range d.asking(t) {
				got = append(got, q.Prompt)
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("outside/29 asked are %q, want %q", got, want)
			}
		}
		prompts("first")
		time.Sleep(2 * time.Minute)
		prompts("second")
		d = d.restart(t, nil)
		must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id}))
		prompts("first", "second")
		d.interrupt(t, turn)
		d.wait(t, turn)
	})
}

// TestInvalidQuestions asks with an invalid form, two questions at once, and after the call has ended.
func TestInvalidQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var malformed, busy error
		over := make(chan error, 1)
		asks := toolFunc{name: "asks", run: func(ctx context.Context, c tool.Invocation) (tool.Result, error) {
			_, malformed = c.Host.Ask(ctx, tool.Question{Prompt: "x", Form: []byte(`{"type":1}`)})
			first := make(chan struct{})
			go func() {
				defer close(first)
				_, _ = c.Host.Ask(ctx, tool.Question{Prompt: "x", Deadline: time.Minute})
			}()
			synctest.Wait()
			_, busy = c.Host.Ask(ctx, tool.Question{Prompt: "x"})
			<-first
			go func() {
				time.Sleep(time.Hour)
				_, err := c.Host.Ask(context.WithoutCancel(ctx), tool.Question{Prompt: "x"})
				over <- err
			}()
			return tool.Result{Output: protocol.Succeed("")}, nil
		}}
		d := start(t, setup{model: replies(calls("asks"), scripted.Reply{Text: "done"}), tools: []tool.Provider{asks}})
		d.turn(t, d.session(t), "go")
		if err := <-over; malformed == nil || !errors.Is(busy, tool.ErrCallBusy) || !errors.Is(err, tool.ErrCallOver) {
			t.Errorf("outside/29 it got %v, %v and %v", malformed, busy, err)
		}
	})
}

// TestOrderOfQuestions ends a turn with many open approvals. They are withdrawn in the order in which they were opened, and no call runs.
func TestOrderOfQuestions(t *testing.T) {
	var ran notes
	run := toolFunc{name: "run", run: func(context.Context, tool.Invocation) (tool.Result, error) {
		ran.add("x")
		return tool.Result{Output: protocol.Succeed("ran")}, nil
	}}
	d := start(t, setup{model: replies(calls(slices.Repeat([]string{"run"}, 12)...)), tools: []tool.Provider{run}, config: asking})
	id := d.session(t)
	o := d.observe(t, id)
	turn := d.begin(t, id, "go").TurnID
	ids := func(kind protocol.EventType) (all []protocol.DecisionID) {
		for range 12 {
			all = append(all, o.typed(kind).Decision.ID)
		}
		return all
	}
	opened := ids(protocol.EventDecisionOpened)
	d.interrupt(t, turn)
	if got := ids(protocol.EventDecisionResolved); !slices.Equal(got, opened) {
		t.Errorf("outside/29 opened were %q, withdrawn %q", opened, got)
	}
	if d.wait(t, turn); len(ran.list) != 0 {
		t.Errorf("outside/29 %d calls ran", len(ran.list))
	}
}

// TestQuestionAboutAProtectedFile expects an approval for a change of a file that can run code later, although all calls are allowed.
func TestQuestionAboutAProtectedFile(t *testing.T) {
	edit := says("edit", "changed")
	edit.kind, edit.schema = protocol.ToolKindEdit, `{"type":"object"}`
	reply := scripted.Reply{ToolCalls: []scripted.Call{{ID: "c1", Name: "edit", Args: json.RawMessage(`{"path":".envrc"}`)}}}
	d := start(t, setup{model: replies(reply), tools: []tool.Provider{edit}})
	id := d.session(t)
	o := d.observe(t, id)
	turn := d.begin(t, id, "go").TurnID
	q := o.typed(protocol.EventDecisionOpened).Decision
	want := []protocol.DecisionChoice{protocol.ChooseAllowOnce, protocol.ChooseReject}
	if !slices.Equal(q.Choices, want) || q.Default != protocol.ChooseReject || !strings.Contains(q.Prompt, "can run code later, so lashd asks each time") {
		t.Errorf("outside/29 asked is %+v", q)
	}
	d.interrupt(t, turn)
	d.wait(t, turn)
}
