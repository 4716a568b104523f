package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"lashd/engine"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// direct returns the result of a direct call of the tool run: "ran", or the code and the message of its failure.
func (d *daemon) direct(t *testing.T, id protocol.SessionID, args string) (code, message string) {
	t.Helper()
	out := must[*protocol.ToolCallResult](t)(d.Tools.Call(t.Context(), &protocol.ToolCallParams{SessionID: id, Name: "run", Args: json.RawMessage(args)})).Output
	if out.Failure != nil {
		return out.Failure.Code, out.Failure.Message
	}
	return out.Text, ""
}

// TestRulesOfRequesters has a session ask for another one below its workspace. Its rules are about its own places, wherever the call is made.
func TestRulesOfRequesters(t *testing.T) {
	run := says("run", "ran")
	run.schema = `{"type":"object"}`
	d, id, host := lent(t, setup{model: replies(scripted.Reply{Text: "ok"}), tools: []tool.Provider{run}, plugins: plugins(handling("p", nil))})
	must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Approval: &protocol.ApprovalConfig{
		Mode: protocol.ApproveAllow, Rules: []protocol.ApprovalRule{
			{Tool: "run", Command: "./bin", Action: protocol.ApproveDeny}, {Tool: "run", Path: "bin", Action: protocol.ApproveDeny},
		},
	}}))
	for _, dir := range []string{"bin", "sub/bin"} {
		if err := os.MkdirAll(filepath.Join(d.setup.cwd, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	below := must[*protocol.SessionNewResult](t)(host.Lifecycle.CreateSession(t.Context(), &protocol.SessionNewParams{Cwd: filepath.Join(d.setup.cwd, "sub"), Approval: allowing})).SessionID
	for args, want := range map[string]string{
		`{"path":"bin/x"}`: "ran", `{"path":"../bin/x"}`: "denied", `{"path":".."}`: "denied",
		`{"command":"./bin/x"}`: "ran", `{"command":"../bin/x"}`: "denied", `{"command":"./bin/x","workdir":".."}`: "denied",
	} {
		if got, _ := d.direct(t, below, args); got != want {
			t.Errorf("outside/29 %s came to %q, want %q", args, got, want)
		}
	}
}

// TestRulesWithoutADirectory holds a session to a policy that names no directory. Its rules are about places of that session.
func TestRulesWithoutADirectory(t *testing.T) {
	run := says("run", "ran")
	run.schema = `{"type":"object"}`
	d := start(t, setup{cwd: t.TempDir(), model: replies(), tools: []tool.Provider{run}})
	denies := protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Rules: []protocol.ApprovalRule{{Tool: "run", Path: "bin", Action: protocol.ApproveDeny}}}
	p := &protocol.SessionNewParams{Cwd: d.setup.cwd, Approval: allowing, Authority: protocol.Authority{Ceiling: &protocol.Ceiling{Policies: []protocol.Policy{{Approval: denies}}}}}
	id := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), p)).SessionID
	for args, want := range map[string]string{`{"path":"bin/x"}`: "denied", `{"path":"/bin/x"}`: "ran"} {
		if got, _ := d.direct(t, id, args); got != want {
			t.Errorf("outside/29 %s came to %q, want %q", args, got, want)
		}
	}
}

func TestDenialReasons(t *testing.T) {
	d, id, host := asks(t, denying)
	own := must[*protocol.SessionNewResult](t)(host.Lifecycle.CreateSession(t.Context(), &protocol.SessionNewParams{Approval: denying})).SessionID
	lax := must[*protocol.SessionNewResult](t)(host.Lifecycle.CreateSession(t.Context(), &protocol.SessionNewParams{Approval: allowing})).SessionID
	must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: own, Approval: &protocol.ApprovalConfig{Mode: protocol.ApproveDeny}}))
	twice := must[*protocol.SessionNewResult](t)(d.host(t, own).Lifecycle.CreateSession(t.Context(), &protocol.SessionNewParams{Approval: allowing})).SessionID
	strict := must[*protocol.SessionNewResult](t)(d.host(t, d.session(t)).Lifecycle.CreateSession(t.Context(), &protocol.SessionNewParams{Approval: denying})).SessionID
	asked, rule, mode := "The session or plugin that requested", "The rule `deny tool run` of the session decides.", "The approval mode `deny` of the session decides."
	for where, want := range map[protocol.SessionID]string{strict: rule, id: rule, own: mode, lax: asked, twice: asked} {
		if code, message := d.direct(t, where, ""); code != "denied" || !strings.Contains(message, want) {
			t.Errorf("outside/29 the call came to %s %q, want %q", code, message, want)
		}
	}
}

