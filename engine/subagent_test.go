package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/task"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// delegated is the spec of a subagent: a turn of the n-th child.
func delegated(n int, input string) protocol.TaskSpec {
	return protocol.TaskSpec{Kind: protocol.TaskSubagent, Recovery: protocol.RecoverRerun, Subagent: &protocol.TaskChild{
		SessionID: protocol.SessionID(fmt.Sprintf("ses_child%d", n)), TurnID: protocol.TurnID(fmt.Sprintf("trn_child%d", n)),
		Input: text(input), New: &protocol.SessionNewParams{},
	}}
}

// told is a model that sends the replies when the input contains a text, and otherwise answers ok.
func told(to string, replies ...scripted.Reply) provider.Provider {
	return scripted.New(&scripted.Script{
		Turns:     []scripted.Turn{{Match: &scripted.Match{LastUserContains: to}, Replies: replies}},
		Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "ok", Usage: &protocol.Usage{Input: 1, Output: 1}}}},
	})
}

// holding is a tool whose calls wait until open is closed.
func holding(open chan struct{}) tool.Provider {
	return toolFunc{name: "hold", contract: protocol.ToolContract{Replay: protocol.ReplaySafe}, run: func(ctx context.Context, _ tool.Invocation) (tool.Result, error) {
		select {
		case <-open:
			return tool.Result{Output: protocol.Succeed("opened")}, nil
		case <-ctx.Done():
			return tool.Result{}, context.Cause(ctx)
		}
	}}
}

// states counts a session's tasks by state.
func (d *daemon) states(t *testing.T, id protocol.SessionID) map[protocol.TaskState]int {
	t.Helper()
	synctest.Wait()
	n := map[protocol.TaskState]int{}
	for _, t := range must[*protocol.TaskListResult](t)(d.Tasks.List(t.Context(), &protocol.TaskListParams{SessionID: id})).Data {
		n[t.State]++
	}
	return n
}

func (d *daemon) state(t *testing.T, id protocol.SessionID) protocol.Session {
	t.Helper()
	return must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id})).Session
}

