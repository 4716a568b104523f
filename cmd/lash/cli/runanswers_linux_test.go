package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"lashd/cmd/internal/console"
	"lashd/rpc/protocol"
	"lashd/test/wait"
)

// talk runs a command on the terminal. Each time that it has printed a text, talk types the answer to it.
func (c *pty) talk(p *place, steps [][2]string, args ...string) int {
	p.t.Helper()
	cmd := c.start(p, args...)
	for _, s := range steps {
		wait.Until(p.t, "it prints "+s[0], func() bool { return c.shows(s[0]) })
		c.WriteString(s[1])
	}
	return exitCode(p.t, cmd.Wait())
}

// start starts a command on the terminal.
func (c *pty) start(p *place, args ...string) *exec.Cmd {
	p.t.Helper()
	cmd := p.command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.tty, c.tty, c.tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	return cmd
}

// TestRunOnceMoreOnATerminal has the sandbox refuse something to a call, and answers the offer to run it again.
func TestRunOnceMoreOnATerminal(t *testing.T) {
	const offer = "Run it once outside the sandbox?"
	p := newSandboxedPlace(t, map[string]string{
		"plant":    `{"name": "shell", "args": {"command": "echo made-it > .vscode/made && cat .vscode/made"}}`,
		"two more": `{"name": "shell", "args": {"command": "echo x > .vscode/one"}}, {"name": "shell", "args": {"command": "echo x > .vscode/two"}}`,
	})
	if err := os.Mkdir(filepath.Join(p.work, ".vscode"), 0o700); err != nil {
		t.Fatal(err)
	}
	planted := filepath.Join(p.work, ".vscode", "made")
	for answer, runs := range map[string]bool{"y\n": true, "yes\n": true, "n\n": false, "\n": false, "\x04": false} {
		t.Run(fmt.Sprintf("issue/20-2 lash run offers to run a refused call again, with the answer %q", answer), func(t *testing.T) {
			c := newPTY(t)
			if code := c.talk(p, [][2]string{{offer, answer}}, "run", "plant it"); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if got := made(t, planted); got != runs {
				t.Errorf("the call ran: %t; the terminal shows %q", got, c.text())
			}
			if runs {
				wait.Until(t, "the agent answers what it read", func() bool { return strings.Count(c.text(), "hello") == 1 })
			}
		})
	}
	t.Run("issue/20-2 lash run offers each refused call of a turn", func(t *testing.T) {
		c := newPTY(t)
		if code := c.talk(p, [][2]string{{offer, "n\ny\n"}}, "run", "two more"); code != 0 {
			t.Errorf("exit code %d", code)
		}
		one, two := made(t, filepath.Join(p.work, ".vscode", "one")), made(t, filepath.Join(p.work, ".vscode", "two"))
		if one == two || strings.Count(c.text(), offer) != 2 {
			t.Errorf("one ran: %v, two: %v; want the second that is offered, in either order; the terminal shows %q", one, two, c.text())
		}
	})
	t.Run("issue/20-2 without a terminal lash run offers nothing", func(t *testing.T) {
		if r := p.run("run", "plant it"); r.code != 0 || strings.Contains(r.err, offer) || made(t, planted) {
			t.Errorf("%+v", r)
		}
	})
}

