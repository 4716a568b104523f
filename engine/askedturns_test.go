package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"lashd/engine/authority"
	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// asksForAll is a daemon with a model that obeys, a session of a person, and what a plugin of it may ask for.
func (s setup) asksForAll(t *testing.T) (*daemon, protocol.SessionID, plugin.Capabilities) {
	t.Helper()
	s.cwd, s.plugins = t.TempDir(), append(s.plugins, handling("p", nil))
	d := start(t, s)
	id := d.session(t)
	return d, id, d.host(t, id)
}

func TestTurnsOfRequesters(t *testing.T) {
	run := says("run", "ran")
	t.Run("outside/1 input from a sandboxed plugin limits the rest of a running turn", func(t *testing.T) {
		gate := newGate("hold")
		d, id, host := setup{model: obeying("hold", "run"), tools: []tool.Provider{run, gate}}.asksForAll(t)
		child := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Relation: protocol.Relation{Kind: protocol.RelationChild, Parent: id}})).SessionID
		turn := d.begin(t, child, "hold").TurnID
		<-gate.called
		must[protocol.InputID](t)(host.Lifecycle.InjectTurnInput(authority.FromSandbox(t.Context()), &protocol.TurnSteerParams{TurnID: turn, Input: text("run")}))
		close(gate.open)
		d.asksAbout(t, "after it", child, turn, "run")
	})
	t.Run("outside/1 the limit stays when the turn continues in another frame", func(t *testing.T) {
		once := func(n int) (*protocol.FrameSwitch, error) {
			if n > 1 {
				return nil, nil
			}
			return leave("k", "run"), nil
		}
		d, id, _ := setup{model: obeying("run"), tools: []tool.Provider{run}, driver: scheme{callbacks: (&leaver{asks: once}).callbacks}}.asksForAll(t)
		first := d.asksFor(t, id, "go")
		next := d.wait(t, first).FollowedBy
		if next == "" {
			t.Fatal("there is no other turn")
		}
		d.asksAbout(t, "in the other frame", id, next, "run")
	})
	t.Run("outside/1 late input gets its own turn, and does not limit a person's queued turn", func(t *testing.T) {
		gate := newGate("hold")
		d, id, host := setup{model: obeying("hold", "run"), tools: []tool.Provider{run, gate}}.asksForAll(t)
		child := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Relation: protocol.Relation{Kind: protocol.RelationChild, Parent: id}})).SessionID
		first, queued := d.begin(t, child, "hold").TurnID, d.begin(t, child, "run").TurnID
		<-gate.called
		must[protocol.InputID](t)(host.Lifecycle.InjectTurnInput(authority.FromSandbox(t.Context()), &protocol.TurnSteerParams{TurnID: first, Input: text("run")}))
		d.interrupt(t, first)
		d.asksAbout(t, "the turn of the person", child, queued)
		all := d.allTurns(t, child)
		d.asksAbout(t, "the turn of the plugin", child, all[len(all)-1].TurnID, "run")
	})
	t.Run("outside/1 input queued by an operation of a sandboxed plugin is limited to the sandbox", func(t *testing.T) {
		queues := hooked{"queues", func(r *plugin.Registrar) {
			r.Operations().Command(protocol.OperationInfo{Name: "queue"}, func(context.Context, *plugin.OperationCall) (*plugin.OperationResult, error) {
				return &plugin.OperationResult{Queue: []plugin.QueueTurn{{Input: text("run")}}}, nil
			})
		}}
		for name, c := range map[string]struct {
			by   plugin.Factory
			want []string
		}{"in a sandbox": {boxed{queues}, []string{"run"}}, "in none": {foreign{queues}, nil}} {
			d, id, _ := setup{model: obeying("run"), tools: []tool.Provider{run}, plugins: []plugin.Factory{c.by}}.asksForAll(t)
			r := must[*protocol.OperationReceipt](t)(d.Operations.Command(t.Context(), &protocol.OperationParams{SessionID: id, Name: "queue", Args: json.RawMessage(`{}`)}))
			d.asksAbout(t, name, id, r.Inputs[0].TurnID, c.want...)
		}
	})
	t.Run("outside/1 earlier answers in the session do not cover later requests of another session", func(t *testing.T) {
		d, id, host := asks(t, &protocol.ApprovalConfig{Mode: protocol.ApproveAsk})
		free := d.session(t)
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: free, Approval: &protocol.ApprovalConfig{Mode: protocol.ApproveAsk}}))
		d.runAllowed(t, free, protocol.ChooseAllowSession)
		d.asksAbout(t, "the turn of the person", free, d.begin(t, free, "run").TurnID)
		turn := must[protocol.TurnID](t)(host.Lifecycle.StartTurn(t.Context(), &plugin.TurnRequest{TurnID: "trn_1", SessionID: free, Input: text("run")}))
		d.asksAbout(t, "the turn that "+string(id)+" asks for", free, turn, "run")
	})
	t.Run("outside/1 an answer for one workspace does not cover requests from another, unless it was given in the session", func(t *testing.T) {
		d, id, host := asks(t, &protocol.ApprovalConfig{Mode: protocol.ApproveAsk})
		below := &protocol.SessionNewParams{Cwd: filepath.Join(d.state(t, id).Cwd, "below"), Approval: &protocol.ApprovalConfig{Mode: protocol.ApproveAsk}}
		if err := os.Mkdir(below.Cwd, 0o700); err != nil {
			t.Fatal(err)
		}
		of := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), below)).SessionID
		made := must[*protocol.SessionNewResult](t)(host.Lifecycle.CreateSession(t.Context(), below)).SessionID
		d.runAllowed(t, of, protocol.ChooseAllowAlways)
		d.asksAbout(t, "the session of the person", of, d.begin(t, of, "run").TurnID)
		d.asksAbout(t, "the session of the asker", made, d.begin(t, made, "run").TurnID, "run")
		d.runAllowed(t, made, protocol.ChooseAllowAlways)
		d.asksAbout(t, "the session of the asker, in which it was allowed", made, d.begin(t, made, "run").TurnID)
	})
}

