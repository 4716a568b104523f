package engine_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"lashd/engine"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

func TestApproval(t *testing.T) {
	run := says("run", "ran")
	run.schema = `{"type":"object"}`
	script := &scripted.Script{Otherwise: &scripted.Turn{Replies: []scripted.Reply{
		{ToolCalls: []scripted.Call{{ID: "c1", Name: "run", Args: json.RawMessage(`{"command":"go test ./... > out; echo $?"}`)}}}, {Text: "done"},
	}}}
	s := setup{model: scripted.New(script), tools: []tool.Provider{run}, config: asking}
	// once runs a turn whose one call is asked about, and answers; it returns what the call came to.
	once := func(t *testing.T, d *daemon, id protocol.SessionID, choice protocol.DecisionChoice) protocol.ToolOutput {
		t.Helper()
		o := d.observe(t, id)
		turn := d.begin(t, id, "go").TurnID
		asked := o.typed(protocol.EventDecisionOpened).Decision
		wrong := &protocol.DecisionRespondParams{DecisionID: asked.ID, Choice: protocol.ChooseAllowOnce, ArgsHash: "other"}
		if _, err := d.Decisions.Respond(t.Context(), "cli_a", wrong); err == nil {
			t.Error("an approval of other arguments was taken")
		}
		must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", &protocol.DecisionRespondParams{
			DecisionID: asked.ID, Choice: choice, ArgsHash: asked.ArgsHash,
		}))
		return d.wait(t, turn).ToolCalls[0].Output
	}
	// unasked runs a turn whose call needs no approval.
	unaskedWith := func(t *testing.T, d *daemon, id protocol.SessionID, input string) protocol.ToolOutput {
		t.Helper()
		return d.turn(t, id, input).ToolCalls[0].Output
	}
	unasked := func(t *testing.T, d *daemon, id protocol.SessionID) protocol.ToolOutput {
		t.Helper()
		return unaskedWith(t, d, id, "go")
	}
	t.Run("reliability/P28 a rejected call does not run, and the model gets the reason", func(t *testing.T) {
		d := start(t, s)
		want := "The call was not allowed: the approval request was denied." // by whom, the daemon cannot know
		if out := once(t, d, d.session(t), protocol.ChooseReject); out.Failure == nil || out.Failure.Class != protocol.FailPermission || out.Failure.Message != want {
			t.Errorf("output %+v", out)
		}
	})
	t.Run("reliability/P28 allowSession covers the same command in the session, also after a restart, and no other command", func(t *testing.T) {
		d := start(t, s)
		id, other := d.session(t), d.session(t)
		if out := once(t, d, id, protocol.ChooseAllowSession); out.Text != "ran" {
			t.Errorf("output %+v", out)
		}
		d = d.restart(t, nil)
		if out := unasked(t, d, id); out.Text != "ran" {
			t.Errorf("output %+v", out)
		}
		once(t, d, other, protocol.ChooseReject)
	})
	t.Run("reliability/P28 allowAlways covers the workspace", func(t *testing.T) {
		d := start(t, s)
		cwd := t.TempDir()
		here := func() protocol.SessionID {
			return must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: cwd})).SessionID
		}
		once(t, d, here(), protocol.ChooseAllowAlways)
		if out := unasked(t, d, here()); out.Text != "ran" {
			t.Errorf("output %+v", out)
		}
		once(t, d, d.session(t), protocol.ChooseReject)
	})
	t.Run("reliability/P28 a standing answer covers exactly the arguments shown", func(t *testing.T) {
		for name, calls := range map[string][2]string{
			"a longer command":   {`{"command":"ls -d build"}`, `{"command":"ls -d build /etc"}`},
			"a path below":       {`{"path":"sub"}`, `{"path":"sub/deep"}`},
			"other arguments":    {`{"patch":"a"}`, `{"patch":"b"}`},
			"another tool's use": {`{"patch":"a"}`, `{}`},
		} {
			var turns []scripted.Turn
			for i, args := range calls {
				turns = append(turns, scripted.Turn{Match: &scripted.Match{LastUserContains: strconv.Itoa(i)}, Replies: []scripted.Reply{
					{ToolCalls: []scripted.Call{{Name: "run", Args: json.RawMessage(args)}}}, {Text: "done"},
				}})
			}
			two := s
			two.model = scripted.New(&scripted.Script{Turns: turns, Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "ok"}}}})
			d := start(t, two)
			id := d.session(t)
			o := d.observe(t, id)
			first := d.begin(t, id, "0").TurnID
			asked := o.typed(protocol.EventDecisionOpened).Decision
			must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", &protocol.DecisionRespondParams{
				DecisionID: asked.ID, Choice: protocol.ChooseAllowAlways, ArgsHash: asked.ArgsHash,
			}))
			d.wait(t, first)
			if out := unaskedWith(t, d, id, "0"); out.Text != "ran" {
				t.Errorf("%s: the same again: %+v", name, out)
			}
			second := d.begin(t, id, "1").TurnID
			again := o.typed(protocol.EventDecisionOpened).Decision
			if string(again.Call.Args) != calls[1] {
				t.Errorf("%s: asked about %s", name, again.Call.Args)
			}
			d.interrupt(t, second)
			d.wait(t, second)
		}
	})
	t.Run("reliability/P28 the strictest matching rule decides", func(t *testing.T) {
		strict := s
		strict.config = func(c *engine.Config) {
			c.Defaults.Approval = protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Rules: []protocol.ApprovalRule{
				{Tool: "run", Command: "go", Action: protocol.ApproveAllow}, {Tool: "r*", Command: "go test", Action: protocol.ApproveDeny},
			}}
		}
		d := start(t, strict)
		if out := unasked(t, d, d.session(t)); out.Failure == nil || out.Failure.Source != protocol.FromPolicy {
			t.Errorf("output %+v", out)
		}
	})
}

