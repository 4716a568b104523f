package workspace_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/builtin/workspace"
	"lashd/rpc/protocol"
)

// ruled is a session with one rule, in a workspace with links into its .git.
type ruled struct {
	*builtintest.Daemon
	dir string
	id  protocol.SessionID
}

func newRuled(t *testing.T, mode protocol.ApprovalMode, rule protocol.ApprovalRule) ruled {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{".git/hooks", "src/deep"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"hooks": ".git/hooks", "all": dir, "later": ".git/later", "deep": "src/deep", "src/out": "../.git", "loop": "loop", "tree": "src",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	rule.Path = strings.ReplaceAll(rule.Path, "DIR", dir)
	d := builtintest.Start(t, t.TempDir(), 0, builtintest.Calling(), new(workspace.Factory))
	id := builtintest.Must(d.Sessions.New(t.Context(), &protocol.SessionNewParams{
		Cwd: dir, Approval: &protocol.ApprovalConfig{Mode: mode, Rules: []protocol.ApprovalRule{rule}},
	}))(t).SessionID
	return ruled{d, dir, id}
}

// denied reports whether the rule denies a call.
func (r ruled) denied(t *testing.T, name string, args map[string]any) bool {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	out := builtintest.Must(r.Tools.Call(t.Context(), &protocol.ToolCallParams{SessionID: r.id, Name: name, Args: text}))(t).Output
	return out.Failure != nil && out.Failure.Code == "denied"
}

func TestRulesOfPaths(t *testing.T) {
	for _, c := range []struct {
		row     string
		action  protocol.ApprovalMode
		place   string
		matches string // paths to write, DIR is the workspace
		not     string
	}{
		{"however it is spelled", protocol.ApproveDeny, ".git", ".git/x .git/hooks/pre-commit none/../.git/x ./.git//x DIR/.git/hooks/x DIR/src/../.git/x", "src/x x .gitignore DIR/x"},
		{"whatever link leads there", protocol.ApproveDeny, ".git", "hooks/x DIR/hooks/x all/.git/x later src/out/x deep/../../.git/x tree/out/x", "deep/x all/x"},
		{"in whatever case", protocol.ApproveDeny, ".git", ".GIT/x .Git/hooks/x", "git/x"},
		{"also for a path that cannot be resolved", protocol.ApproveDeny, ".git", "loop/x " + strings.Repeat("a/", 2100) + "x", "x"},
		{"with a rule that is absolute", protocol.ApproveDeny, "DIR/.git", ".git/x DIR/.git/x hooks/x", "src/x"},
		{"with a pattern for names", protocol.ApproveDeny, "**/.env", ".env src/.env src/deep/.ENV DIR/src/.env tree/.env src/.env/x", "src/env x.env src/.envx"},
		{"with a pattern in a directory", protocol.ApproveDeny, "src/*.key", "src/a.key src/A.KEY tree/a.key src/a.key/x", "a.key src/deep/a.key src/key"},
		{"with a pattern for all below", protocol.ApproveDeny, "src/**", "src/x src/deep/x tree/x deep/x", "x srcs/x"},
		{"an allowed pattern", protocol.ApproveAllow, "src/**/*.go", "src/a.go src/deep/a.go src/none/x/a.go", "a.go tree/a.go src/a.md src/out/a.go src/A.GO/../../x"},
		{"with a rule that ends in a slash", protocol.ApproveDeny, ".git/", ".git/x DIR/.git/x", "src/x .gitignore"},
		{"with a rule that names a link", protocol.ApproveDeny, "hooks", "hooks/x .git/hooks/x DIR/.git/hooks/x", ".git/x src/x"},
		{"an allowed place by any path", protocol.ApproveAllow, "src", "src/x DIR/src/x src/deep/x deep/../src/x", "x src/../x src/out/x src/out/hooks/x DIR/x SRC/x deep/x loop/x src/../.git/x"},
		{"what is allowed by a link is where it leads", protocol.ApproveAllow, "tree", "tree/x tree/deep/x src/x", "x tree/out/x"},
	} {
		t.Run("issue/2 a rule applies to a place, "+c.row, func(t *testing.T) {
			mode := protocol.ApproveAllow
			if c.action == protocol.ApproveAllow {
				mode = protocol.ApproveDeny
			}
			r := newRuled(t, mode, protocol.ApprovalRule{Tool: "write", Path: c.place, Action: c.action})
			for _, part := range []struct {
				paths string
				match bool
			}{{c.matches, true}, {c.not, false}} {
				for path := range strings.FieldsSeq(strings.ReplaceAll(part.paths, "DIR", r.dir)) {
					want := part.match == (c.action == protocol.ApproveDeny)
					if got := r.denied(t, "write", map[string]any{"path": path, "content": "x"}); got != want {
						t.Errorf("write %.100s is denied: %v, want %v", path, got, want)
					}
				}
			}
		})
	}
}

func TestRulesOfToolsWithSeveralPaths(t *testing.T) {
	patch := func(lines ...string) map[string]any {
		return map[string]any{"patch": "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch\n"}
	}
	deny, allow := protocol.ApproveDeny, protocol.ApproveAllow
	for _, c := range []struct {
		row    string
		action protocol.ApprovalMode
		place  string
		name   string
		args   map[string]any
		denied bool
	}{
		{"a denied file that a patch adds", deny, ".git", "patch", patch("*** Add File: .git/hooks/pre-commit", "+x"), true},
		{"the second file of a patch is denied", deny, ".git", "patch", patch("*** Add File: src/x", "+x", "*** Add File: hooks/pre-commit", "+x"), true},
		{"a denied file that a patch changes", deny, ".git", "patch", patch("*** Update File: .git/config", "-x", "+y"), true},
		{"a denied file that a patch takes away", deny, ".git", "patch", patch("*** Delete File: DIR/.git/config"), true},
		{"a denied place that a patch moves a file to", deny, ".git", "patch", patch("*** Update File: src/a", "*** Move to: .git/hooks/pre-commit"), true},
		{"no file that a patch only has text of", deny, ".git", "patch", patch("*** Add File: src/x", "+*** Add File: .git/x"), false},
		{"a patch in an allowed place", allow, "src", "patch", patch("*** Add File: src/x", "+x", "*** Add File: src/y", "+y"), false},
		{"a patch that is not all in an allowed place", allow, "src", "patch", patch("*** Add File: src/x", "+x", "*** Add File: y", "+y"), true},
		{"a patch that is none", allow, "src", "patch", map[string]any{"patch": "src"}, true},
		{"a search above the denied place", deny, "src/deep", "grep", map[string]any{"pattern": "x"}, true},
		{"a search above the denied place, by name", deny, "src/deep", "grep", map[string]any{"pattern": "x", "path": "DIR/src/"}, true},
		{"a search above the denied place, by a link", deny, "src/deep", "grep", map[string]any{"pattern": "x", "path": "tree"}, true},
		{"a search beside the denied place", deny, "src/deep", "grep", map[string]any{"pattern": "x", "path": "src/other"}, false},
		{"a search above that skips the denied place", deny, ".git", "grep", map[string]any{"pattern": "x"}, false},
		{"a search in what others skip, above the denied place", deny, ".git/hooks", "grep", map[string]any{"pattern": "x", "path": ".git"}, true},
		{"a search in part of an allowed place", allow, "src", "grep", map[string]any{"pattern": "x", "path": "src/deep"}, false},
		{"a search beyond an allowed place", allow, "src", "grep", map[string]any{"pattern": "x"}, true},
		{"a list of names in a denied pattern", deny, "src/d*", "list", map[string]any{"path": "src/deep"}, true},
		{"a list of names above the denied place", deny, "src/deep", "list", map[string]any{}, false},
		{"a list of names in the denied place", deny, "src/deep", "list", map[string]any{"path": "deep"}, true},
	} {
		t.Run("issue/2 a rule sees all paths of a call: "+c.row, func(t *testing.T) {
			mode := allow
			if c.action == allow {
				mode = deny
			}
			r := newRuled(t, mode, protocol.ApprovalRule{Tool: "*", Path: c.place, Action: c.action})
			for name, arg := range c.args {
				c.args[name] = strings.ReplaceAll(arg.(string), "DIR", r.dir)
			}
			if got := r.denied(t, c.name, c.args); got != c.denied {
				t.Errorf("%s %v is denied: %v, want %v", c.name, c.args, got, c.denied)
			}
		})
	}
}