// runAllowed runs a turn in which the tool run is called, and answers the question about it.
func (d *daemon) runAllowed(t *testing.T, id protocol.SessionID, choice protocol.DecisionChoice) {
	t.Helper()
	o := d.observe(t, id)
	turn := d.begin(t, id, "run").TurnID
	q := o.typed(protocol.EventDecisionOpened).Decision
	must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", &protocol.DecisionRespondParams{DecisionID: q.ID, Choice: choice, ArgsHash: q.ArgsHash}))
	d.wait(t, turn)
}

func TestWakesOfRequesters(t *testing.T) {
	run := says("run", "ran")
	t.Run("outside/1 wakes with different limits do not share a turn", func(t *testing.T) {
		gate := newGate("hold")
		d, id, host := setup{model: obeying("hold", "run"), tools: []tool.Provider{run, gate}}.asksForAll(t)
		busy := d.begin(t, id, "hold").TurnID
		<-gate.called
		spec := protocol.TaskSpec{Kind: protocol.TaskOther, Recovery: protocol.RecoverExternal, Ended: &protocol.TaskWake{Text: "run", Merge: "m"}}
		d.task(t, id, "tsk_person", spec)
		must[*protocol.TaskResult](t)(host.Tasks.StartTask(authority.FromSandbox(t.Context()), &plugin.TaskStart{TaskID: "tsk_plugin", Spec: spec}))
		for _, task := range []protocol.TaskID{"tsk_person", "tsk_plugin"} {
			must[*protocol.TaskResult](t)(d.Tasks.Complete(t.Context(), "cli_a", &protocol.TaskCompleteParams{
				TaskParams: protocol.TaskParams{SessionID: id, TaskID: task}, Outcome: protocol.TaskOutcome{Kind: protocol.TaskDone},
			}))
		}
		close(gate.open)
		d.wait(t, busy)
		all := d.allTurns(t, id)
		if len(all) != 3 {
			t.Fatalf("there are %d turns", len(all))
		}
		d.asksAbout(t, "the turn of the person's task", id, all[1].TurnID)
		d.asksAbout(t, "the turn of the plugin's task", id, all[2].TurnID, "run")
	})
	t.Run("outside/1 a monitor wakes its session with the limits of its starter", func(t *testing.T) {
		monitor := toolFunc{name: "observe", run: func(ctx context.Context, c tool.Invocation) (tool.Result, error) {
			_, err := plugin.ForTool(c).Monitors.Start(ctx, &protocol.MonitorStartParams{Spec: protocol.MonitorSpec{ID: "m", Command: "echo run"}})
			return tool.Result{Output: protocol.Succeed("started")}, err
		}}
		d, id, host := setup{model: obeying("observe", "run"), tools: []tool.Provider{run, monitor}}.asksForAll(t)
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Approval: denying}))
		free := d.session(t)
		o := d.observe(t, free)
		d.wait(t, must[protocol.TurnID](t)(host.Lifecycle.StartTurn(t.Context(), &plugin.TurnRequest{TurnID: "trn_1", SessionID: free, Input: text("observe")})))
		woken := o.until(func(e protocol.Event) bool { return e.Type == protocol.EventTurnAccepted && e.TurnID != "trn_1" }).TurnID
		if got := cameTo(t, d.wait(t, woken)); got != "denied" {
			t.Errorf("the call came to %q", got)
		}
	})
	t.Run("outside/1 a session requested by a sandboxed plugin starts no declared monitors", func(t *testing.T) {
		spec := protocol.MonitorSpec{ID: "m", Command: "sleep 600", ArmOn: protocol.ArmSession}
		d := start(t, setup{model: replies(), plugins: []plugin.Factory{declaring("p", spec)}})
		for _, held := range []bool{false, true} {
			w := d.watched(t)
			w.id = must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{
				Cwd: w.dir, Authority: protocol.Authority{Ceiling: &protocol.Ceiling{Sandboxed: held}},
			})).SessionID
			if got := w.monitor("p:m"); (got.State == protocol.MonitorRunning) == held {
				t.Errorf("in a sandbox %t: it is %s", held, got.State)
			}
		}
	})
	t.Run("outside/1 a task's wake calls no tools after the starting session was deleted", func(t *testing.T) {
		d, id, _ := asks(t, allowing)
		host, free := d.host(t, id), d.session(t)
		spec := protocol.TaskSpec{Kind: protocol.TaskOther, Recovery: protocol.RecoverExternal, Ended: &protocol.TaskWake{Text: "run"}}
		must[*protocol.TaskResult](t)(host.Tasks.StartTask(t.Context(), &plugin.TaskStart{SessionID: free, TaskID: "tsk_1", Spec: spec}))
		must[*protocol.SeqResult](t)(d.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: id}))
		o := d.observe(t, free)
		must[*protocol.TaskResult](t)(d.Tasks.Complete(t.Context(), "cli_a", &protocol.TaskCompleteParams{
			TaskParams: protocol.TaskParams{SessionID: free, TaskID: "tsk_1"}, Outcome: protocol.TaskOutcome{Kind: protocol.TaskDone},
		}))
		if got := cameTo(t, d.wait(t, o.typed(protocol.EventTurnAccepted).TurnID)); got != "denied" {
			t.Errorf("the call came to %q", got)
		}
	})
	t.Run("outside/1 a person's trigger wakes a session within its ceiling, and creates sessions without one", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, id, host := setup{model: obeying("run"), tools: []tool.Provider{run}}.asksForAll(t)
			made := must[*protocol.SessionNewResult](t)(host.Lifecycle.CreateSession(authority.FromSandbox(t.Context()), &protocol.SessionNewParams{})).SessionID
			for _, trigger := range []protocol.Trigger{d.trigger(t, "wakes", manual(), wakes(made, "run")), d.trigger(t, "begins", manual(), begins(d.state(t, id).Cwd, "run"))} {
				d.emit(t, trigger.Key, `{}`)
				must[*protocol.TriggerResult](t)(d.Triggers.Update(t.Context(), &protocol.TriggerUpdateParams{Key: trigger.Key, Enabled: new(false)}))
				synctest.Wait()
				to, want := d.occurrences(t, trigger.ID)[0].Deliveries[0], []string(nil)
				if to.SessionID == made {
					want = []string{"run"}
				}
				d.asksAbout(t, "the trigger that "+trigger.Key, to.SessionID, to.TurnID, want...)
			}
		})
	})
}

