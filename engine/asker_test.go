package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/engine/authority"
	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

var (
	allowing = &protocol.ApprovalConfig{Mode: protocol.ApproveAllow}
	denying  = &protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Rules: []protocol.ApprovalRule{{Tool: "run", Action: protocol.ApproveDeny}}}
)

// asks is a daemon with a session in which a plugin asks for others. The model calls the tool run in each turn whose input has "run" in it.
func asks(t *testing.T, approval *protocol.ApprovalConfig) (*daemon, protocol.SessionID, plugin.Capabilities) {
	t.Helper()
	calling := scripted.Turn{Match: &scripted.Match{LastUserContains: "run"}, Replies: []scripted.Reply{calls("run"), {Text: "done"}}}
	d, id, host := lent(t, setup{
		model: scripted.New(&scripted.Script{Turns: []scripted.Turn{calling, calling, calling, calling, calling, calling}, Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "ok"}}}}),
		tools: []tool.Provider{says("run", "ran")}, plugins: plugins(handling("p", nil)),
	})
	must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Approval: approval}))
	return d, id, host
}

// cameTo is what the call of a turn came to: "ran", or the code of its failure.
func cameTo(t *testing.T, r *protocol.TurnReport) string {
	t.Helper()
	if len(r.ToolCalls) != 1 {
		t.Fatalf("%d calls: %+v", len(r.ToolCalls), r)
	}
	out := r.ToolCalls[0].Output
	if out.Failure != nil {
		return out.Failure.Code
	}
	return out.Text
}

// asked starts a turn in a session for a plugin, and gives what its call came to after a person has answered what was asked, if anything was.
func (d *daemon) askedFor(t *testing.T, host plugin.Capabilities, ctx context.Context, turn protocol.TurnID, id protocol.SessionID) string {
	t.Helper()
	must[protocol.TurnID](t)(host.Lifecycle.StartTurn(ctx, &plugin.TurnRequest{TurnID: turn, SessionID: id, Input: text("run")}))
	return cameTo(t, d.wait(t, turn))
}

// working has a plugin start a task in a session that wakes the session when it ends. The function that it returns ends it.
func (d *daemon) working(t *testing.T, host plugin.Capabilities, id protocol.SessionID) func() {
	t.Helper()
	spec := protocol.TaskSpec{Kind: protocol.TaskOther, Recovery: protocol.RecoverExternal, Ended: &protocol.TaskWake{Text: "run"}}
	must[*protocol.TaskResult](t)(host.Tasks.StartTask(t.Context(), &plugin.TaskStart{SessionID: id, TaskID: "tsk_1", Spec: spec}))
	return func() {
		t.Helper()
		must[*protocol.TaskResult](t)(d.Tasks.Complete(t.Context(), "cli_a", &protocol.TaskCompleteParams{
			TaskParams: protocol.TaskParams{SessionID: id, TaskID: "tsk_1"}, Outcome: protocol.TaskOutcome{Kind: protocol.TaskDone},
		}))
	}
}

// woken has a plugin wake a session so. It returns the first event of that turn.
func (d *daemon) woken(t *testing.T, host plugin.Capabilities, id protocol.SessionID) protocol.Event {
	t.Helper()
	o := d.observe(t, id)
	d.working(t, host, id)()
	return o.typed(protocol.EventTurnAccepted)
}