// TestStateOfATurnThatAsks has two calls of a turn asked about. The turn waits until the last of them has its answer.
func TestStateOfATurnThatAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		slow := toolFunc{name: "slow", run: func(context.Context, tool.Invocation) (tool.Result, error) {
			<-gate
			return tool.Result{Output: protocol.Succeed("slow")}, nil
		}}
		d := start(t, setup{model: replies(calls("slow", "slow"), scripted.Reply{Text: "done"}), tools: []tool.Provider{slow}, config: asking})
		id := d.session(t)
		turn := d.begin(t, id, "go").TurnID
		for _, want := range []protocol.TurnState{protocol.TurnWaiting, protocol.TurnWaiting, protocol.TurnRunning} {
			synctest.Wait()
			if got := must[*protocol.TurnReport](t)(d.Turns.Read(t.Context(), &protocol.TurnParams{TurnID: turn})).State; got != want {
				t.Errorf("outside/29 the turn is %s, want %s", got, want)
			}
			if open := d.asking(t); len(open) > 0 {
				p := &protocol.DecisionRespondParams{DecisionID: open[0].ID, Choice: protocol.ChooseAllowOnce, ArgsHash: open[0].ArgsHash}
				must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", p))
			}
		}
		close(gate)
		d.wait(t, turn)
	})
}

// TestRootsThatAreLinks has sessions ask for each other in a workspace that a link leads to. What they are held to names it once.
func TestRootsThatAreLinks(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	d := start(t, setup{cwd: link, model: replies(scripted.Reply{Text: "ok"}), plugins: plugins(handling("p", nil))})
	id := d.session(t)
	for range 3 {
		made := must[*protocol.SessionNewResult](t)(d.host(t, id).Lifecycle.CreateSession(t.Context(), &protocol.SessionNewParams{Cwd: link}))
		if got := made.Session.Authority.Ceiling.Roots; len(got) != 1 {
			t.Errorf("outside/29 the roots are %q", got)
		}
		id = made.SessionID
	}
}

// TestApprovalOfClientTools has a client bring a server, and tools, that say of themselves that they only read.
func TestApprovalOfClientTools(t *testing.T) {
	for name, tools := range map[string][]protocol.ClientTool{
		"of a server": nil, "of a client, by the name of that of a server": {{ToolManifest: protocol.ToolManifest{Name: "look", Kind: protocol.ToolKindRead}}},
	} {
		t.Run("outside/29 a tool "+name+" is asked about", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, _ := hosted(t, setup{model: replies(calls("look"), scripted.Reply{Text: "done"})})
				id := d.session(t)
				must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Approval: &protocol.ApprovalConfig{DeadlineMs: 1}}))
				must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), "cli_a", &protocol.SessionOverlayParams{SessionID: id, MCPServers: server("look:read"), Tools: tools}))
				synctest.Wait()
				turn := d.begin(t, id, "go").TurnID
				synctest.Wait()
				if open := d.asking(t); len(open) != 1 || open[0].Kind != protocol.DecisionApproval {
					t.Errorf("asked about are %+v", open)
				}
				d.interrupt(t, turn)
				d.wait(t, turn)
			})
		})
	}
}

