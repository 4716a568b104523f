package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"

	"lashd/engine/approval"
	"lashd/engine/change"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// tools is a provider of tools that do nothing.
type tools []tool.Tool

func (ts tools) Tools() []tool.Tool { return ts }

func (tools) Execute(context.Context, tool.Invocation) (tool.Result, error) {
	return tool.Result{}, nil
}

// entry returns a tool as a session's registry has it.
func entry(t testing.TB, name string, kind protocol.ToolKind, varying ...string) *tool.Entry {
	t.Helper()
	m := protocol.ToolManifest{Name: name, Kind: kind}
	r := tool.NewRegistry(nil, nil, protocol.ToolState{})
	if err := r.Upsert("p", tools{{Manifest: m, Contract: protocol.ToolContract{Replay: protocol.ReplayNever, Varying: varying}}}); err != nil {
		t.Fatal(err)
	}
	return r.Same(m)
}

const (
	allow = protocol.ApproveAllow
	asks  = protocol.ApproveAsk
	deny  = protocol.ApproveDeny
)

// policy returns a policy with a mode and with rules for tools.
func policy(mode protocol.ApprovalMode, rules ...protocol.ApprovalRule) protocol.Policy {
	return protocol.Policy{Cwd: "/w", Approval: protocol.ApprovalConfig{Mode: mode, Rules: rules}}
}