func TestRequesterLimits(t *testing.T) {
	lax := func() *protocol.SessionNewParams { return &protocol.SessionNewParams{Approval: allowing} }
	t.Run("outside/1 a session that a plugin requests denies what the requesting session denies, whatever its configuration", func(t *testing.T) {
		d, _, host := asks(t, denying)
		made := must[*protocol.SessionNewResult](t)(host.Lifecycle.CreateSession(t.Context(), lax())).SessionID
		fork := d.fork(t, made, "").SessionID
		for range 2 {
			for _, id := range []protocol.SessionID{made, fork} {
				must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Approval: allowing}))
				if got := cameTo(t, d.turn(t, id, "run")); got != "denied" {
					t.Errorf("session %s: the call came to %q", id, got)
				}
				out := must[*protocol.ToolCallResult](t)(d.Tools.Call(t.Context(), &protocol.ToolCallParams{SessionID: id, Name: "run"})).Output
				if out.Failure == nil || out.Failure.Code != "denied" {
					t.Errorf("session %s: a direct call came to %+v", id, out)
				}
			}
			d = d.restart(t, nil)
		}
	})
	t.Run("outside/1 the denial also holds through intermediate sessions and directives", func(t *testing.T) {
		d, _, host := asks(t, denying)
		made := must[*protocol.SessionNewResult](t)(host.Lifecycle.CreateSession(t.Context(), lax())).SessionID
		d.turn(t, made, "go") // the plugin is lent the services of that session now
		grown := must[*protocol.SessionNewResult](t)(host.Lifecycle.CreateSession(t.Context(), &protocol.SessionNewParams{
			Approval: allowing, Start: protocol.SessionStart{Kind: protocol.StartExisting, SessionID: made},
		})).SessionID
		if got := cameTo(t, d.turn(t, grown, "run")); got != "denied" {
			t.Errorf("the call came to %q", got)
		}
	})
	t.Run("outside/1 a removed tool stays unavailable in sessions and turns that the session requests", func(t *testing.T) {
		d, id, host := asks(t, allowing)
		must[*protocol.ToolStateResult](t)(d.Tools.SetMembership(t.Context(), &protocol.ToolSetMembershipParams{SessionID: id, Members: map[string]bool{"run": false}}))
		for _, p := range []*protocol.SessionNewParams{
			{Approval: allowing}, {Approval: allowing, Relation: protocol.Relation{Kind: protocol.RelationChild, Parent: id}},
		} {
			made := must[*protocol.SessionNewResult](t)(host.Lifecycle.CreateSession(t.Context(), p)).SessionID
			if got := cameTo(t, d.turn(t, made, "run")); got == "ran" {
				t.Errorf("in a session with the relation %q the call came to %q", p.Relation.Kind, got)
			}
		}
		free := d.session(t)
		if got := d.askedFor(t, host, t.Context(), "trn_1", free); got == "ran" {
			t.Errorf("in a laxer session the call came to %q", got)
		}
		if got := cameTo(t, d.turn(t, free, "run")); got != "ran" {
			t.Errorf("a person's own call there came to %q", got)
		}
	})
	t.Run("outside/1 outside/29 a session whose workspace cannot be resolved can request nothing", func(t *testing.T) {
		link := filepath.Join(t.TempDir(), "link")
		ok(t, os.Mkdir(link, 0o700))
		calling := scripted.Turn{Match: &scripted.Match{LastUserContains: "run"}, Replies: []scripted.Reply{calls("run"), {Text: "done"}}}
		d := start(t, setup{
			model: scripted.New(&scripted.Script{Turns: []scripted.Turn{calling}, Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "ok"}}}}),
			tools: []tool.Provider{says("run", "ran")}, plugins: plugins(handling("p", nil)), cwd: link,
		})
		id := d.session(t)
		host, free := d.host(t, id), d.session(t)
		o := d.observe(t, free)
		finish := d.working(t, host, free)
		ok(t, os.Remove(link), os.Symlink(link, link))
		_, made := host.Lifecycle.CreateSession(t.Context(), lax())
		_, begun := host.Lifecycle.StartTurn(t.Context(), &plugin.TurnRequest{TurnID: "trn_1", SessionID: free, Input: text("run")})
		for name, err := range map[string]error{"a session": made, "a turn": begun} {
			if err == nil || !strings.Contains(err.Error(), "resolve the workspace of the requesting session: ") {
				t.Errorf("%s: %v", name, err)
			}
		}
		ok(t, os.Remove(link), os.Symlink(t.TempDir(), link))
		if _, err := host.Lifecycle.CreateSession(t.Context(), lax()); !errors.Is(err, pathresolve.ErrElsewhere) {
			t.Errorf("a session, when a link leads elsewhere from the workspace: %v", err)
		}
		finish()
		if got := cameTo(t, d.wait(t, o.typed(protocol.EventTurnAccepted).TurnID)); got == "ran" {
			t.Errorf("woken, the call came to %q", got)
		}
	})
	t.Run("outside/1 outside/29 work started by a deleted session calls no tools", func(t *testing.T) {
		d, id, _ := asks(t, allowing)
		free := d.session(t)
		o := d.observe(t, free)
		finish := d.working(t, d.host(t, id), free)
		must[*protocol.SeqResult](t)(d.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: id}))
		finish()
		if got := cameTo(t, d.wait(t, o.typed(protocol.EventTurnAccepted).TurnID)); got == "ran" {
			t.Errorf("the call came to %q", got)
		}
	})
	t.Run("outside/1 a turn that a plugin starts in a laxer session has the requester's limits, and no other turn has", func(t *testing.T) {
		d, _, host := asks(t, denying)
		free := d.session(t)
		if got := d.askedFor(t, host, t.Context(), "trn_1", free); got != "denied" {
			t.Errorf("the call came to %q", got)
		}
		if got := cameTo(t, d.turn(t, free, "run")); got != "ran" {
			t.Errorf("a person's own call came to %q", got)
		}
	})
	t.Run("outside/1 the limits survive a restart while the turn is queued", func(t *testing.T) {
		gate := make(chan struct{})
		slow := toolFunc{name: "slow", run: func(ctx context.Context, _ tool.Invocation) (tool.Result, error) {
			select {
			case <-gate:
			case <-ctx.Done():
			}
			return tool.Result{Output: protocol.Succeed("slow")}, nil
		}}
		slow.contract.Replay = protocol.ReplaySafe
		turns := []scripted.Turn{
			{Match: &scripted.Match{LastUserContains: "wait"}, Replies: []scripted.Reply{calls("slow"), {Text: "done"}}},
			{Match: &scripted.Match{LastUserContains: "run"}, Replies: []scripted.Reply{calls("run"), {Text: "done"}}},
		}
		d, id, host := lent(t, setup{
			model: scripted.New(&scripted.Script{Turns: turns, Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "ok"}}}}),
			tools: []tool.Provider{says("run", "ran"), slow},
		})
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Approval: denying}))
		free := d.session(t)
		first := d.begin(t, free, "wait").TurnID
		must[protocol.TurnID](t)(host.Lifecycle.StartTurn(t.Context(), &plugin.TurnRequest{TurnID: "trn_1", SessionID: free, Input: text("run")}))
		d = d.restart(t, func(s *setup) { s.plugins = nil })
		close(gate)
		d.wait(t, first)
		if got := cameTo(t, d.wait(t, "trn_1")); got != "denied" {
			t.Errorf("the call came to %q", got)
		}
	})
	t.Run("outside/1 a task that a plugin starts in a laxer session wakes it with the requester's limits", func(t *testing.T) {
		for want, approval := range map[string]*protocol.ApprovalConfig{"denied": denying, "ran": allowing} {
			d, id, _ := asks(t, approval)
			free := d.session(t)
			if got := cameTo(t, d.wait(t, d.woken(t, d.host(t, id), free).TurnID)); got != want {
				t.Errorf("the call came to %q, want %q", got, want)
			}
		}
	})
	t.Run("outside/1 outside/29 the wake of a session's own task has only the session's limits", func(t *testing.T) {
		d, id, _ := asks(t, &protocol.ApprovalConfig{Mode: protocol.ApproveAsk})
		turn := d.woken(t, d.host(t, id), id).TurnID
		q := d.observe(t, id, 0).typed(protocol.EventDecisionOpened).Decision
		if !slices.Contains(q.Choices, protocol.ChooseAllowSession) {
			t.Errorf("the choices are %v", q.Choices)
		}
		d.interrupt(t, turn)
		d.wait(t, turn)
	})
	t.Run("outside/1 a session cannot request work in another workspace", func(t *testing.T) {
		d, id, host := asks(t, allowing)
		elsewhere := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir()})).SessionID
		home := must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id})).Session.Cwd
		_, start := host.Lifecycle.StartTurn(t.Context(), &plugin.TurnRequest{TurnID: "trn_1", SessionID: elsewhere, Input: text("run")})
		_, fork := host.Lifecycle.CreateSession(t.Context(), &protocol.SessionNewParams{Start: protocol.SessionStart{Kind: protocol.StartExisting, SessionID: elsewhere}})
		_, above := host.Lifecycle.CreateSession(t.Context(), &protocol.SessionNewParams{Cwd: filepath.Dir(home)})
		message := protocol.NodeBody{Message: &protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: "run"}}}}
		lent := d.host(t, id)
		_, said := lent.Graph.AppendNodes(t.Context(), &protocol.GraphAppendParams{SessionID: elsewhere, Nodes: []protocol.NodeBody{message}})
		_, member := lent.State.SetMembership(t.Context(), elsewhere, []string{"run"}, true)
		_, available := lent.State.SetAvailability(t.Context(), elsewhere, []string{"run"}, "")
		_, state := lent.State.ApplyToolState(t.Context(), elsewhere, protocol.ToolState{})
		_, signal := lent.Tasks.SignalTask(t.Context(), &protocol.TaskSignalParams{TaskParams: protocol.TaskParams{SessionID: elsewhere, TaskID: "tsk_1"}, Name: "stdin"})
		for name, err := range map[string]error{
			"a turn": start, "a fork": fork, "a session above": above, "a message": said, "members of the catalog": member,
			"the availability of tools": available, "the state of tools": state, "a signal": signal,
		} {
			if !errors.As(err, new(*param.Error)) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("outside/1 the session doing the work cannot approve what the requester would ask about", func(t *testing.T) {
		d, _, host := asks(t, &protocol.ApprovalConfig{Mode: protocol.ApproveAsk})
		p := lax()
		p.Approval = &protocol.ApprovalConfig{Mode: protocol.ApproveAsk, Default: protocol.ApproveAllow, DeadlineMs: 1}
		made := must[*protocol.SessionNewResult](t)(host.Lifecycle.CreateSession(t.Context(), p)).SessionID
		if got := cameTo(t, d.turn(t, made, "run")); got != "denied" {
			t.Errorf("the call came to %q", got)
		}
	})
	t.Run("outside/1 a person's answers in the session apply there, but never override a denial", func(t *testing.T) {
		d, id, host := asks(t, &protocol.ApprovalConfig{Mode: protocol.ApproveAsk})
		made := must[*protocol.SessionNewResult](t)(host.Lifecycle.CreateSession(t.Context(), lax())).SessionID
		o := d.observe(t, made)
		turn := d.begin(t, made, "run").TurnID
		q := o.typed(protocol.EventDecisionOpened).Decision
		must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", &protocol.DecisionRespondParams{DecisionID: q.ID, Choice: protocol.ChooseAllowSession, ArgsHash: q.ArgsHash}))
		if got := cameTo(t, d.wait(t, turn)); got != "ran" {
			t.Errorf("allowed, the call came to %q", got)
		}
		if got := cameTo(t, d.turn(t, made, "run")); got != "ran" {
			t.Errorf("allowed for the session, the call came to %q", got)
		}
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Approval: denying}))
		if got := d.askedFor(t, host, t.Context(), "trn_1", made); got != "denied" {
			t.Errorf("asked for by a session that denies it, the call came to %q", got)
		}
	})
	t.Run("outside/1 a chain of requests has a maximum length", func(t *testing.T) {
		d, id, host := asks(t, allowing)
		p := &protocol.SessionNewParams{Authority: protocol.Authority{Ceiling: &protocol.Ceiling{}}}
		for i := range authority.MaxPolicies + 1 {
			p.Authority.Ceiling.Policies = append(p.Authority.Ceiling.Policies, protocol.Policy{Cwd: "/" + string(rune('a'+i))})
		}
		if _, err := host.Lifecycle.CreateSession(t.Context(), p); !errors.As(err, new(*param.Error)) {
			t.Errorf("more policies than may be: %v", err)
		}
		p.Authority.Ceiling.Policies = p.Authority.Ceiling.Policies[:authority.MaxPolicies]
		if _, err := host.Lifecycle.CreateSession(t.Context(), p); !errors.Is(err, authority.ErrTooMany) {
			t.Errorf("one too many with that of %s: %v", id, err)
		}
		p.Cwd = d.state(t, id).Cwd
		full := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), p)).SessionID
		if _, err := d.host(t, full).Lifecycle.StartTurn(t.Context(), &plugin.TurnRequest{TurnID: "trn_1", SessionID: id, Input: text("run")}); !errors.Is(err, authority.ErrTooMany) {
			t.Errorf("a turn that one too many stand behind: %v", err)
		}
		p.Authority.Ceiling.Policies = p.Authority.Ceiling.Policies[:authority.MaxPolicies-1]
		most := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), p)).SessionID
		if _, err := d.host(t, most).Lifecycle.StartTurn(t.Context(), &plugin.TurnRequest{TurnID: "trn_2", SessionID: id, Input: text("run")}); err != nil {
			t.Errorf("a turn that as many stand behind as may: %v", err)
		}
	})
}

