package commandrule_test

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"lashd/engine/commandrule"
)

// stub is a program that records its name and does nothing else.
const stub = `#!/bin/sh
echo "$0" >>"$RAN"
`

// shellsHere returns the shells of this machine, without second names of the same shell.
func shellsHere() (all []string) {
	var seen []string
	for _, name := range []string{"sh", "dash", "bash", "zsh", "ksh", "mksh", "busybox"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if real, err := filepath.EvalSymlinks(path); err == nil && !slices.Contains(seen, real) {
			seen, all = append(seen, real), append(all, path)
		}
	}
	return all
}

// ran returns the names of the programs that a shell runs for a line. Its PATH has only stubs.
func ran(t *testing.T, shell, line string, stubs ...string) []string {
	t.Helper()
	ws := newWorkspace(t)
	bin, notes := filepath.Join(ws, "../stubs"), filepath.Join(ws, "../ran")
	for _, name := range stubs {
		put(t, filepath.Join(bin, name), stub)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, shell, "-c", line)
	if filepath.Base(shell) == "busybox" {
		cmd = exec.CommandContext(ctx, shell, "sh", "-c", line)
	}
	cmd.Dir, cmd.Env = ws, []string{"PATH=" + bin, "RAN=" + notes}
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	_ = cmd.Run()    // most lines fail, because their programs do not exist
	for range 2000 { // for what the line left in the background
		if syscall.Kill(-cmd.Process.Pid, 0) != nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	text, err := os.ReadFile(notes)
	if err != nil {
		return nil
	}
	var names []string
	for l := range strings.Lines(string(text)) {
		names = append(names, filepath.Base(strings.TrimSpace(l)))
	}
	return names
}

// TestShellsAgree compares the table with real shells: a covered line runs only git, and a line to which a denying rule does not apply
// does not run touch.
func TestShellsAgree(t *testing.T) {
	for _, r := range table(t, "/nonexistent") {
		if strings.ContainsRune(r.command, 0) {
			continue // programs cannot get such an argument
		}
		switch {
		case r.action == "allow" && r.verdict == "covers" && strings.HasPrefix(r.prefix, "git"):
		case r.prefix == "touch" && r.verdict == "-":
		default:
			continue
		}
		t.Run("outside/6 "+r.action+" "+r.prefix+": "+r.command, func(t *testing.T) {
			for _, shell := range shellsHere() {
				for _, name := range ran(t, shell, r.command, "git", "touch", "ls", "env", "sudo") {
					if r.action == "deny" && name == "touch" || r.action == "allow" && name != "git" {
						t.Errorf("%s runs %s", shell, name)
					}
				}
			}
		})
	}
}

// tricks are parts of lines that shells interpret differently.
var tricks = []string{
	"git", "touch x", "git status", ";", "&", "&&", "||", "|", "|&", "&>", ">&", "(", ")", "((", "))", "{", "}", "[[", "]]", "$'", "'", "\"", "`",
	"\\", "\n", "\t", "#", "$", "$(", "<(", "<<E", "\nE\n", "E", "!", "=", "{touch,x}", "if", "then", "fi", "do", "done", "while", "case x in x)",
	"esac", ";;", "function", "f()", "time", "coproc", "@(", "\\\n", "$\"", "alias git=touch", "eval", "~", "*", ";&", "<<-E", "2>", "\\;", "git(", "$((", "#\\\n", "# a\\\n",
}

func trickyLine(random *rand.Rand) string {
	var line strings.Builder
	for range 2 + random.IntN(7) {
		line.WriteString(tricks[random.IntN(len(tricks))])
		line.WriteString([]string{"", " ", " "}[random.IntN(3)])
	}
	return line.String()
}

// TestShellsAgreeOnTricks combines parts of lines at random. A shell must run only commands that the rules have seen.
func TestShellsAgreeOnTricks(t *testing.T) {
	lines := 60
	if os.Getenv("LASHD_SHELL_LINES") != "" {
		lines = 20_000
	}
	random := newRandom(lines)
	git, touch := commandrule.ParsePrefix("git"), commandrule.ParsePrefix("touch")
	for range lines {
		line := trickyLine(random)
		parsed := commandrule.Parse(line)
		covered := parsed.Covers(git, "", in("/nonexistent"))
		missed := parsed.About(touch, "", in("/nonexistent")) == commandrule.No
		if !covered && !missed {
			continue
		}
		for _, shell := range shellsHere() {
			for _, name := range ran(t, shell, line, "git", "touch") {
				if covered && name != "git" || missed && name == "touch" {
					t.Errorf("%s runs %s for %q: covered by git %v, not about touch %v", shell, name, line, covered, missed)
				}
			}
		}
	}
}
