package engine_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// TestUnreadableAnswers makes the stored answers unreadable. A call that needs them does not run, and waits until they can be read.
func TestUnreadableAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran notes
		run := toolFunc{name: "run", run: func(context.Context, tool.Invocation) (tool.Result, error) {
			ran.add("x")
			return tool.Result{Output: protocol.Succeed("ran")}, nil
		}}
		d := start(t, setup{model: replies(calls("run"), scripted.Reply{Text: "done"}), tools: []tool.Provider{run}, config: asking})
		id := d.session(t)
		db := must[*sql.DB](t)(sql.Open("sqlite", filepath.Join(d.store.Dir(), "lashd.db")+"?_pragma=busy_timeout(10000)"))
		defer db.Close()
		must[sql.Result](t)(db.Exec("ALTER TABLE approvals RENAME TO lost"))
		turn := d.begin(t, id, "go").TurnID
		synctest.Wait()
		if open := d.asking(t); len(ran.list) != 0 || len(open) != 0 {
			t.Errorf("outside/29 the call ran %d times, asked about are %+v", len(ran.list), open)
		}
		must[sql.Result](t)(db.Exec("ALTER TABLE lost RENAME TO approvals"))
		time.Sleep(time.Minute)
		if len(ran.list) != 0 {
			t.Error("outside/29 the call ran unasked")
		}
		d.interrupt(t, turn)
		d.wait(t, turn)
	})
}

// TestQuestionsOfABatch has two calls that ask a person. Of one that is not made again, only its own question is withdrawn.
func TestQuestionsOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asks := func(name string, replay protocol.Replay) tool.Provider {
			return toolFunc{name: name, contract: protocol.ToolContract{Replay: replay}, run: func(ctx context.Context, c tool.Invocation) (tool.Result, error) {
				a, err := c.Host.Ask(ctx, tool.Question{Prompt: name, Deadline: time.Hour})
				return tool.Result{Output: protocol.Succeed(string(a.Choice))}, err
			}}
		}
		d := start(t, setup{model: replies(calls("safe", "never"), scripted.Reply{Text: "done"}), tools: []tool.Provider{asks("safe", protocol.ReplaySafe), asks("never", protocol.ReplayNever)}})
		id := d.session(t)
		turn := d.begin(t, id, "go").TurnID
		synctest.Wait()
		before := d.asking(t)
		d = d.restart(t, nil)
		must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id}))
		synctest.Wait()
		kept := 0
		for _, q := range d.asking(t) {
			if q.Kind == protocol.DecisionQuestion && slices.ContainsFunc(before, func(b protocol.Decision) bool { return b.ID == q.ID && b.Prompt == "safe" }) {
				kept++
			}
		}
		if len(before) != 2 || kept != 1 {
			t.Errorf("outside/29 before, open were %+v; now %+v", before, d.asking(t))
		}
		d.interrupt(t, turn)
		d.wait(t, turn)
	})
}

// TestApprovalOfAnotherCall restarts the daemon while a call is asked about. If the call has changed, lashd asks again.
func TestApprovalOfAnotherCall(t *testing.T) {
	dir := t.TempDir()
	lead := func(to string) {
		_ = os.Remove(filepath.Join(dir, "link"))
		ok(t, os.Symlink(to, filepath.Join(dir, "link")))
	}
	var args string
	changing := hooked{"changing", func(r *plugin.Registrar) {
		r.ToolCalls().Before(func(context.Context, *plugin.ToolCallContext) ([]plugin.Directive, error) {
			return []plugin.Directive{plugin.ReplaceArgs(json.RawMessage(args))}, nil
		})
	}}
	for name, c := range map[string]struct {
		change func()
		same   bool
	}{
		"as it was":                 {func() {}, true},
		"with other arguments":      {func() { args = `{"path":"link/x","n":2}` }, false},
		"with a path that moved on": {func() { lead("b") }, false},
	} {
		t.Run("outside/29 "+name, func(t *testing.T) {
			args = `{"path":"link/x","n":1}`
			lead("a")
			run := says("run", "ran")
			run.schema = `{"type":"object"}`
			d := start(t, setup{cwd: dir, model: replies(calls("run"), scripted.Reply{Text: "done"}), tools: []tool.Provider{run}, plugins: plugins(changing), config: asking})
			id := d.session(t)
			o := d.observe(t, id)
			turn := d.begin(t, id, "go").TurnID
			first := o.typed(protocol.EventDecisionOpened).Decision
			c.change()
			d = d.restart(t, nil)
			o = d.observe(t, id, 0)
			if !c.same {
				o.until(func(e protocol.Event) bool {
					return e.Type == protocol.EventDecisionOpened && e.Decision.ID != first.ID
				})
			}
			p := &protocol.DecisionRespondParams{DecisionID: first.ID, Choice: protocol.ChooseAllowOnce, ArgsHash: first.ArgsHash}
			_, _ = d.Decisions.Respond(t.Context(), "cli_a", p)
			if !c.same {
				d.interrupt(t, turn)
			}
			if got := d.wait(t, turn).ToolCalls[0].Output; (got.Status == protocol.OutputSuccess) != c.same {
				t.Errorf("answered for the first call, it came to %+v", got)
			}
		})
	}
}