func TestSandboxedRequesters(t *testing.T) {
	t.Run("outside/1 work for a sandboxed plugin needs an approval for each single call", func(t *testing.T) {
		d, _, host := asks(t, allowing)
		ctx := authority.FromSandbox(t.Context())
		made := must[*protocol.SessionNewResult](t)(host.Lifecycle.CreateSession(ctx, &protocol.SessionNewParams{Approval: allowing})).SessionID
		child := must[*protocol.SessionNewResult](t)(host.Lifecycle.CreateSession(t.Context(), &protocol.SessionNewParams{
			Relation: protocol.Relation{Kind: protocol.RelationChild, Parent: made},
		})).SessionID
		free := d.session(t)
		for name, begin := range map[string]func() (protocol.SessionID, protocol.TurnID){
			"in a session that it made": func() (protocol.SessionID, protocol.TurnID) { return made, d.begin(t, made, "run").TurnID },
			"in one below":              func() (protocol.SessionID, protocol.TurnID) { return child, d.begin(t, child, "run").TurnID },
			"in a turn of another": func() (protocol.SessionID, protocol.TurnID) {
				return free, must[protocol.TurnID](t)(host.Lifecycle.StartTurn(ctx, &plugin.TurnRequest{TurnID: "trn_1", SessionID: free, Input: text("run")}))
			},
		} {
			id, turn := begin()
			q := d.observe(t, id, 0).typed(protocol.EventDecisionOpened).Decision
			if want := []protocol.DecisionChoice{protocol.ChooseAllowOnce, protocol.ChooseReject}; !slices.Equal(q.Choices, want) || q.Default != protocol.ChooseReject {
				t.Errorf("%s: %v, by default %s", name, q.Choices, q.Default)
			}
			must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", &protocol.DecisionRespondParams{DecisionID: q.ID, Choice: protocol.ChooseReject, ArgsHash: q.ArgsHash}))
			if got := cameTo(t, d.wait(t, turn)); got != "denied" {
				t.Errorf("%s: the call came to %q", name, got)
			}
		}
	})
	t.Run("outside/1 a sandboxed plugin cannot have lash run commands, and its tasks stay limited to the sandbox", func(t *testing.T) {
		elsewhere := t.TempDir()
		withTasks(t, setup{}, nil, func(t *testing.T, d *daemon, s protocol.SessionID, host plugin.Capabilities) {
			ctx := authority.FromSandbox(t.Context())
			shell := protocol.TaskSpec{Kind: protocol.TaskCommand, Recovery: protocol.RecoverOwner, Command: &protocol.TaskShell{Script: "true"}}
			_, command := host.Tasks.StartTask(ctx, &plugin.TaskStart{Spec: shell})
			_, monitor := host.Monitors.Start(ctx, &protocol.MonitorStartParams{Spec: protocol.MonitorSpec{ID: "m", Command: "true"}})
			for name, err := range map[string]error{"a command": command, "a monitor": monitor} {
				if !errors.As(err, new(*plugin.UnavailableError)) {
					t.Errorf("%s: %v", name, err)
				}
			}
			other := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: elsewhere})).SessionID
			if _, err := host.Tasks.StartTask(t.Context(), &plugin.TaskStart{SessionID: other, Spec: shell}); !errors.As(err, new(*param.Error)) {
				t.Errorf("a command in another workspace: %v", err)
			}
			begun(t, host, &plugin.TaskStart{TaskID: "tsk_free", Spec: work(protocol.TaskOther, protocol.RecoverOwner), Work: takes(time.Second, "")})
			must[*protocol.TaskResult](t)(host.Tasks.StartTask(ctx, &plugin.TaskStart{TaskID: "tsk_held", Spec: work(protocol.TaskOther, protocol.RecoverOwner), Work: func(ctx context.Context, run *plugin.TaskRun) *protocol.TaskOutcome {
				made, err := run.Host.Lifecycle.CreateSession(ctx, &protocol.SessionNewParams{SessionID: "ses_made"})
				if err != nil || made.Session.Authority.Ceiling == nil || !made.Session.Authority.Ceiling.Sandboxed {
					t.Errorf("a session of its task: %+v, %v", made, err)
				}
				return nil
			}}))
			d.waitTasks(t, &protocol.TaskWaitParams{SessionID: s, TaskIDs: []protocol.TaskID{"tsk_free", "tsk_held"}})
			for id, want := range map[protocol.TaskID]bool{"tsk_free": false, "tsk_held": true} {
				if c := d.readTask(t, s, id).Task.Origin.Ceiling; (c != nil && c.Sandboxed) != want {
					t.Errorf("%s: %+v", id, c)
				}
			}
		})
	})
}