// TestPlacesOfQuestions checks that a question shows where the paths of a call, and the directories of its commands, lead.
func TestPlacesOfQuestions(t *testing.T) {
	for args, want := range map[string]string{
		`{"command":"ls"}`: "", `{"command":"ls","workdir":"sub"}`: "sub", `{"path":"sub/../x"}`: "x", `{"path":"loop"}`: "?",
	} {
		run := says("run", "ran")
		run.schema = `{"type":"object"}`
		reply := scripted.Reply{ToolCalls: []scripted.Call{{Name: "run", Args: json.RawMessage(args)}}}
		dir := must[string](t)(filepath.EvalSymlinks(t.TempDir()))
		ok(t, os.Symlink("loop", filepath.Join(dir, "loop")))
		d := start(t, setup{cwd: dir, model: replies(reply, scripted.Reply{Text: "done"}), tools: []tool.Provider{run}, config: asking})
		id := d.session(t)
		o := d.observe(t, id)
		turn := d.begin(t, id, "go").TurnID
		var places []string
		for _, p := range o.typed(protocol.EventDecisionOpened).Decision.Places {
			if p == "" {
				p = dir + "/?" // the target is unknown
			}
			places = append(places, strings.TrimPrefix(p, dir+"/"))
		}
		if got := strings.Join(places, " "); got != want {
			t.Errorf("outside/29 %s is about %q, want %q", args, got, want)
		}
		d.interrupt(t, turn)
		d.wait(t, turn)
	}
}

// TestRuleBesideOthers has rules of other tools, which say nothing about a call, whatever their order.
func TestRuleBesideOthers(t *testing.T) {
	mine, other := protocol.ApprovalRule{Tool: "run", Action: protocol.ApproveAllow}, protocol.ApprovalRule{Tool: "other", Action: protocol.ApproveDeny}
	for _, rules := range [][]protocol.ApprovalRule{{mine, other}, {other, mine}} {
		d, id, _ := asks(t, &protocol.ApprovalConfig{Mode: protocol.ApproveDeny, Rules: rules})
		if got, _ := d.direct(t, id, ""); got != "ran" {
			t.Errorf("outside/29 with the rules %+v the call came to %q", rules, got)
		}
	}
}

// TestRuleOfWhatAToolIsLike has a tool that does the same as another one. Rules that ask or deny for that one hold for it, those that allow do not.
func TestRuleOfWhatAToolIsLike(t *testing.T) {
	for _, c := range []struct {
		tool, like string
		action     protocol.ApprovalMode
		want       string
	}{
		{"shell", "shell", protocol.ApproveDeny, "denied"}, {"sh*", "shell", protocol.ApproveDeny, "denied"}, {"other", "shell", protocol.ApproveDeny, "ran"},
		{"shell", "", protocol.ApproveDeny, "ran"}, {"shell", "shell", protocol.ApproveAllow, "denied"}, {"run", "shell", protocol.ApproveAllow, "ran"},
	} {
		d := start(t, setup{model: replies(), tools: []tool.Provider{likened{says("run", "ran"), c.like}}})
		id := d.session(t)
		approval := &protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Rules: []protocol.ApprovalRule{{Tool: c.tool, Action: c.action}}}
		if c.action == protocol.ApproveAllow {
			approval.Mode = protocol.ApproveDeny
		}
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Approval: approval}))
		if got, _ := d.direct(t, id, ""); got != c.want {
			t.Errorf("outside/29 a tool like %q and the rule %s %s: the call came to %q, want %q", c.like, c.action, c.tool, got, c.want)
		}
	}
}

// likened is a tool that says that it is like another one.
type likened struct {
	toolFunc
	like string
}

func (l likened) Tools() []tool.Tool {
	all := l.toolFunc.Tools()
	all[0].Manifest.Like = l.like
	return all
}

// TestKindsOfTools checks the default without approval settings. lashd asks about tools that change things and tools of unknown kind, but not about those that read, search or think.
func TestKindsOfTools(t *testing.T) {
	for kind, want := range map[protocol.ToolKind]string{
		protocol.ToolKindRead: "ran", protocol.ToolKindSearch: "ran", protocol.ToolKindThink: "ran",
		protocol.ToolKindEdit: "denied", protocol.ToolKindExecute: "denied", protocol.ToolKindOther: "denied", "": "denied",
	} {
		run := says("run", "ran")
		run.kind = kind
		d := start(t, setup{model: replies(calls("run")), tools: []tool.Provider{run}})
		id := d.session(t)
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Approval: &protocol.ApprovalConfig{DeadlineMs: 1}}))
		if got := cameTo(t, d.turn(t, id, "go")); got != want {
			t.Errorf("outside/29 a call of kind %q came to %q, want %q", kind, got, want)
		}
	}
}

