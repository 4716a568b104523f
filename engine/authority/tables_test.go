package authority_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/authority"
	"lashd/rpc/protocol"
)

// policy returns a policy with a directory, a driver and a mode.
func policy(cwd, driver string, mode protocol.ApprovalMode) protocol.Policy {
	return protocol.Policy{Cwd: cwd, Driver: driver, Approval: protocol.ApprovalConfig{Mode: mode}}
}

func TestMeet(t *testing.T) {
	a, ab, ac := []string{"a"}, []string{"a", "b"}, []string{"a", "c"}
	p, q := policy("/w", "d", "ask"), policy("/w", "d", "deny")
	for name, c := range map[string]struct{ x, y, want protocol.Ceiling }{
		"nothing":                {},
		"tools of one":           {protocol.Ceiling{Tools: ab}, protocol.Ceiling{}, protocol.Ceiling{Tools: ab}},
		"tools of the other":     {protocol.Ceiling{}, protocol.Ceiling{Tools: ab}, protocol.Ceiling{Tools: ab}},
		"tools of both":          {protocol.Ceiling{Tools: ab}, protocol.Ceiling{Tools: ac}, protocol.Ceiling{Tools: a}},
		"no tool of both":        {protocol.Ceiling{Tools: a}, protocol.Ceiling{Tools: []string{"c"}}, protocol.Ceiling{Tools: []string{}, NoTools: true}},
		"no tools of one":        {protocol.Ceiling{NoTools: true}, protocol.Ceiling{Tools: ab}, protocol.Ceiling{NoTools: true}},
		"no tools of the other":  {protocol.Ceiling{Tools: ab}, protocol.Ceiling{NoTools: true}, protocol.Ceiling{NoTools: true}},
		"hidden":                 {protocol.Ceiling{Hidden: ab}, protocol.Ceiling{Hidden: ac}, protocol.Ceiling{Hidden: []string{"a", "b", "c"}}},
		"a sandbox":              {protocol.Ceiling{Sandboxed: true}, protocol.Ceiling{}, protocol.Ceiling{Sandboxed: true}},
		"a sandbox of the other": {protocol.Ceiling{}, protocol.Ceiling{Sandboxed: true}, protocol.Ceiling{Sandboxed: true}},
		"policies, each once":    {protocol.Ceiling{Policies: []protocol.Policy{p}}, protocol.Ceiling{Policies: []protocol.Policy{q, p}}, protocol.Ceiling{Policies: []protocol.Policy{p, q}}},
	} {
		if diff := cmp.Diff(c.want, authority.Meet(c.x, c.y)); diff != "" {
			t.Errorf("outside/29 %s: %s", name, diff)
		}
	}
	if got := authority.MeetAll(nil, &protocol.Ceiling{}); got != nil {
		t.Errorf("outside/29 nothing is limited by %+v", got)
	}
	if got := authority.Of(&protocol.Session{}); len(got.Roots) != 0 {
		t.Errorf("outside/29 a session without a directory has the roots %q", got.Roots)
	}
}