func TestSubagents(t *testing.T) {
	t.Run("runtime/B11 a subagent is a turn of a new child session, and its outcome is that of the turn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, setup{model: told("look", scripted.Reply{Text: " all is well ", Usage: &protocol.Usage{Input: 3, Output: 2}})})
			s := d.session(t)
			d.task(t, s, "tsk_a", delegated(1, "look"))
			got := d.ended(t, s, "tsk_a")
			if got.State != protocol.TaskCompleted || string(got.Outcome.Value) != `"all is well"` {
				t.Errorf("the task ended as %s %+v", got.State, got.Outcome)
			}
			if r := d.state(t, "ses_child1").Relation; r.Kind != protocol.RelationChild || r.Parent != s {
				t.Errorf("the child is %+v", r)
			}
			d.owes(t, "issue/5-5 with a child", s, spent{"subagent", 3, 2, 1})
			if again := d.task(t, s, "tsk_a", delegated(1, "look")); again.State != protocol.TaskCompleted || len(d.allTurns(t, "ses_child1")) != 1 {
				t.Errorf("started again, the task is %s", again.State)
			}
		})
	})
	t.Run("runtime/B11 after a restart the next attempt continues with the same turn of the same child", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			open := make(chan struct{})
			d := start(t, setup{model: told("look", calls("hold"), scripted.Reply{Text: "seen"}), tools: []tool.Provider{holding(open)}})
			s := d.session(t)
			d.task(t, s, "tsk_a", delegated(1, "look"))
			for range 4 { // more often than the limit on attempts of other tasks
				synctest.Wait()
				d = d.restart(t, nil)
			}
			synctest.Wait()
			close(open)
			got := d.ended(t, s, "tsk_a")
			if got.State != protocol.TaskCompleted || string(got.Outcome.Value) != `"seen"` || got.Attempt != 5 {
				t.Errorf("the task ended as %s %+v in attempt %d", got.State, got.Outcome, got.Attempt)
			}
			if turns := d.allTurns(t, "ses_child1"); len(turns) != 1 || turns[0].TurnID != "trn_child1" {
				t.Errorf("the child has the turns %+v", turns)
			}
		})
	})
	t.Run("runtime/B12 eight children of a session work at once, and one that asks a question gives its slot back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			open := make(chan struct{})
			d := start(t, setup{model: told("look", calls("hold"), scripted.Reply{Text: "seen"}), tools: []tool.Provider{holding(open)}})
			s := d.session(t)
			for n := range 9 {
				d.task(t, s, "", delegated(n, "look"))
			}
			if n := d.states(t, s); n[protocol.TaskRunning] != 8 || n[protocol.TaskPending] != 1 {
				t.Errorf("the tasks are %v", n)
			}
			other := d.session(t)
			d.task(t, other, "tsk_b", delegated(100, "say"))
			if got := d.ended(t, other, "tsk_b"); got.State != protocol.TaskCompleted {
				t.Errorf("that of another session is %s", got.State)
			}
			close(open)
			if n := d.states(t, s); n[protocol.TaskCompleted] != 9 {
				t.Errorf("in the end the tasks are %v", n)
			}
		})
	})
	t.Run("runtime/B12 a subagent is idle while a person is asked, and others get its slot", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, setup{model: told("look", calls("look"), scripted.Reply{Text: "seen"}), tools: []tool.Provider{says("look", "fine")}, config: asking})
			s := d.session(t)
			for n := range 9 {
				d.task(t, s, "", delegated(n, "look"))
			}
			if n := d.states(t, s); n[protocol.TaskIdle] != 9 {
				t.Errorf("while they ask the tasks are %v", n)
			}
			for _, asked := range must[*protocol.DecisionListResult](t)(d.Decisions.List(t.Context(), &protocol.DecisionListParams{SessionID: s})).Data {
				d.allows(t, asked)
			}
			if n := d.states(t, s); n[protocol.TaskCompleted] != 9 {
				t.Errorf("in the end the tasks are %v", n)
			}
		})
	})
	t.Run("issue/5-5 cancelling a subagent stops the turn of its child", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, setup{model: told("look", calls("hold")), tools: []tool.Provider{holding(nil)}})
			s := d.session(t)
			d.task(t, s, "tsk_a", delegated(1, "look"))
			synctest.Wait()
			must[*protocol.TaskResult](t)(d.Tasks.Cancel(t.Context(), "cli_a", &protocol.TaskCancelParams{TaskParams: protocol.TaskParams{SessionID: s, TaskID: "tsk_a"}}))
			got := d.ended(t, s, "tsk_a")
			if got.State != protocol.TaskCancelled || got.Outcome.By != "cli_a" {
				t.Errorf("the task ended as %s %+v", got.State, got.Outcome)
			}
			synctest.Wait()
			if turns := d.allTurns(t, "ses_child1"); len(turns) != 1 || turns[0].State != protocol.TurnCancelled {
				t.Errorf("the child has the turns %+v", turns)
			}
		})
	})
	t.Run("issue/5-5 a request to cancel that a crash interrupted stops the turn of the child after the restart", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, setup{model: told("look", calls("hold")), tools: []tool.Provider{holding(nil)}})
			s := d.session(t)
			d.task(t, s, "tsk_a", delegated(1, "look"))
			synctest.Wait()
			again := d.setup
			again.dir = d.store.Dir()
			d.stop()
			wished(t, again.dir, s, "tsk_a")
			d = start(t, again)
			if got := d.ended(t, s, "tsk_a"); got.State != protocol.TaskCancelled || got.Outcome.By != "cli_a" {
				t.Errorf("the task ended as %s %+v", got.State, got.Outcome)
			}
			synctest.Wait()
			if turns := d.allTurns(t, "ses_child1"); len(turns) != 1 || turns[0].State != protocol.TurnCancelled {
				t.Errorf("the child has the turns %+v", turns)
			}
		})
	})
	t.Run("issue/5-5 interrupting the child's turn ends the subagent and records who interrupted it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, setup{model: told("look", calls("hold")), tools: []tool.Provider{holding(nil)}})
			s := d.session(t)
			d.task(t, s, "tsk_a", delegated(1, "look"))
			synctest.Wait()
			d.interrupt(t, "trn_child1")
			if got := d.ended(t, s, "tsk_a"); got.State != protocol.TaskCancelled || got.Outcome.By != "cli_a" {
				t.Errorf("the task ended as %s %+v", got.State, got.Outcome)
			}
		})
	})
}