func TestApprovalOfWhatAToolReads(t *testing.T) {
	run := says("run", "ran")
	run.schema = `{"type":"object"}`
	only := func(c *engine.Config) {
		c.Defaults.Approval = protocol.ApprovalConfig{Mode: protocol.ApproveDeny, Rules: []protocol.ApprovalRule{{Tool: "run", Command: "git", Action: protocol.ApproveAllow}}}
	}
	for args, code := range map[string]string{
		`{"command":"git status"}`:                          "",
		`{"command":"rm -r x","Command":"git status"}`:      "denied",
		`{"command":"rm -r x","command":"git status"}`:      "invalid_tool_args",
		`{"command":"git status","in":{"a":1,"a":2}}`:       "invalid_tool_args",
		`{"command":"rm -r x","\u0063ommand":"git status"}`: "invalid_tool_args",
	} {
		t.Run("issue/5-6 peers/R5 a person and a rule see the arguments as the tool parses them: "+args, func(t *testing.T) {
			reply := scripted.Reply{ToolCalls: []scripted.Call{{ID: "c1", Name: "run", Args: json.RawMessage(args)}}}
			d := start(t, setup{model: replies(reply, scripted.Reply{Text: "done"}), tools: []tool.Provider{run}, config: only})
			got := ""
			if f := d.turn(t, d.session(t), "go").ToolCalls[0].Output.Failure; f != nil {
				got = f.Code
			}
			if got != code {
				t.Errorf("the call failed with %q, want %q", got, code)
			}
		})
	}
}

func TestStandingAnswers(t *testing.T) {
	for _, c := range []struct {
		row, first, second string
		varying            []string
		asked              bool
	}{
		{"the same command elsewhere is another call", `{"command":"rm -f *.o","workdir":"build"}`, `{"command":"rm -f *.o","workdir":"."}`, nil, true},
		{"the same command without a directory is another call", `{"command":"rm -f *.o","workdir":"build"}`, `{"command":"rm -f *.o"}`, nil, true},
		{"the same path with another content is another call", `{"path":"a","content":"x"}`, `{"path":"a","content":"y"}`, nil, true},
		{"the same with other numbers is another call", `{"path":"a","n":9007199254740993}`, `{"path":"a","n":9007199254740992}`, nil, true},
		{"nested values count as a whole", `{"path":"a","in":{"content":"x"}}`, `{"path":"a","in":{"content":"y"}}`, []string{"content"}, true},
		{"arguments declared as varying may differ", `{"path":"a","content":"x"}`, `{"path":"a","content":"y"}`, []string{"content"}, false},
		{"other arguments may not differ then", `{"path":"a","content":"x"}`, `{"path":"b","content":"x"}`, []string{"content"}, true},
		{"the order of arguments and white space change nothing", `{"command":"ls","workdir":"a"}`, `{ "workdir": "a", "command": "ls" }`, nil, false},
	} {
		t.Run("issue/2 reliability/P28 a standing answer covers all arguments: "+c.row, func(t *testing.T) {
			run := says("run", "ran")
			run.schema, run.contract.Varying = `{"type":"object"}`, c.varying
			var turns []scripted.Turn
			for i, args := range []string{c.first, c.second} {
				turns = append(turns, scripted.Turn{Match: &scripted.Match{LastUserContains: strconv.Itoa(i)}, Replies: []scripted.Reply{
					{ToolCalls: []scripted.Call{{Name: "run", Args: json.RawMessage(args)}}}, {Text: "done"},
				}})
			}
			d := start(t, setup{model: scripted.New(&scripted.Script{Turns: turns}), tools: []tool.Provider{run}, config: asking})
			id := d.session(t)
			o := d.observe(t, id)
			first := d.begin(t, id, "0").TurnID
			asked := o.typed(protocol.EventDecisionOpened).Decision
			must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", &protocol.DecisionRespondParams{
				DecisionID: asked.ID, Choice: protocol.ChooseAllowAlways, ArgsHash: asked.ArgsHash,
			}))
			d.wait(t, first)
			if told := strings.Contains(asked.Prompt, "may have other values for content"); told != strings.Contains(asked.Prompt, "other values") || told != (c.varying != nil) {
				t.Errorf("the person was asked %q", asked.Prompt)
			}
			must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{
				SessionID: id, Approval: &protocol.ApprovalConfig{Mode: protocol.ApproveAsk, DeadlineMs: 1}, // no client answers
			}))
			if out := d.turn(t, id, "1").ToolCalls[0].Output; (out.Failure != nil) != c.asked {
				t.Errorf("after %s, asked about %s: %v, want %v", c.first, c.second, out.Failure != nil, c.asked)
			}
		})
	}
}