// approving is a plugin that makes lashd ask about calls, and allow them if no client answers.
func approving(silence protocol.ApprovalMode) hooked {
	return hooked{"approving", func(r *plugin.Registrar) {
		r.ToolCalls().Before(func(context.Context, *plugin.ToolCallContext) ([]plugin.Directive, error) {
			return []plugin.Directive{{Kind: plugin.RequireApproval, Approval: &plugin.Approval{Reason: "because", DeadlineMs: 1, Default: silence}}}, nil
		})
	}}
}

func TestPluginsDefaults(t *testing.T) {
	for _, c := range []struct {
		name    string
		config  protocol.ApprovalConfig
		silence protocol.ApprovalMode
		want    string
	}{
		{"allows only what the session would not ask about", protocol.ApprovalConfig{Mode: protocol.ApproveAllow}, protocol.ApproveAllow, "ran"},
		{"does not allow what the session asks about", protocol.ApprovalConfig{Mode: protocol.ApproveAsk}, protocol.ApproveAllow, "denied"},
		{"allows what the session allows then, too", protocol.ApprovalConfig{Mode: protocol.ApproveAsk, Default: protocol.ApproveAllow}, protocol.ApproveAllow, "ran"},
		{"is nothing, and the session allows what it asks about", protocol.ApprovalConfig{Mode: protocol.ApproveAsk, Default: protocol.ApproveAllow, DeadlineMs: 1}, "", "ran"},
		{"denies what the session would allow", protocol.ApprovalConfig{Mode: protocol.ApproveAsk, Default: protocol.ApproveAllow}, protocol.ApproveDeny, "denied"},
	} {
		t.Run("outside/2 a plugin's default answer "+c.name, func(t *testing.T) {
			d := start(t, setup{model: replies(calls("run")), tools: []tool.Provider{says("run", "ran")}, plugins: plugins(approving(c.silence))})
			id := d.session(t)
			must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Approval: &c.config}))
			if got := cameTo(t, d.turn(t, id, "go")); got != c.want {
				t.Errorf("the call came to %q, want %q", got, c.want)
			}
		})
	}
}
