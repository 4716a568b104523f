package commandrule_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"lashd/engine/commandrule"
	"lashd/internal/pathresolve"
)

// row is one case of the table.
type row struct{ action, prefix, verdict, command string }

// table reads testdata/rules.txt.
func table(t testing.TB, workspace string) (all []row) {
	t.Helper()
	f, err := os.Open("testdata/rules.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if lines.Text() == "" || strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		fields := strings.SplitN(lines.Text(), "\t", 4)
		if len(fields) != 4 {
			t.Fatalf("not a row: %q", lines.Text())
		}
		r := row{fields[0], fields[1], fields[2], fields[3]}
		if len(r.command) > 1 && r.command[0] == '"' && r.command[len(r.command)-1] == '"' {
			if r.command, err = strconv.Unquote(r.command); err != nil {
				t.Fatalf("%q: %v", lines.Text(), err)
			}
		}
		r.command = strings.ReplaceAll(r.command, "WS", workspace)
		all = append(all, r)
	}
	return all
}

// newWorkspace creates the files that the table names.
func newWorkspace(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws := filepath.Join(dir, "ws")
	for _, name := range []string{"scripts/run.sh", "scripts/deep/run.sh", "evil.sh", "git/evil.sh", "scripts2/run.sh", "../elsewhere/run.sh", "../bin/touch"} {
		put(t, filepath.Join(ws, name), "#!/bin/sh\n")
	}
	for link, target := range map[string]string{"out": "../elsewhere", "tools": "scripts", "t": "../bin/touch"} {
		if err := os.Symlink(target, filepath.Join(ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	return ws
}

func put(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// in resolves paths in a workspace.
func in(workspace string) commandrule.Where {
	return func(dir, name string) pathresolve.Places { return pathresolve.Of(filepath.Join(workspace, dir), name) }
}

// verdict returns the result of a rule for a command in the table's notation.
func verdict(r row, workspace string) string {
	line, prefix := commandrule.Parse(r.command), commandrule.ParsePrefix(r.prefix)
	if r.action == "allow" {
		return map[bool]string{true: "covers", false: "-"}[line.Covers(prefix, "", in(workspace))]
	}
	return map[commandrule.Match]string{commandrule.No: "-", commandrule.Maybe: "maybe", commandrule.Yes: "about"}[line.About(prefix, "", in(workspace))]
}

func TestRules(t *testing.T) {
	ws := newWorkspace(t)
	all := table(t, ws)
	if len(all) < 150 {
		t.Fatalf("the table has %d rows", len(all))
	}
	for _, r := range all {
		t.Run("outside/6 "+r.action+" "+r.prefix+": "+r.command, func(t *testing.T) {
			if got := verdict(r, ws); got != r.verdict {
				t.Errorf("%s %q, %q: %s, want %s", r.action, r.prefix, r.command, got, r.verdict)
			}
		})
	}
}