func TestRulesOfToolsThatTellNothing(t *testing.T) {
	run := says("run", "ran")
	run.schema = `{"type":"object"}`
	for _, c := range []struct {
		row    string
		rule   protocol.ApprovalRule
		args   string
		denied bool
	}{
		{"a path above a denied place", protocol.ApprovalRule{Tool: "*", Path: "a/b", Action: protocol.ApproveDeny}, `{"path":"a"}`, true},
		{"a path beside a command", protocol.ApprovalRule{Tool: "*", Path: ".git", Action: protocol.ApproveDeny}, `{"command":"ls","path":".git/x"}`, true},
		{"a path beside an allowed command", protocol.ApprovalRule{Tool: "*", Command: "ls", Action: protocol.ApproveAllow}, `{"command":"ls","path":".git/x"}`, true},
		{"an allowed command", protocol.ApprovalRule{Tool: "*", Command: "ls", Action: protocol.ApproveAllow}, `{"command":"ls -l"}`, false},
		{"nothing, where only a place is allowed", protocol.ApprovalRule{Tool: "*", Path: "/", Action: protocol.ApproveAllow}, `{"file":"a"}`, true},
		{"an allowed path", protocol.ApprovalRule{Tool: "*", Path: "a", Action: protocol.ApproveAllow}, `{"path":"a/b"}`, false},
		{"a path that a shell takes apart", protocol.ApprovalRule{Tool: "*", Path: "a", Action: protocol.ApproveAllow}, `{"path":"a/b;c"}`, true},
		{"nothing, where a place is denied", protocol.ApprovalRule{Tool: "*", Path: "a", Action: protocol.ApproveDeny}, `{"file":"a"}`, false},
	} {
		t.Run("issue/2 a rule checks command and path of any tool: "+c.row, func(t *testing.T) {
			d := start(t, setup{model: replies(), tools: []tool.Provider{run}, config: func(config *engine.Config) {
				config.Defaults.Approval = protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Rules: []protocol.ApprovalRule{c.rule}}
				if c.rule.Action == protocol.ApproveAllow {
					config.Defaults.Approval.Mode = protocol.ApproveDeny
				}
			}})
			id := d.session(t)
			beside := []protocol.ClientTool{{ToolManifest: protocol.ToolManifest{Name: "another"}}} // which changes nothing
			must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), "cli_a", &protocol.SessionOverlayParams{SessionID: id, Tools: beside}))
			out := must[*protocol.ToolCallResult](t)(d.Tools.Call(t.Context(), &protocol.ToolCallParams{SessionID: id, Name: "run", Args: json.RawMessage(c.args)})).Output
			if got := out.Failure != nil; got != c.denied {
				t.Errorf("%s is denied: %v, want %v", c.args, got, c.denied)
			}
		})
	}
}

// TestRuleOfToolsBesideAClients has a rule about places, and a call that names none. It runs, also where a client has brought another tool.
func TestRuleOfToolsBesideAClients(t *testing.T) {
	run := says("run", "ran")
	run.schema = `{"type":"object"}`
	reply := scripted.Reply{ToolCalls: []scripted.Call{{ID: "c1", Name: "run", Args: json.RawMessage(`{"file":"a"}`)}}}
	d := start(t, setup{model: replies(reply), tools: []tool.Provider{run}})
	id := d.session(t)
	rules := []protocol.ApprovalRule{{Tool: "*", Path: "a", Action: protocol.ApproveDeny}}
	must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Approval: &protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Rules: rules}}))
	beside := []protocol.ClientTool{{ToolManifest: protocol.ToolManifest{Name: "another"}}}
	must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), "cli_a", &protocol.SessionOverlayParams{SessionID: id, Tools: beside}))
	d.asksAbout(t, "outside/29 a tool beside a client's", id, d.begin(t, id, "go").TurnID)
}