// TestIntentsOfTasksThatEnd has calls signal and tell tasks that do no work, or are over, and want something after their turn was cancelled.
func TestIntentsOfTasksThatEnd(t *testing.T) {
	begin := watch("tsk_w")
	begin.StartTask.Spec.Signals = []protocol.TaskSignalType{{Name: "poke"}}
	poke := protocol.ToolIntent{SignalTask: &protocol.SignalTaskIntent{TaskID: "tsk_w", Name: "poke"}}
	cancel := protocol.ToolIntent{CancelTask: &protocol.CancelTaskIntent{TaskID: "tsk_w", Reason: "enough"}}
	late := toolFunc{name: "late", run: func(ctx context.Context, _ tool.Invocation) (tool.Result, error) {
		<-ctx.Done()
		return tool.Result{Output: protocol.Succeed("late"), Intents: []protocol.ToolIntent{watch("tsk_late")}}, nil
	}}
	synctest.Test(t, func(t *testing.T) {
		var d *daemon
		var session protocol.SessionID
		end := toolFunc{name: "end", run: func(ctx context.Context, _ tool.Invocation) (tool.Result, error) {
			_, err := d.Tasks.Complete(ctx, "cli_a", &protocol.TaskCompleteParams{
				TaskParams: protocol.TaskParams{SessionID: session, TaskID: "tsk_w"}, Outcome: protocol.TaskOutcome{Kind: protocol.TaskDone},
			})
			return tool.Result{Output: protocol.Succeed("ended"), Intents: []protocol.ToolIntent{tick("tsk_w", `{"n":1}`), cancel, poke}}, err
		}}
		d = start(t, setup{
			model: replies(calls("begin"), calls("poke"), calls("end"), calls("late")),
			tools: []tool.Provider{wanting("begin", begin, poke), wanting("poke", poke), end, late},
		})
		session = d.session(t)
		id := d.begin(t, session, "go").TurnID
		synctest.Wait()
		d.interrupt(t, id)
		var got []protocol.IntentRefusal
		for _, c := range d.wait(t, id).ToolCalls {
			for _, out := range c.Output.Intents {
				got = append(got, out.Refused)
			}
		}
		ended := protocol.IntentTaskEnded
		if want := []protocol.IntentRefusal{"", "", protocol.IntentNotAtWork, ended, ended, ended, protocol.IntentTurnOver}; !slices.Equal(got, want) {
			t.Errorf("outside/29 refused are %q, want %q", got, want)
		}
	})
}

// TestSignalsThatCallsWant has a call start a task, and later ones signal it, one of them in the commit that starts it.
func TestSignalsThatCallsWant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got notes
		hears := func(ctx context.Context, run *plugin.TaskRun) *protocol.TaskOutcome {
			for range 2 {
				select {
				case s := <-run.Signals:
					got.add(string(s.Payload))
				case <-ctx.Done():
				}
			}
			return nil
		}
		spec := handled("hears")
		spec.Signals = []protocol.TaskSignalType{{Name: "poke"}}
		begin := protocol.ToolIntent{StartTask: &protocol.StartTaskIntent{TaskID: "tsk_w", Spec: spec}}
		poke := func(n string) protocol.ToolIntent {
			return protocol.ToolIntent{SignalTask: &protocol.SignalTaskIntent{TaskID: "tsk_w", Name: "poke", Payload: json.RawMessage(n)}}
		}
		d := start(t, setup{
			model: replies(calls("begin"), calls("poke"), scripted.Reply{Text: "done"}), plugins: plugins(handling("p", map[string]plugin.TaskFunc{"hears": hears})),
			tools: []tool.Provider{wanting("begin", begin, poke("1")), wanting("poke", poke("2"))},
		})
		id := d.session(t)
		d.turn(t, id, "go")
		if task := d.ended(t, id, "tsk_w"); task.State != protocol.TaskCompleted || !slices.Equal(got.list, []string{"1", "2"}) {
			t.Errorf("outside/29 it ended as %s, and got %q", task.State, got.list)
		}
	})
}
