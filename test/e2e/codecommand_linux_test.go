package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/wait"
)

// looked is a session with the variable x, after one turn, in a home with its daemon.
func looked(t *testing.T, limits string) (*home, *daemon, *peer, protocol.SessionID) {
	t.Helper()
	h := cells(t, func(int) string { return "x = [1, 2]" }, 1)
	config := filepath.Join(h.dir, "config.toml")
	h.write(config, readText(t, config)+limits)
	d := h.serve()
	p := h.dial("user")
	id := p.newCells(h)
	if r := p.turn(id, "cycle 0."); r.State != protocol.TurnCompleted {
		t.Fatalf("the turn ended as %s: %+v", r.State, r.Issues)
	}
	return h, d, p, id
}

// code runs lash code with a text on stdin, and returns its exit code and output. It waits for the daemon of the test: without
// one that listens, the command starts a second daemon, and whichever comes later exits with 75.
func (h *home) code(stdin string, args ...string) (code int, out, errs string) {
	h.t.Helper()
	h.dial("")
	cmd := h.command(append([]string{"code"}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	cmd.Run() // the exit code is in ProcessState
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

func TestCodeCommand(t *testing.T) {
	t.Run("runtime/R07 lash code sees the variables of a turn, and forgets changes unless it may write", func(t *testing.T) {
		t.Parallel()
		h, d, _, session := looked(t, "")
		id := string(session)
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{id, "-c", "print(x)"}, "[1, 2]\n"},
			{[]string{id, "-c", "x.append(3); y = 1; len(x)"}, "3\n"},
			{[]string{id[:20], "-c", "print(x)"}, "[1, 2]\n"},
			{[]string{id, "--write", "-c", `x.append(3); print(tools.shell("echo once >> ran").ok)`}, "True\n"},
		} {
			if code, out, errs := h.code("", c.args...); code != 0 || out != c.want {
				t.Errorf("%q exits %d and prints %q, %q", c.args, code, out, errs)
			}
		}
		d.kill()
		d = h.serve()
		if code, out, errs := h.code("print(x)\nlen(history)\n", id); code != 0 || out != "[1, 2, 3]\n4\n" {
			t.Errorf("after SIGKILL it exits %d and prints %q, %q", code, out, errs)
		}
		if got := h.text("ran"); got != "once\n" {
			t.Errorf("the tool wrote %q", got)
		}
		d.stop()
	})
	t.Run("runtime/R02 an error of the code has exit code 1 and a marked line, and a session without code says so", func(t *testing.T) {
		t.Parallel()
		h, d, p, session := looked(t, "")
		id := string(session)
		for _, c := range []struct{ source, want string }{
			{"a = 1\nb = a + nothing\n", "undefined: nothing (did you mean None?)\n  1 | a = 1\n> 2 | b = a + nothing\n              ^\n"},
			{`tools.shell("touch no")`, "run it with write (lash code --write)"},
		} {
			if code, out, errs := h.code(c.source, id); code != 1 || out != "" || !strings.Contains(errs, c.want) {
				t.Errorf("%q exits %d and prints %q, %q", c.source, code, out, errs)
			}
		}
		if _, err := os.Stat(filepath.Join(h.work, "no")); err == nil {
			t.Error("the tool ran")
		}
		if code, out, _ := h.code("x[0] + 'a'", id, "--json"); code != 1 || !strings.HasPrefix(out, `{"cellId":"call_`) || !strings.Contains(out, `"position":{"line":1`) {
			t.Errorf("with --json it exits %d and prints %q", code, out)
		}
		h.wants(2, "there is no code to run", "code", id, "-c", " ")
		plain := ask[protocol.SessionNewResult](p, "session/new", protocol.SessionNewParams{Cwd: h.work, Driver: "standard"}).SessionID
		h.wants(1, "runs no code cells: its driver is standard; start a session with another driver, for example with lash run --driver rlm",
			"code", string(plain), "-c", "x")
		d.stop()
	})
	t.Run("runtime/R02 lash code is refused while a turn runs", func(t *testing.T) {
		t.Parallel()
		h := cells(t, func(int) string { return `tools.shell("touch began; until [ -e go ]; do sleep 0.02; done")` }, 1)
		d := h.serve()
		p := h.dial("user")
		id := p.newCells(h)
		turn := p.start(id, "cycle 0.").TurnID
		wait.Until(t, "the cell runs", func() bool { return exists(filepath.Join(h.work, "began")) })
		h.wants(1, "turn "+string(turn)+" is running; wait for it, or interrupt it", "code", string(id), "-c", "x")
		h.write(filepath.Join(h.work, "go"), "")
		if r := p.wait(turn); r.State != protocol.TurnCompleted {
			t.Errorf("the turn ended as %s: %+v", r.State, r.Issues)
		}
		d.stop()
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestCodeShell(t *testing.T) {
	t.Run("runtime/R07 the code shell runs blocks, lists variables, and Ctrl-C stops only the code", func(t *testing.T) {
		t.Parallel()
		h, d, p, id := looked(t, "[code]\nsteps = 1000000000000\ntime = \"1h\"\n")
		s := h.onTerminal("code", string(id), "--write")
		s.shows("Session " + string(id) + " (writing: variables are kept")
		s.shows("starlark>")
		s.types("for n in x:\r    print(n + 40)\r\r")
		s.shows("41 42 starlark>")
		s.types("y = [\r'a']\r")
		s.shows("starlark>")
		s.types(":globals\r")
		s.shows("NAME TYPE SIZE n int 5 B x list")
		s.shows("y list")
		s.types("nothing\r")
		s.shows("undefined: nothing")
		s.shows("starlark>")
		s.types("while True: pass\r")
		wait.Until(t, "the cell runs", func() bool {
			return ask[protocol.SessionListResult](p, "session/list", protocol.SessionListParams{}).Data[0].State == protocol.SessionRunning
		})
		s.types("\x03")
		s.shows("lash: cancelled starlark>")
		s.types("y = 1\x03")
		s.shows("starlark>")
		s.types("print(x, y)\r")
		s.shows(`[1, 2] ["a"] starlark>`)
		s.types(":help\r")
		s.shows("Ctrl-D Leave.")
		s.types("\x04")
		s.leaves()
		d.stop()
	})
	t.Run("runtime/R07 the code shell says that it is read-only", func(t *testing.T) {
		t.Parallel()
		h, d, _, id := looked(t, "")
		s := h.onTerminal("code", string(id))
		s.shows("(read-only: no tools, and assignments are forgotten after each cell)")
		s.shows("starlark>")
		s.types("x = 1\r")
		s.shows("starlark>")
		s.types("print(x)\r")
		s.shows("[1, 2] starlark>")
		s.types(":nonsense\r")
		s.shows("unknown command :nonsense; :help lists the commands")
		s.shows("starlark>")
		s.types("\x04")
		s.leaves()
		d.stop()
	})
}