func TestVerdict(t *testing.T) {
	own := func(p protocol.Policy) approval.Policy { return approval.Policy{Policy: p, Own: true} }
	lax := policy(allow)
	laxer := policy(allow)
	laxer.Approval.Default = allow
	for _, c := range []struct {
		name string
		with func(*approval.Request)
		want approval.Verdict
	}{
		{"the mode decides without rules", func(q *approval.Request) { q.Policies = []approval.Policy{own(policy(asks))} }, approval.Verdict{Mode: asks, Silence: deny}},
		{"a tool that changes things is asked about without a mode", func(q *approval.Request) { q.Policies = []approval.Policy{own(policy(""))} }, approval.Verdict{Mode: asks, Silence: deny}},
		{"a tool that reads runs without a mode", func(q *approval.Request) {
			q.Policies, q.Kind = []approval.Policy{own(policy(""))}, protocol.ToolKindRead
		}, approval.Verdict{Mode: allow, Silence: allow}},
		{"a rule is stricter than the mode", func(q *approval.Request) {
			q.Policies = []approval.Policy{own(policy(allow, protocol.ApprovalRule{Tool: "ru*", Action: deny}))}
		}, approval.Verdict{Mode: deny, Silence: deny}},
		{"the strictest policy decides", func(q *approval.Request) { q.Policies = append(q.Policies, approval.Policy{Policy: policy(deny)}) }, approval.Verdict{Mode: deny, Beyond: true, Silence: deny}},
		{"a denial by the session's own policy is not beyond it", func(q *approval.Request) {
			q.Policies = []approval.Policy{own(policy(deny)), {Policy: policy(deny)}}
		}, approval.Verdict{Mode: deny, Silence: deny}},
		{"the answer to a later asker's question applies once", func(q *approval.Request) {
			q.Policies = append(q.Policies, approval.Policy{Policy: policy(asks), Late: true})
		}, approval.Verdict{Mode: asks, Beyond: true, Once: true, Silence: deny}},
		{"a tool that leaves the sandbox is asked about", func(q *approval.Request) { q.Escapes = true }, approval.Verdict{Mode: asks, Beyond: true, Once: true, Silence: deny}},
		{"nothing runs outside the roots", func(q *approval.Request) { q.Outside = true }, approval.Verdict{Mode: deny, Beyond: true}},
		{"an asker without tools causes no call", func(q *approval.Request) { q.Ceiling.NoTools = true }, approval.Verdict{Mode: deny, Beyond: true}},
		{"plan mode allows only reading", func(q *approval.Request) { q.Ceiling.ReadOnly = true }, approval.Verdict{Mode: deny, Planning: true}},
		{"plan mode allows reading", func(q *approval.Request) { q.Ceiling.ReadOnly, q.Kind = true, protocol.ToolKindSearch }, approval.Verdict{Mode: allow, Silence: allow}},
		{"a plugin requires an approval with its own default", func(q *approval.Request) { q.Wanted = &approval.Wanted{Default: allow} }, approval.Verdict{Mode: asks, Silence: allow}},
		{"without a default the session's default is used", func(q *approval.Request) {
			q.Policies, q.Wanted = []approval.Policy{own(laxer)}, &approval.Wanted{}
		}, approval.Verdict{Mode: asks, Silence: allow}},
		{"a plugin's default makes silence stricter", func(q *approval.Request) {
			p := policy(asks)
			p.Approval.Default = allow
			q.Policies, q.Wanted = []approval.Policy{own(p)}, &approval.Wanted{Default: deny}
		}, approval.Verdict{Mode: asks, Silence: deny}},
		{"a protected file is asked about each time", func(q *approval.Request) {
			q.Call = approval.SubjectsOf("/w", entry(t, "run", ""), []byte(`{"path":".git/config"}`))
		}, approval.Verdict{Mode: asks, Once: true, Silence: deny}},
		{"a protected file may be read", func(q *approval.Request) {
			q.Call, q.Kind = approval.SubjectsOf("/w", entry(t, "run", ""), []byte(`{"path":".git/config"}`)), protocol.ToolKindRead
		}, approval.Verdict{Mode: allow, Silence: allow}},
		{"a tool that replaces another one is also judged as that one", func(q *approval.Request) {
			q.Instead, q.Policies = approval.SubjectsOf("/w", entry(t, "other", ""), []byte(`{}`)), []approval.Policy{own(policy(allow, protocol.ApprovalRule{Tool: "other", Action: asks}))}
		}, approval.Verdict{Mode: asks, Silence: deny}},
		{"a replaced tool that changes a protected file is asked about", func(q *approval.Request) {
			args := []byte(`{"path":".git/config"}`)
			q.Call, q.Kind, q.Instead = approval.SubjectsOf("/w", entry(t, "run", ""), args), protocol.ToolKindRead, approval.SubjectsOf("/w", entry(t, "other", protocol.ToolKindEdit), args)
		}, approval.Verdict{Mode: asks, Once: true, Silence: deny}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := &approval.Request{Call: approval.SubjectsOf("/w", entry(t, "run", ""), []byte(`{}`)), Policies: []approval.Policy{own(lax)}}
			c.with(q)
			got := q.Judge(approval.Answers{})
			got.Why = protocol.ApprovalReason{} // TestReasons checks it
			if got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// TestReasons checks the sentence that says why lashd decides as it does.
func TestReasons(t *testing.T) {
	command := func(line string) json.RawMessage {
		text, err := json.Marshal(map[string]string{"command": line})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	push := protocol.ApprovalRule{Command: "git push", Action: deny}
	own := approval.Policy{Policy: policy(allow, push), Own: true}
	for _, c := range []struct {
		name     string
		policies []approval.Policy
		line     string
		mode     protocol.ApprovalMode
		want     protocol.ApprovalReason
	}{
		{"a rule", []approval.Policy{own}, "git push", deny, protocol.ApprovalReason{
			By: protocol.DecidedByRule, Rule: &push, Level: protocol.LevelSession, Text: "The rule `deny command git push` of the session decides.",
		}},
		{"a rule that may apply", []approval.Policy{own}, "$X push", asks, protocol.ApprovalReason{
			By: protocol.DecidedByRule, Rule: &push, Level: protocol.LevelSession, Text: "The rule `deny command git push` of the session may apply, and lashd cannot know whether it does.",
		}},
		{"a rule of a requester", []approval.Policy{{Policy: policy(allow), Own: true}, {Policy: policy(allow, push)}}, "git push", deny, protocol.ApprovalReason{
			By: protocol.DecidedByRule, Rule: &push, Level: protocol.LevelSession, Text: "The rule `deny command git push` of the session that requested this work decides.",
		}},
		{"a mode that denies, whatever a rule that may apply asks", []approval.Policy{{Policy: policy(deny, protocol.ApprovalRule{Command: "git push", Action: asks}), Own: true}}, "$X push", deny, protocol.ApprovalReason{By: protocol.DecidedByMode, Text: "The approval mode `deny` of the session decides."}},
		{"the mode", []approval.Policy{own}, "ls", allow, protocol.ApprovalReason{By: protocol.DecidedByMode, Text: "The approval mode `allow` of the session decides."}},
		{"no mode", []approval.Policy{{Policy: policy(""), Own: true}}, "ls", asks, protocol.ApprovalReason{By: protocol.DecidedByMode, Text: "No rule allows the call, and the tool can change something."}},
	} {
		t.Run("issue/20-3 lashd says why it decides: "+c.name, func(t *testing.T) {
			q := &approval.Request{Call: approval.SubjectsOf("/w", entry(t, "run", ""), command(c.line)), Policies: c.policies}
			if got := q.Judge(approval.Answers{}); got.Mode != c.mode || !reflect.DeepEqual(got.Why, c.want) {
				t.Errorf("%s because of %+v, want %s because of %+v", got.Mode, got.Why, c.mode, c.want)
			}
		})
	}
}

// store holds answers by directory.
type store map[string][]persistence.Approval

var errLost = errors.New("the store is lost")

func (s store) Approvals(_ context.Context, cwd ...string) ([]persistence.Approval, error) {
	if all, ok := s[cwd[0]]; ok {
		return all, nil
	}
	return nil, errLost
}

// TestStanding checks for which calls, where and how long a person's answer applies.
func TestStanding(t *testing.T) {
	answered := func(s *approval.Standing, choice protocol.DecisionChoice, cwd, args string, asked bool) *change.Change {
		c := change.New(change.Base{}, persistence.Commit{})
		d := protocol.Decision{Kind: protocol.DecisionApproval, Call: &protocol.ToolCall{Name: "run", Args: json.RawMessage(args)}, Varying: []string{"text"}}
		s.Remember(c, d, &protocol.DecisionAnswer{Choice: choice, By: "me"}, cwd, asked)
		if err := c.Finish(); err != nil {
			t.Fatal(err)
		}
		c.Land(persistence.Result{})
		return c
	}
	// judge judges a call with a session that asks about every call.
	judge := func(s approval.Standing, stored store, args string) protocol.ApprovalMode {
		q := &approval.Request{
			Call: approval.SubjectsOf("/w", entry(t, "run", "", "text"), json.RawMessage(args)), Policies: []approval.Policy{{Policy: policy(asks), Own: true}},
		}
		answers, err := s.For(t.Context(), stored, q.Policies)
		if err != nil {
			t.Fatal(err)
		}
		return q.Judge(answers).Mode
	}
	nothing := store{"/w": nil}
	var s approval.Standing
	if c := answered(&s, protocol.ChooseAllowOnce, "/w", `{"a":1}`, true); len(s) != 0 || len(c.Component)+len(c.Approve) != 0 {
		t.Errorf("an answer for one call is kept: %+v", s)
	}
	c := answered(&s, protocol.ChooseAllowSession, "/w", `{"a":1,"text":"x"}`, false)
	if len(c.Approve) != 0 || len(c.Component) != 1 || c.Component[0].Name != "approvals" {
		t.Errorf("stored are %+v and %+v", c.Component, c.Approve)
	}
	var again approval.Standing
	if err := json.Unmarshal(c.Component[0].Body, &again); err != nil || !slices.Equal(again, s) || len(s) != 1 {
		t.Errorf("stored is %s, remembered %+v: %v", c.Component[0].Body, s, err)
	}
	for args, want := range map[string]protocol.ApprovalMode{`{"a":1}`: allow, `{"text":"y","a":1}`: allow, `{"a":2}`: asks} {
		if got := judge(s, nothing, args); got != want {
			t.Errorf("with %s: %s, want %s", args, got, want)
		}
	}

	s = nil
	c = answered(&s, protocol.ChooseAllowAlways, "/w", `{"a":1}`, false)
	if len(s) != 0 || len(c.Approve) != 1 || c.Approve[0].Cwd != "/w" || c.Approve[0].By != "me" {
		t.Errorf("the session has %+v, the workspace %+v", s, c.Approve)
	}
	if got := judge(nil, store{"/w": c.Approve}, `{"a":1}`); got != allow {
		t.Errorf("what is allowed in the workspace: %s, want allow", got)
	}
	answered(&s, protocol.ChooseAllowAlways, "/w", `{"a":1}`, true)
	if len(s) != 1 {
		t.Errorf("a session created on request has %+v, want one answer", s)
	}
	if _, err := s.For(t.Context(), nothing, []approval.Policy{{Policy: protocol.Policy{Cwd: "/elsewhere"}}}); !errors.Is(err, errLost) {
		t.Errorf("%v, want %v", err, errLost)
	}
}