func TestWithin(t *testing.T) {
	ask, deny := policy("/w", "d", "ask"), policy("/w", "d", "deny")
	tools := func(names ...string) protocol.Ceiling { return protocol.Ceiling{Tools: names} }
	for name, c := range map[string]struct {
		a, b  protocol.Ceiling
		holds bool
	}{
		"everything in everything":   {protocol.Ceiling{}, protocol.Ceiling{}, true},
		"tools in everything":        {tools("a"), protocol.Ceiling{}, true},
		"everything in tools":        {protocol.Ceiling{}, tools("a"), false},
		"fewer tools":                {tools("a"), tools("a", "b"), true},
		"another tool":               {tools("a", "c"), tools("a", "b"), false},
		"no tools in tools":          {protocol.Ceiling{NoTools: true}, tools("a"), true},
		"no tools in hidden":         {protocol.Ceiling{NoTools: true}, protocol.Ceiling{Hidden: []string{"x"}}, true},
		"tools in no tools":          {tools("a"), protocol.Ceiling{NoTools: true}, false},
		"everything in no tools":     {protocol.Ceiling{}, protocol.Ceiling{NoTools: true}, false},
		"hidden as well":             {protocol.Ceiling{Hidden: []string{"x", "y"}}, protocol.Ceiling{Hidden: []string{"x"}}, true},
		"not hidden":                 {protocol.Ceiling{Hidden: []string{"y"}}, protocol.Ceiling{Hidden: []string{"x"}}, false},
		"in the sandbox":             {protocol.Ceiling{Sandboxed: true}, protocol.Ceiling{Sandboxed: true}, true},
		"out of the sandbox":         {protocol.Ceiling{}, protocol.Ceiling{Sandboxed: true}, false},
		"a root below":               {protocol.Ceiling{Roots: []string{"/w/a"}}, protocol.Ceiling{Roots: []string{"/w"}}, true},
		"a root beside":              {protocol.Ceiling{Roots: []string{"/wide"}}, protocol.Ceiling{Roots: []string{"/w"}}, false},
		"without a root":             {protocol.Ceiling{}, protocol.Ceiling{Roots: []string{"/w"}}, false},
		"a stricter policy":          {protocol.Ceiling{Policies: []protocol.Policy{deny}}, protocol.Ceiling{Policies: []protocol.Policy{ask}}, true},
		"a laxer policy":             {protocol.Ceiling{Policies: []protocol.Policy{ask}}, protocol.Ceiling{Policies: []protocol.Policy{deny}}, false},
		"a policy of another place":  {protocol.Ceiling{Policies: []protocol.Policy{policy("/x", "d", "deny")}}, protocol.Ceiling{Policies: []protocol.Policy{ask}}, false},
		"a policy of another driver": {protocol.Ceiling{Policies: []protocol.Policy{policy("/w", "e", "deny")}}, protocol.Ceiling{Policies: []protocol.Policy{ask}}, false},
	} {
		if got := authority.Within(c.a, c.b); got != c.holds {
			t.Errorf("outside/29 %s: %v", name, got)
		}
	}
	covered := protocol.Ceiling{Policies: []protocol.Policy{deny}}
	if got := authority.Beyond(protocol.Ceiling{Policies: []protocol.Policy{ask}}, covered); got != nil {
		t.Errorf("outside/29 what is covered leaves %+v", got)
	}
	got := authority.Beyond(protocol.Ceiling{Policies: []protocol.Policy{ask}, Sandboxed: true}, covered)
	if diff := cmp.Diff(&protocol.Ceiling{Policies: []protocol.Policy{}, Sandboxed: true}, got); diff != "" {
		t.Errorf("outside/29 beyond what is covered: %s", diff)
	}
}

func TestCalls(t *testing.T) {
	for name, c := range map[string]struct {
		ceiling protocol.Ceiling
		want    bool
	}{
		"no limit":    {protocol.Ceiling{}, true},
		"its own":     {protocol.Ceiling{Tools: []string{"x"}}, true},
		"others":      {protocol.Ceiling{Tools: []string{"y"}}, false},
		"none":        {protocol.Ceiling{NoTools: true}, false},
		"hidden":      {protocol.Ceiling{Hidden: []string{"x"}}, false},
		"hidden, too": {protocol.Ceiling{Tools: []string{"x"}, Hidden: []string{"x"}}, false},
	} {
		if got := authority.Calls(c.ceiling, "x"); got != c.want {
			t.Errorf("outside/29 %s: %v", name, got)
		}
	}
}

// refused checks the pointer of a refusal; empty: no refusal.
func refused(t *testing.T, name string, err error, pointer string) {
	t.Helper()
	r, _ := errors.AsType[*authority.Refusal](err)
	if (err != nil) != (pointer != "") || r != nil && r.Pointer != pointer {
		t.Errorf("outside/29 %s: %v, want a refusal of %q", name, err, pointer)
	}
}