func TestTasksOfRequesters(t *testing.T) {
	run := says("run", "ran")
	t.Run("outside/1 a subagent requested by a sandboxed plugin is limited to the sandbox, and so are turns of an existing one", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, id, host := setup{model: obeying("run"), tools: []tool.Provider{run}}.asksForAll(t)
			ctx := authority.FromSandbox(t.Context())
			must[*protocol.TaskResult](t)(host.Tasks.StartTask(ctx, &plugin.TaskStart{TaskID: "tsk_1", Spec: delegated(1, "run")}))
			synctest.Wait()
			d.asksAbout(t, "a new subagent", "ses_child1", "trn_child1", "run")
			if !d.boxes(t, "ses_child1") {
				t.Error("the subagent is held to no sandbox")
			}
			d.task(t, id, "tsk_2", delegated(2, "hello"))
			synctest.Wait()
			again := delegated(2, "run")
			again.Subagent.TurnID, again.Subagent.New = "trn_again", nil
			must[*protocol.TaskResult](t)(host.Tasks.StartTask(ctx, &plugin.TaskStart{TaskID: "tsk_3", Spec: again}))
			synctest.Wait()
			d.asksAbout(t, "a turn of a subagent of a person", "ses_child2", "trn_again", "run")
			if d.boxes(t, "ses_child2") {
				t.Error("the subagent of the person is held to a sandbox")
			}
		})
	})
	t.Run("outside/1 outside/29 work in another session continues after its starter was deleted, and its requests call no tools", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			again := func(ctx context.Context, run *plugin.TaskRun) *protocol.TaskOutcome {
				if run.Task.Attempt == 1 {
					return lasting(ctx, run)
				}
				if _, err := run.Host.Lifecycle.CreateSession(ctx, &protocol.SessionNewParams{SessionID: "ses_made", Approval: allowing}); err != nil {
					t.Errorf("it asks for a session: %v", err)
				}
				return done("again")
			}
			d := start(t, setup{model: obeying("run"), tools: []tool.Provider{run}, plugins: plugins(handling("p", map[string]plugin.TaskFunc{"again": again})), cwd: t.TempDir()})
			id, free := d.session(t), d.session(t)
			begun(t, d.host(t, id), &plugin.TaskStart{SessionID: free, TaskID: "tsk_1", Spec: handled("again")})
			synctest.Wait()
			must[*protocol.SeqResult](t)(d.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: id}))
			d = d.restart(t, nil)
			if got := d.ended(t, free, "tsk_1"); got.State != protocol.TaskCompleted {
				t.Fatalf("it ended as %s %+v", got.State, got.Outcome)
			}
			if got := cameTo(t, d.turn(t, "ses_made", "run")); got == "ran" {
				t.Errorf("the call came to %q", got)
			}
		})
	})
	t.Run("outside/1 a sandboxed plugin cannot write to a shell", func(t *testing.T) {
		d, id, host := setup{model: replies()}.asksForAll(t)
		d.task(t, id, "tsk_shell", protocol.TaskSpec{Kind: protocol.TaskCommand, Recovery: protocol.RecoverOwner, Command: &protocol.TaskShell{Script: "sleep 600"}})
		_, err := host.Tasks.SignalTask(authority.FromSandbox(t.Context()), &protocol.TaskSignalParams{TaskParams: protocol.TaskParams{TaskID: "tsk_shell"}, Name: "stdin"})
		if !errors.As(err, new(*plugin.UnavailableError)) {
			t.Errorf("it got %v", err)
		}
	})
}