// wished stores a request to cancel a task after the daemon has stopped.
func wished(t *testing.T, dir string, s protocol.SessionID, id protocol.TaskID) {
	t.Helper()
	store, err := persistence.Open(t.Context(), persistence.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- store.Run(ctx) }()
	before := must[protocol.Task](t)(store.Task(ctx, s, id))
	e := task.Next(&before, protocol.TaskEvent{Kind: protocol.TaskGotCancelRequest, By: "cli_a"}, time.Now().UnixMilli())
	after, _ := task.Apply(before, e)
	must[persistence.Result](t)(store.Commit(ctx, &persistence.Commit{
		Session: s, AtMs: e.AtMs, Tasks: []persistence.TaskChange{{Task: after, Events: []protocol.TaskEvent{e}}},
	}))
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSubagentOutput(t *testing.T) {
	fits := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	for _, c := range []struct {
		name, second string
		state        protocol.TaskState
		code         string
	}{
		{"is requested a second time", "```json\n{\"n\": 1}\n```", protocol.TaskCompleted, ""},
		{"twice fails the subagent", "still not", protocol.TaskFailed, "outputMismatch"},
	} {
		t.Run("runtime/B11 an answer that does not fit the schema "+c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := start(t, setup{model: scripted.New(&scripted.Script{Turns: []scripted.Turn{
					{Match: &scripted.Match{LastUserContains: "does not match the required schema"}, Replies: []scripted.Reply{{Text: c.second}}},
					{Replies: []scripted.Reply{{Text: "one"}}},
				}})})
				s := d.session(t)
				spec := delegated(1, "count")
				spec.Subagent.Output = fits
				d.task(t, s, "tsk_a", spec)
				got := d.ended(t, s, "tsk_a")
				if got.State != c.state || got.Outcome.Code != c.code || c.code == "" && string(got.Outcome.Value) != `{"n":1}` {
					t.Errorf("the task ended as %s %+v", got.State, got.Outcome)
				}
				if turns := d.allTurns(t, "ses_child1"); len(turns) != 2 {
					t.Errorf("the child has %d turns", len(turns))
				}
			})
		})
	}
}

func TestSubagentRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, setup{model: replies()})
		s, other := d.session(t), d.session(t)
		for field, change := range map[string]func(*protocol.TaskSpec){
			"/spec/subagent":                func(s *protocol.TaskSpec) { s.Subagent = nil },
			"/spec/subagent/sessionId":      func(s *protocol.TaskSpec) { s.Subagent.SessionID = "" },
			"/spec/subagent/turnId":         func(s *protocol.TaskSpec) { s.Subagent.TurnID = "" },
			"/spec/subagent/input":          func(s *protocol.TaskSpec) { s.Subagent.Input = nil },
			"/spec/subagent/new/sessionId":  func(s *protocol.TaskSpec) { s.Subagent.New.SessionID = "ses_other" },
			"/spec/subagent/new/mcpServers": func(s *protocol.TaskSpec) { s.Subagent.New.MCPServers = protocol.MCPServers{"x": {}} },
			"/spec/cancel":                  func(s *protocol.TaskSpec) { s.Cancel = protocol.CancelCooperative },
		} {
			spec := delegated(1, "x")
			change(&spec)
			_, err := d.Tasks.Start(t.Context(), "cli_a", &protocol.TaskStartParams{SessionID: s, Spec: spec})
			if wrong, ok := err.(*param.Error); !ok || wrong.Pointer != field {
				t.Errorf("runtime/B11 %s: %v", field, err)
			}
		}
		foreign, wide := delegated(1, "x"), delegated(2, "x")
		foreign.Subagent.SessionID = other
		wide.Subagent.New.Authority = protocol.Authority{Subagent: &protocol.Subagent{Parent: s, Depth: 7, MaxDepth: 5}}
		for what, spec := range map[string]protocol.TaskSpec{"a session of another parent": foreign, "a child below the depth limit": wide} {
			begun := d.task(t, s, "", spec)
			if got := d.ended(t, s, begun.ID); got.State != protocol.TaskFailed || got.Outcome.Code != "notDelegated" {
				t.Errorf("issue/5-5 %s: the task ended as %s %+v", what, got.State, got.Outcome)
			}
		}
		if turns := d.allTurns(t, other); len(turns) != 0 {
			t.Errorf("issue/5-5 the other session has the turns %+v", turns)
		}
	})
}

