package approval

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// idle provides a tool that does nothing.
type idle struct{}

func (idle) Tools() []tool.Tool {
	return []tool.Tool{{Manifest: protocol.ToolManifest{Name: "shell", Kind: protocol.ToolKindExecute}, Contract: protocol.ToolContract{Replay: protocol.ReplayNever}}}
}

func (idle) Execute(context.Context, tool.Invocation) (tool.Result, error) { return tool.Result{}, nil }

func (idle) Subjects(_ string, args json.RawMessage) []tool.Subject {
	var about tool.Subject
	if json.Unmarshal(args, &about) != nil {
		return nil
	}
	return []tool.Subject{about}
}

// subjectsOf returns the subjects of a call of the tool.
func subjectsOf(t interface{ Fatal(...any) }, args map[string]string) *Subjects {
	r := tool.NewRegistry(nil, nil, protocol.ToolState{})
	text, err := json.Marshal(args)
	if err == nil {
		err = r.Upsert("p", idle{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return SubjectsOf("/w", r.Same(protocol.ToolManifest{Name: "shell"}), text)
}

// TestIndexOfRules compares decisions by the index with decisions by all rules.
func TestIndexOfRules(t *testing.T) {
	commands := rapid.SampledFrom([]string{
		"go test", "go", "git push", "rm", "./go test", "/bin/rm -r x", "sudo rm", "RM x", "python -c 'rm x'", "$X", "r*", "go test; rm x", "cd a && ./rm", "echo rm | sh", "./x/rm", "a | b", "git -C d push",
	})
	paths := rapid.SampledFrom([]string{"a", "a/b", "A/B", "**/.env", ".env", "x/.env", "a/*", "/w", ".", "/", "*.go", "x.go", "../w/a", "a/b/c.go", "**/*.go", "[", "a/**"})
	actions := rapid.SampledFrom([]protocol.ApprovalMode{"allow", "ask", "deny"})
	rules := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) protocol.ApprovalRule {
		r := protocol.ApprovalRule{Action: actions.Draw(t, "action")}
		switch rapid.IntRange(0, 4).Draw(t, "limit") {
		case 0:
			r.Tool = "sh*"
		case 1, 2:
			r.Command = commands.Draw(t, "command")
		default:
			r.Path = paths.Draw(t, "path")
		}
		return r
	}), 1, 6)
	matched := 0
	t.Run("issue/20-3 a decision by the index of rules is that by all rules", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			rs := Compile("/w", protocol.LevelUser, "the user", rules.Draw(t, "rules"))
			args := map[string]string{"command": commands.Draw(t, "line")}
			if rapid.Bool().Draw(t, "path") {
				args = map[string]string{"path": paths.Draw(t, "at")}
			}
			about := subjectsOf(t, args)
			got, sure := rs.decide(about, true)
			want, surely := finding{}, false
			for _, r := range rs.all {
				action, applies := r.action(about, true)
				surely = surely || applies
				want = stricter(want, finding{mode: action, rule: r})
			}
			if got.mode != want.mode || sure != surely {
				t.Fatalf("%v: %q %v, want %q %v", args, got.mode, sure, want.mode, surely)
			}
			if want.mode != "" {
				matched++
			}
		})
	})
	if matched == 0 {
		t.Error("no rule matched")
	}
}

// TestIndexOfHosts compares decisions about hosts by the index with decisions by all rules.
func TestIndexOfHosts(t *testing.T) {
	patterns := rapid.SampledFrom([]string{"a.b.c", "*.b.c", "*.c", "c", "*", "b.c:8080", "*.b.c:443", "1.2.3.4", "1.2.3.4:80", "[::1]", "::ffff:1.2.3.4", "/broken"})
	hosts := rapid.SampledFrom([]string{"a.b.c", "b.c", "x.a.b.c", "c", "xb.c", "b.c:8080", "1.2.3.4", "::1", "[::1]:80", "A.B.C."})
	actions := rapid.SampledFrom([]protocol.ApprovalMode{"allow", "ask", "deny"})
	rules := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) protocol.ApprovalRule {
		return protocol.ApprovalRule{Host: patterns.Draw(t, "pattern"), Action: actions.Draw(t, "action")}
	}), 1, 6)
	t.Run("issue/20-3 a decision about a host by the index of rules is that by all rules", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			rs := Compile("/w", protocol.LevelUser, "the user", rules.Draw(t, "rules"))
			h := namedHost(hosts.Draw(t, "host"))
			about := subjectsOf(t, map[string]string{"command": "x"})
			want := finding{}
			for _, r := range rs.hosts {
				if r.decidesHost(h) {
					want = stricter(want, finding{mode: r.Action, rule: r})
				}
			}
			if got := rs.decideHost(about, h, true); got != want {
				t.Fatalf("%v: %+v, want %+v", h, got, want)
			}
		})
	})
}

// BenchmarkDecision judges a call with 500 rules, parsed before.
func BenchmarkDecision(b *testing.B) {
	var rules []protocol.ApprovalRule
	for i := range 250 {
		rules = append(rules, protocol.ApprovalRule{Command: fmt.Sprintf("tool%d run", i), Action: protocol.ApproveAllow}, protocol.ApprovalRule{Path: fmt.Sprintf("dir%d/**/*.go", i), Action: protocol.ApproveDeny})
	}
	rs := []*Rules{Compile("/w", protocol.LevelUser, "the user", rules)}
	for name, args := range map[string]map[string]string{"command": {"command": "tool7 run ./... && tool7 run x"}, "path": {"path": "dir7/a.go"}} {
		b.Run(name, func(b *testing.B) {
			about := subjectsOf(b, args)
			q := &Request{Call: about, Kind: protocol.ToolKindExecute, Ships: true, Policies: []Policy{{Policy: protocol.Policy{Cwd: "/w"}, Own: true, Rules: rs}}}
			for b.Loop() {
				q.Judge(Answers{})
			}
		})
	}
}