func TestWorkspacesOfRequesters(t *testing.T) {
	// away puts a link to another directory in the place of one.
	away := func(t *testing.T, dir string) {
		t.Helper()
		if err := errors.Join(os.Rename(dir, dir+".old"), os.Symlink(t.TempDir(), dir)); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("outside/1 a requested session keeps its resolved directory, and calls nothing once that leaves the workspace", func(t *testing.T) {
		d, id, host := asks(t, allowing)
		home := d.state(t, id).Cwd
		real, link := filepath.Join(home, "real"), filepath.Join(home, "link")
		if err := errors.Join(os.Mkdir(real, 0o700), os.Symlink(real, link)); err != nil {
			t.Fatal(err)
		}
		made := must[*protocol.SessionNewResult](t)(host.Lifecycle.CreateSession(t.Context(), &protocol.SessionNewParams{Cwd: link, Approval: allowing})).SessionID
		if got := d.state(t, made).Cwd; got != real {
			t.Errorf("it is in %s", got)
		}
		if got := cameTo(t, d.turn(t, made, "run")); got != "ran" {
			t.Errorf("in the workspace the call came to %q", got)
		}
		away(t, real)
		if got := cameTo(t, d.turn(t, made, "run")); got != "denied" {
			t.Errorf("outside of it the call came to %q", got)
		}
	})
	t.Run("outside/1 such a session runs no code either", func(t *testing.T) {
		w := &words{}
		d := start(t, coded(w))
		home := t.TempDir()
		below := filepath.Join(home, "below")
		if err := os.Mkdir(below, 0o700); err != nil {
			t.Fatal(err)
		}
		id := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{
			Cwd: below, Authority: protocol.Authority{Ceiling: &protocol.Ceiling{Roots: []string{home}}},
		})).SessionID
		d.turn(t, id, "run one")
		away(t, below)
		d.turn(t, id, "run two")
		if got := strings.Join(w.all(), " "); got != "one" {
			t.Errorf("%q ran", got)
		}
	})
}