func TestNarrow(t *testing.T) {
	type a = protocol.Authority
	ab := []string{"a", "b"}
	for name, c := range map[string]struct {
		other, asked, want a
		pointer            string
	}{
		"tools that it has":     {a{Tools: ab}, a{Tools: []string{"b", "c"}}, a{Tools: []string{"b"}}, ""},
		"tools that it lacks":   {a{Tools: ab}, a{Tools: []string{"c"}}, a{}, "/authority/tools"},
		"without asking":        {a{Tools: ab}, a{}, a{Tools: ab}, ""},
		"tools of all":          {a{}, a{Tools: ab}, a{Tools: ab}, ""},
		"no tools of all":       {a{Tools: ab}, a{NoTools: true}, a{NoTools: true}, ""},
		"tools of none":         {a{NoTools: true}, a{Tools: ab}, a{}, "/authority/tools"},
		"nothing of none":       {a{NoTools: true}, a{}, a{NoTools: true}, ""},
		"no tools of none":      {a{NoTools: true}, a{NoTools: true}, a{NoTools: true}, ""},
		"hidden by one or both": {a{Hidden: []string{"y", "x"}}, a{Hidden: []string{"x", "z"}}, a{Hidden: []string{"x", "y", "z"}}, ""},
	} {
		got, err := authority.Narrow(c.other, c.asked)
		refused(t, name, err, c.pointer)
		if diff := cmp.Diff(c.want, got); diff != "" && err == nil {
			t.Errorf("outside/29 %s: %s", name, diff)
		}
	}
}

func TestNarrowTo(t *testing.T) {
	_, err := authority.NarrowTo(protocol.Ceiling{NoTools: true}, protocol.Authority{Tools: []string{"a"}})
	refused(t, "tools under a ceiling of none", err, "/authority/tools")
	got, err := authority.NarrowTo(protocol.Ceiling{Tools: []string{"a"}, Hidden: []string{"x"}, Sandboxed: true}, protocol.Authority{})
	want := protocol.Authority{Tools: []string{"a"}, Hidden: []string{"x"}, Ceiling: &protocol.Ceiling{Sandboxed: true}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("outside/29 %v %s", err, diff)
	}
	var many protocol.Ceiling
	for i := range authority.MaxPolicies + 1 {
		_, err := authority.NarrowTo(many, protocol.Authority{})
		if err != nil {
			t.Fatalf("outside/29 with %d policies: %v", i, err)
		}
		many.Policies = append(many.Policies, policy(fmt.Sprint("/", i), "", "ask"))
	}
	if _, err := authority.NarrowTo(many, protocol.Authority{}); !errors.Is(err, authority.ErrTooMany) {
		t.Errorf("outside/29 one policy too many: %v", err)
	}
}

func TestDepths(t *testing.T) {
	type depth = protocol.Subagent
	at := func(d, most int) *depth { return &depth{Depth: d, MaxDepth: most} }
	const depthPointer, mostPointer = "/authority/subagent/depth", "/authority/subagent/maxDepth"
	for name, c := range map[string]struct {
		above, asked *depth
		noTools      bool
		want         *depth
		pointer      string
	}{
		"below a person's":           {},
		"asked below a person's":     {asked: at(1, 3), want: at(1, 3)},
		"deeper below a person's":    {asked: at(2, 3), pointer: depthPointer},
		"as deep as it is":           {above: at(1, 3), want: &depth{Parent: "p", Depth: 2, MaxDepth: 3}},
		"asked one below":            {above: at(1, 3), asked: at(2, 3), want: at(2, 3)},
		"asked beside":               {above: at(1, 3), asked: at(1, 3), pointer: depthPointer},
		"asked with more below":      {above: at(1, 3), asked: at(2, 4), pointer: mostPointer},
		"asked with less below":      {above: at(1, 3), asked: at(2, 2), want: at(2, 2)},
		"asked below the deepest":    {above: at(3, 3), asked: at(4, 3), pointer: depthPointer},
		"below the deepest":          {above: at(3, 3), pointer: depthPointer},
		"below the deepest, no tool": {above: at(3, 3), noTools: true, want: &depth{Parent: "p", Depth: 3, MaxDepth: 3}},
		"no tool":                    {above: at(1, 3), noTools: true, want: &depth{Parent: "p", Depth: 2, MaxDepth: 3}},
	} {
		parent := &protocol.Session{ID: "p", Authority: protocol.Authority{Subagent: c.above}}
		got, err := authority.Below(parent, protocol.Authority{Subagent: c.asked, NoTools: c.noTools})
		refused(t, name, err, c.pointer)
		if diff := cmp.Diff(c.want, got); diff != "" && err == nil {
			t.Errorf("outside/29 %s: %s", name, diff)
		}
	}
	child := protocol.Relation{Kind: protocol.RelationChild, Parent: "q"}
	for name, c := range map[string]struct {
		by, got  *depth
		relation protocol.Relation
		want     *depth
		pointer  string
	}{
		"asked by a person's session": {got: at(1, 9), want: at(1, 9)},
		"a root":                      {by: at(1, 3), want: at(1, 3)},
		"a child":                     {by: at(1, 3), relation: child, want: &depth{Parent: "q", Depth: 2, MaxDepth: 3}},
		"a child of the deepest":      {by: at(3, 3), relation: child, pointer: "/relation/kind"},
		"a root of the deepest":       {by: at(3, 3), want: at(3, 3)},
		"with more below it":          {by: at(1, 3), got: &depth{Parent: "r", Depth: 1, MaxDepth: 4}, want: &depth{Parent: "r", Depth: 1, MaxDepth: 3}},
		"with as much below it":       {by: at(1, 3), got: at(2, 4), want: at(2, 4)},
	} {
		got, err := authority.Deep(c.by, c.got, c.relation)
		refused(t, name, err, c.pointer)
		if diff := cmp.Diff(c.want, got); diff != "" && err == nil {
			t.Errorf("outside/29 %s: %s", name, diff)
		}
	}
}