// TestAnswersAboutPlaces has a person always allow a call whose path then leads elsewhere. It is asked about again.
func TestAnswersAboutPlaces(t *testing.T) {
	dir := t.TempDir()
	lead(t, dir, "link", "a")
	run := says("run", "ran")
	run.schema = `{"type":"object"}`
	reply := scripted.Reply{ToolCalls: []scripted.Call{{ID: "c1", Name: "run", Args: json.RawMessage(`{"path":"link/x"}`)}}}
	turn := scripted.Turn{Match: &scripted.Match{LastUserContains: "run"}, Replies: []scripted.Reply{reply, {Text: "done"}}}
	d := start(t, setup{cwd: dir, model: scripted.New(&scripted.Script{Turns: []scripted.Turn{turn, turn, turn}}), tools: []tool.Provider{run}, config: asking})
	id := d.session(t)
	d.runAllowed(t, id, protocol.ChooseAllowAlways)
	d.asksAbout(t, "outside/29 the same place", id, d.begin(t, id, "run").TurnID)
	lead(t, dir, "link", "b")
	d.asksAbout(t, "outside/29 another place", id, d.begin(t, id, "run").TurnID, "run")
}

// TestAnswersAreListedWithTheirCall has a person allow two calls for the session and for the workspace. The lists of rules tell them apart.
func TestAnswersAreListedWithTheirCall(t *testing.T) {
	call := func(text string) scripted.Reply {
		r := calls("run")
		r.ToolCalls[0].Args = json.RawMessage(`{"command":"` + text + `"}`)
		return r
	}
	turn := func(text string) scripted.Turn {
		return scripted.Turn{Replies: []scripted.Reply{call(text), {Text: "done"}}}
	}
	model := scripted.New(&scripted.Script{Turns: []scripted.Turn{turn("make test"), turn("make all")}})
	d := start(t, setup{model: model, tools: []tool.Provider{says("run", "ran")}, config: asking})
	id := d.session(t)
	d.runAllowed(t, id, protocol.ChooseAllowSession)
	d.runAllowed(t, id, protocol.ChooseAllowAlways)
	var got []string
	for _, l := range must[*protocol.RuleListResult](t)(d.Rules.List(t.Context(), &protocol.RuleListParams{SessionID: id})).Data {
		got = append(got, fmt.Sprint(l.Level, " ", l.Exact, " ", l.Rule.Tool, " ", l.About))
	}
	if want := []string{"workspace true run make all", "session true run make test"}; !slices.Equal(got, want) {
		t.Errorf("part11/3 the rules are %q, want %q", got, want)
	}
}

// TestDeniedHosts lists the hosts that the rules of a session deny, whichever tool the rules name.
func TestDeniedHosts(t *testing.T) {
	d := start(t, setup{config: func(e *engine.Config) {
		for _, r := range []protocol.ApprovalRule{{Host: "b.test"}, {Host: "*.a.test"}, {Host: "b.test"}, {Tool: "mcp__x__*", Host: "c.test"}} {
			r.Action = protocol.ApproveDeny
			e.Defaults.Approval.Rules = append(e.Defaults.Approval.Rules, r)
		}
		e.Defaults.Approval.Rules = append(e.Defaults.Approval.Rules, protocol.ApprovalRule{Host: "allowed.test", Action: protocol.ApproveAllow})
	}})
	got, err := d.Rules.DeniedHosts(t.Context(), d.session(t))
	if want := []string{"*.a.test", "b.test", "c.test"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("part13/6 the rules deny %q, %v, want %q", got, err, want)
	}
	if _, err := d.Rules.DeniedHosts(t.Context(), "ses_none"); err == nil {
		t.Error("part13/6 a session that does not exist has rules")
	}
}