// TestSubagentQueue shows that the turns of an agent run one after the other, in whatever order its tasks start.
func TestSubagentQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		d := start(t, setup{model: told("look", calls("hold"), scripted.Reply{Text: "seen"}), tools: []tool.Provider{holding(open)}})
		s := d.session(t)
		next := delegated(1, "and now")
		next.Subagent.TurnID, next.Subagent.After = "trn_next", "tsk_a"
		d.task(t, s, "tsk_a", delegated(1, "look"))
		d.task(t, s, "tsk_b", next)
		if n := d.states(t, s); n[protocol.TaskRunning] != 1 || n[protocol.TaskIdle] != 1 {
			t.Errorf("runtime/B12 the tasks are %v", n)
		}
		d = d.restart(t, nil)
		if n := d.states(t, s); n[protocol.TaskRunning] != 1 || n[protocol.TaskIdle] != 1 || len(d.allTurns(t, "ses_child1")) != 1 {
			t.Errorf("runtime/B12 after the restart the tasks are %v", n)
		}
		close(open)
		if got := d.ended(t, s, "tsk_b"); string(got.Outcome.Value) != `"ok"` || d.readTask(t, s, "tsk_a").Task.EndedAtMs > got.EndedAtMs {
			t.Errorf("runtime/B12 the second task ended as %+v", got.Outcome)
		}
		if said := strings.Join(d.history(t, "ses_child1"), " "); strings.Index(said, "look") > strings.Index(said, "and now") {
			t.Errorf("runtime/B12 the child received %s", said)
		}
	})
}

// TestTurnEnd ends turns that started tasks, and checks what happens to the tasks.
func TestTurnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starter := toolFunc{name: "start", run: func(ctx context.Context, call tool.Invocation) (tool.Result, error) {
			for id, end := range map[protocol.TaskID]protocol.TaskParentEnd{"tsk_kept": protocol.ParentEndDetach, "tsk_gone": protocol.ParentEndCancel} {
				spec := protocol.TaskSpec{Kind: protocol.TaskOther, Recovery: protocol.RecoverOwner, ParentEnd: end, Ended: &protocol.TaskWake{}}
				if _, err := plugin.ForTool(call).Tasks.StartTask(ctx, &plugin.TaskStart{TaskID: id, Spec: spec, Work: lasting}); err != nil {
					return tool.Result{}, err
				}
			}
			return tool.Result{Output: protocol.Succeed("started")}, nil
		}}
		d := start(t, setup{model: replies(calls("start"), scripted.Reply{Text: "done"}), tools: []tool.Provider{starter}})
		s := d.session(t)
		d.turn(t, s, "go")
		synctest.Wait()
		d.turn(t, s, "another turn")
		kept, gone := d.readTask(t, s, "tsk_kept"), d.readTask(t, s, "tsk_gone")
		if kept.Task.State != protocol.TaskRunning || eventKinds(kept.Events) != "created started callerDeparted" {
			t.Errorf("runtime/B02 the task to keep is %s after %s", kept.Task.State, eventKinds(kept.Events))
		}
		if gone.Task.State != protocol.TaskCancelled || gone.Task.Outcome.By != "internal:parentEnd" {
			t.Errorf("runtime/B02 the task to cancel is %s %+v", gone.Task.State, gone.Task.Outcome)
		}
		if turns := d.allTurns(t, s); len(turns) != 2 {
			t.Errorf("issue/5-5 a task that ended with its turn woke the session: %d turns", len(turns))
		}
	})
}