func TestAskersInSandboxes(t *testing.T) {
	inside := authority.InSandbox(authority.FromSandbox(t.Context()))
	if inside == nil || !inside.Sandboxed || authority.InSandbox(t.Context()) != nil || authority.Sandboxed(false) != nil {
		t.Errorf("outside/29 in a sandbox %+v, outside %+v", inside, authority.InSandbox(t.Context()))
	}
	same := protocol.ApprovalConfig{Mode: "ask", Rules: []protocol.ApprovalRule{{Tool: "x", Action: "ask"}}}
	if err := authority.Stricter(same, protocol.ApprovalConfig{Mode: "ask"}); err != nil {
		t.Errorf("outside/29 a rule that asks where the mode asks: %v", err)
	}
}

func TestMutated(t *testing.T) {
	config := func(mode protocol.ApprovalMode, options ...string) protocol.Config {
		c := protocol.Config{Approval: protocol.ApprovalConfig{Mode: mode}}
		for i := 0; i+1 < len(options); i += 2 {
			if c.Options == nil {
				c.Options = protocol.PluginOptions{}
			}
			c.Options[options[i]] = []byte(options[i+1])
		}
		return c
	}
	odd := config("ask")
	odd.Approval.Rules = []protocol.ApprovalRule{{Tool: "x", Action: "allow"}, {Tool: "x", Action: "nonsense"}}
	for name, c := range map[string]struct {
		next, before protocol.Config
		holds        bool
	}{
		"nothing":                   {config("ask"), config("ask"), true},
		"nothing, of a wrong rule":  {odd, odd, true},
		"stricter":                  {config("deny"), config("ask"), true},
		"laxer":                     {config("allow"), config("ask"), false},
		"its own options":           {config("ask", "me", `1`), config("ask"), true},
		"its own options dropped":   {config("ask"), config("ask", "me", `1`), true},
		"options of another":        {config("ask", "other", `1`), config("ask"), false},
		"options of another gone":   {config("ask"), config("ask", "other", `1`), false},
		"written in another way":    {config("ask", "other", `{"b":1,"a":2}`), config("ask", "other", `{ "a": 2, "b": 1 }`), true},
		"another large number":      {config("ask", "other", `9007199254740993`), config("ask", "other", `9007199254740992`), false},
		"options that are no JSON":  {config("ask", "other", `{`), config("ask", "other", `1`), false},
		"options that were no JSON": {config("ask", "other", `1`), config("ask", "other", `{`), false},
		"never any JSON":            {config("ask", "other", `{`), config("ask", "other", `[`), false},
		"no JSON, unchanged":        {config("ask", "other", `{`), config("ask", "other", `{`), true},
		"null instead of no JSON":   {config("ask", "other", `null`), config("ask", "other", `{`), false},
		"no JSON instead of null":   {config("ask", "other", `{`), config("ask", "other", `null`), false},
	} {
		if err := authority.Mutated("me", c.next, c.before); (err == nil) != c.holds {
			t.Errorf("outside/29 %s: %v", name, err)
		}
	}
}
