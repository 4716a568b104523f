//go:build unix

package e2e

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPluginDev checks what lash plugin dev prints while a plugin is edited.
func TestPluginDev(t *testing.T) {
	a := &author{world: newWorld(t, "allow"), language: languages[0]}
	a.has(a.name)
	a.dir = filepath.Join(a.work, "guard")
	a.lashd("plugin", "new", "--lang", a.name, "guard", a.dir)
	temp := filepath.Join(a.user, "tmp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := a.command("plugin", "dev", a.dir)
	cmd.Env = append(cmd.Env, "TMPDIR="+temp)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(patience, func() { cmd.Process.Kill() }).Stop()
	lines := bufio.NewScanner(out)
	sees := func(want ...string) {
		t.Helper()
		for _, w := range want {
			for found := false; !found; {
				if !lines.Scan() {
					t.Fatalf("issue/4-9 it exited without printing %q", w)
				}
				found = strings.HasPrefix(lines.Text(), w)
			}
		}
	}
	sees("guard: loaded 0.1.0", "  + process python3", "  + hook beforeToolCall", "  + tool guard_greet")
	text := a.halves()
	sees("  | ", "guard: degraded 0.1.0", "  plugin_")
	a.file(filepath.Join(a.dir, a.half), text+"\nprint('I am not said')\n")
	sees("guard: loaded 0.1.0")
	a.saves("plugin.json", "guard_greet", "guard_hail")
	sees("guard: degraded", "  plugin_")
	a.saves("main.py", "guard_greet", "guard_hail")
	sees("guard: loaded", "  - tool guard_greet", "  + tool guard_hail")
	a.saves("plugin.json", `"hooks"`, `"hoks"`)
	sees("guard: degraded", `  plugin.json:7:5: unknown field "hoks"`)
	cmd.Process.Signal(syscall.SIGINT)
	for lines.Scan() {
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("issue/4-9 after Ctrl-C it exits with %v", err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("issue/4-9 left behind: %v, %v", left, err)
	}
}
