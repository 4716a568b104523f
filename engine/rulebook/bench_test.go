package rulebook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/approval"
	"lashd/engine/rulebook"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// fixed are rules of a user that never change.
type fixed []protocol.ApprovalRule

func (f fixed) Rules() ([]protocol.ApprovalRule, int, string)     { return f, 1, "" }
func (fixed) Add(context.Context, protocol.ApprovalRule) error    { return nil }
func (fixed) Remove(context.Context, protocol.ApprovalRule) error { return nil }

// fiveHundred are rules about commands, paths and hosts. The first three decide over the calls of BenchmarkRules.
func fiveHundred() (rules fixed) {
	for i := range 200 {
		rules = append(rules, protocol.ApprovalRule{Command: fmt.Sprintf("tool%d run", i), Action: allow}, protocol.ApprovalRule{Path: fmt.Sprintf("dir%d/**/*.go", i), Action: deny})
		if i < 100 {
			rules = append(rules, protocol.ApprovalRule{Host: fmt.Sprintf("*.host%d.example.com", i), Action: allow})
		}
	}
	return rules
}

// shellTool is a tool whose arguments are its subject.
type shellTool struct{}

func (shellTool) Tools() []tool.Tool {
	return []tool.Tool{{Manifest: protocol.ToolManifest{Name: "shell", Kind: protocol.ToolKindExecute}, Contract: protocol.ToolContract{Replay: protocol.ReplayNever}}}
}

func (shellTool) Execute(context.Context, tool.Invocation) (tool.Result, error) {
	return tool.Result{}, nil
}

func (shellTool) Subjects(_ string, args json.RawMessage) []tool.Subject {
	var all []tool.Subject
	if json.Unmarshal(args, &all) != nil {
		return nil
	}
	return all
}

// BenchmarkRules decides over a call with 500 rules of the user, as the engine does, and the same with the three that matter: it looks up the rules, parses the call and judges it.
// The rows "links" also look where the paths of the rules lead, as the first call after two seconds does, and the rows "compile" parse
// all rules, as the first call of all does.
func BenchmarkRules(b *testing.B) {
	cwd, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	registry := tool.NewRegistry(nil, nil, protocol.ToolState{})
	if err := registry.Upsert("p", shellTool{}); err != nil {
		b.Fatal(err)
	}
	entry := registry.Same(protocol.ToolManifest{Name: "shell"})
	rules := fiveHundred()
	own := protocol.Policy{Cwd: cwd, Approval: protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace}}
	for name, subjects := range map[string][]tool.Subject{
		"command": {{Command: "tool0 run ./... && tool0 run x"}}, "path": {{Path: "dir0/a.go"}}, "host": {{Command: "tool0 run"}, {Host: "a.host0.example.com"}},
	} {
		args, err := json.Marshal(subjects)
		if err != nil {
			b.Fatal(err)
		}
		decide := func(book *rulebook.Book) {
			q := approval.Request{Call: approval.SubjectsOf(cwd, entry, args), Kind: protocol.ToolKindExecute, Ships: true, Programs: tool.ProgramsInside, Policies: book.Policies(own, nil, nil)}
			if v := q.Judge(approval.Answers{}); v.Why.Rule == nil {
				b.Fatalf("no rule decides: %+v", v)
			}
		}
		for _, n := range []int{500, 3} {
			b.Run(fmt.Sprintf("decide/%s/%d", name, n), func(b *testing.B) {
				book := rulebook.New(nil, rules[:n])
				for b.Loop() {
					decide(book)
				}
			})
		}
	}
	b.Run("compile", func(b *testing.B) {
		for b.Loop() {
			rulebook.New(nil, rules).Policies(own, nil, nil)
		}
	})
	b.Run("links", func(b *testing.B) {
		compiled := approval.Compile(cwd, protocol.LevelUser, "the user", rules)
		for b.Loop() {
			if !compiled.Current() {
				b.Fatal("a path leads elsewhere")
			}
		}
	})
}

func TestRulesFollowLinks(t *testing.T) {
	cwd, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(cwd, "link")
	synctest.Test(t, func(t *testing.T) {
		book := rulebook.New(nil, fixed{{Path: "link", Action: deny}, {Command: "go test", Action: allow}})
		policy := protocol.Policy{Cwd: cwd}
		first := book.Policies(policy, nil, nil)[0].Rules[0]
		time.Sleep(3 * time.Second) // longer than they are used without a look
		if book.Policies(policy, nil, nil)[0].Rules[0] != first {
			t.Error("issue/20-3 compiled rules whose paths lead where they led are compiled again")
		}
		if err := os.Symlink("/etc", link); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if book.Policies(policy, nil, nil)[0].Rules[0] == first {
			t.Error("issue/20-3 rules are as before although a path in them leads elsewhere")
		}
	})
}