// TestRunOffersOfTasks has the sandbox refuse something to a background command and to a call of a subagent.
func TestRunOffersOfTasks(t *testing.T) {
	const offer, command = "Run it once outside the sandbox?", "echo made-it > .vscode/made || exit 1"
	for name, call := range map[string]string{
		"a background command": `{"name": "start_command", "args": {"command": "` + command + `"}}, {"name": "shell", "args": {"command": "until test -e proceed; do sleep 0.1; done"}}`,
		"a call of a subagent": `{"name": "spawn_agent", "args": {"task": "gamma job", "name": "gamma", "capability": "peer", "wait": true}}`,
	} {
		t.Run("part13/8 lash run offers to run a refused call again: "+name, func(t *testing.T) {
			p := newSandboxedPlace(t, map[string]string{"go": call, "gamma job": `{"name": "shell", "args": {"command": "` + command + `"}}`})
			if err := os.Mkdir(filepath.Join(p.work, ".vscode"), 0o700); err != nil {
				t.Fatal(err)
			}
			c := newPTY(t)
			cmd := c.start(p, "run", "go")
			if strings.Contains(call, "start_command") { // lash run offers what has ended before its turn
				wait.Until(t, "the command ends", func() bool {
					return slices.ContainsFunc(asked[protocol.TaskListResult](p, "task/list", "{}").Data, func(t protocol.Task) bool { return t.Outcome != nil })
				})
				if err := os.WriteFile(filepath.Join(p.work, "proceed"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			wait.Until(t, "the offer", func() bool { return c.shows(offer + " " + command) })
			c.WriteString("y\n")
			if code := exitCode(t, cmd.Wait()); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if !made(t, filepath.Join(p.work, ".vscode", "made")) || strings.Count(c.text(), offer) != 1 {
				t.Errorf("the call did not run once; the terminal shows %q", c.text())
			}
		})
	}
}

// TestAnswersOfRun gives the answers of more than a letter.
func TestAnswersOfRun(t *testing.T) {
	const write = `{"name": "write", "args": {"path": "f", "content": "one\n2\n3\n4\n5\n6\n7\n8\n9\nten\n11\n12\n13\n14\n15\n16\n17\n18\n19\ntwenty\n"}}`
	p := newSandboxedPlace(t, map[string]string{
		"touch it": `{"name": "shell", "args": {"command": "touch touched"}}`,
		"log one":  `{"name": "shell", "args": {"command": "git log -1"}}`,
		"log two":  `{"name": "shell", "args": {"command": "git log --oneline -2"}}`,
		"write":    write,
	})
	run := func(t *testing.T, prompt string, steps ...[2]string) *pty {
		t.Helper()
		c := newPTY(t)
		if code := c.talk(p, steps, "run", "--sandbox", "fullAccess", prompt); code != 0 {
			t.Errorf("exit code %d; the terminal shows %q", code, c.text())
		}
		return c
	}
	t.Run("issue/20-4 lash run counts down the time that a question has left", func(t *testing.T) {
		c := newPTY(t)
		if code := c.talk(p, [][2]string{{"(denied in 10:00)", ""}, {"\x1b[1A\r   (denied in 9:58)\x1b[K\x1b8", "n\n"}}, "run", "--sandbox", "fullAccess", "touch it"); code != console.ExitDenied {
			t.Errorf("exit code %d; the terminal shows %q", code, c.text())
		}
	})
	t.Run("issue/20-4 the answer e edits the command", func(t *testing.T) {
		run(t, "touch it", [2]string{"(denied in", "e\n"}, [2]string{"Enter what to run instead", "touch other\n"})
		if !made(t, filepath.Join(p.work, "other")) || made(t, filepath.Join(p.work, "touched")) {
			t.Error("the edited command did not run instead")
		}
	})
	t.Run("issue/20-4 the answer y 1 3 takes two of three changes", func(t *testing.T) {
		before := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n"
		path := filepath.Join(p.work, "f")
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, "write", [2]string{"(denied in", "y 1 3\n"})
		if got, want := readAll(t, path), strings.NewReplacer("1\n2\n", "one\n2\n", "20\n", "twenty\n").Replace(before); got != want {
			t.Errorf("the file is %q, want %q", got, want)
		}
	})
	t.Run("issue/20-3 a number chooses what the answer a covers", func(t *testing.T) {
		const asks = "number (Enter takes 1)>"
		run(t, "log one", [2]string{"(denied in", "a\n"}, [2]string{asks, "7\n"}, [2]string{asks + " 7\r\n\r\nRun this command?", "a\n"}, [2]string{"> a\r\n\r\n  Always allow in this workspace:\r\n  1", "2\n"})
		p.want(0, "done\n", "", "run", "--sandbox", "fullAccess", "log one")
		p.want(console.ExitDenied, "done\n", "", "run", "--sandbox", "fullAccess", "log two")
		run(t, "log two", [2]string{"(denied in", "a\n"}, [2]string{asks, "\n"})
		p.want(0, "done\n", "", "run", "--sandbox", "fullAccess", "log two")
	})
}
