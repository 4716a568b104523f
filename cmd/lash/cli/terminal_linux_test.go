package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"lashd/cmd/internal/console"
	"lashd/rpc/protocol"
	"lashd/test/skip"
	"lashd/test/wait"
)

// pty is a pseudo-terminal with its output.
type pty struct {
	*os.File
	tty *os.File

	mu    sync.Mutex
	shown string
}

func newPTY(t *testing.T) *pty {
	t.Helper()
	ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	skip.Unless(t, "PTY", err == nil, fmt.Sprint("no pseudo-terminal can be opened: ", err))
	t.Cleanup(func() { ptmx.Close() })
	n, err := unix.IoctlGetInt(int(ptmx.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ptmx.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	c := &pty{File: ptmx, tty: tty}
	go c.read()
	return c
}

func (c *pty) read() {
	for buf := make([]byte, 4096); ; {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		c.mu.Lock()
		c.shown += string(buf[:n])
		c.mu.Unlock()
	}
}

func (c *pty) shows(text string) bool { return strings.Contains(c.text(), text) }

// text is all that the terminal has shown so far.
func (c *pty) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown
}

// run runs a command on the terminal and returns its exit code. Once the command has printed asks, run types answer.
func (c *pty) run(p *place, asks, answer string, args ...string) int {
	p.t.Helper()
	cmd := p.command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.tty, c.tty, c.tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	if answer != "" {
		wait.Until(p.t, "it asks", func() bool { return c.shows(asks) })
		c.WriteString(answer)
	}
	return exitCode(p.t, cmd.Wait())
}

func TestApprovalOnATerminal(t *testing.T) {
	for _, test := range []struct {
		answer string
		code   int
		runs   bool
		asked  bool // at the next turn
	}{
		{"y\n", 0, true, true},
		{"always\n", 0, true, false},
		{"n\n", console.ExitDenied, false, true},
		{"r\nuse make\n", console.ExitDenied, false, true}, // part/11
		{"\n", console.ExitDenied, false, true},
		{"\x04", console.ExitDenied, false, true}, // end of file
	} {
		p := newPlace(t)
		c := newPTY(t)
		code := c.run(p, "$ touch touched", test.answer, "run", "--sandbox", "fullAccess", "touch it")
		_, err := os.Stat(filepath.Join(p.work, "touched"))
		if code != test.code || (err == nil) != test.runs {
			t.Errorf("answer %q: exit code %d, the command ran: %t; want %d, %t", test.answer, code, err == nil, test.code, test.runs)
		}
		if r := p.run("run", "--sandbox", "fullAccess", "touch it again"); (r.code == console.ExitDenied) != test.asked {
			t.Errorf("after %q, the next turn has exit code %d; want a question: %t", test.answer, r.code, test.asked)
		}
	}
}

func TestOutputOnATerminal(t *testing.T) {
	p, c := newPlace(t), newPTY(t)
	if code := c.run(p, "", "", "run", "escape"); code != 0 {
		t.Errorf("run: exit code %d", code)
	}
	wait.Until(t, "the terminal shows the session and escaped text", func() bool { return c.shows("[session ses_") && c.shows(`\u001b]52;`) })
	if code := c.run(p, "", "", "doctor"); code != 0 {
		t.Errorf("doctor: exit code %d", code)
	}
	wait.Until(t, "the terminal shows a table", func() bool { return c.shows("daemon ") })
}

func TestMarkdownOnATerminal(t *testing.T) {
	const answer = "# Head\n\n**bold** text\nof two lines\n\n```go\nreturn 1\n```\n"
	p, c := newPlace(t), newPTY(t)
	p.environ = append(p.environ, "TERM=xterm-256color", "NO_COLOR=", "TMUX=")
	p.write("script.json", `{"turns": [{"match": {"lastUserContains": "cells"}, "replies": [{"text": "`+strings.ReplaceAll(answer, "\n", `\n`)+`", "chunkSize": 7}]}], "otherwise": {"replies": [
		{"toolCalls": [{"name": "write", "args": {"path": "a.txt", "content": "new\n"}}]}, {"text": "written"}]}}`)
	lines := "\x1b[1;4;36mHead\x1b[m\r\n\r\n\x1b[1mbold\x1b[m text of two lines\r\n\r\n\x1b[2m── go\x1b[m\r\n\x1b[35mreturn\x1b[m \x1b[33m1\x1b[m\r\n\x1b[2m──\x1b[m\r\n"
	t.Run("part/12 lash run renders the answer", func(t *testing.T) {
		if code := c.run(p, "", "", "run", "cells"); code != 0 {
			t.Errorf("run: exit code %d", code)
		}
		for _, l := range strings.SplitAfter(lines, "\r\n") {
			wait.Until(t, fmt.Sprintf("the terminal shows %q", l), func() bool { return c.shows(l) })
		}
	})
	t.Run("part/12 without a terminal the answer is as the model wrote it", func(t *testing.T) {
		if r := p.run("run", "cells"); r.out != answer {
			t.Errorf("it is %q, want %q", r.out, answer)
		}
	})
	t.Run("part/12 lash session show and diff have colors on a terminal", func(t *testing.T) {
		c.run(p, "", "", "session", "show", "--items", "3")
		wait.Until(t, "the terminal shows the answer", func() bool { return c.shows(lines) })
		if r := p.run("run", "--allow", "write"); r.code != 0 {
			t.Fatalf("run: %+v", r)
		}
		c.run(p, "", "", "session", "diff")
		wait.Until(t, "the terminal shows the diff", func() bool { return c.shows("\x1b[32m+new\x1b[m\r\n") })
		if r := p.run("session", "diff"); !strings.Contains(r.out, "\n+new\n") || strings.Contains(r.out, "\x1b") {
			t.Errorf("without a terminal it is %q", r.out)
		}
	})
}

// TestListsOnATerminal checks what a terminal adds to lists.
func TestListsOnATerminal(t *testing.T) {
	p := newPlace(t)
	p.environ = append(p.environ, "TERM=xterm-256color", "NO_COLOR=", "TMUX=")
	id := p.session()
	t.Run("issue/21-3 a list on a terminal has a bold header, relative times and short ids; NO_COLOR, TERM=dumb and a pipe have no colours", func(t *testing.T) {
		c := newPTY(t)
		if err := unix.IoctlSetWinsize(int(c.tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: 80, Row: 24}); err != nil {
			t.Fatal(err)
		}
		c.run(p, "", "", "session")
		for _, text := range []string{"\x1b[1mSESSION\x1b[0m", " ago", id[:leastID]} {
			wait.Until(t, "the terminal shows "+text, func() bool { return c.shows(text) || text == " ago" && c.shows("just now") })
		}
		if c.shows(id) {
			t.Error("the whole id is shown, although the table is too wide")
		}
		for _, variable := range []string{"NO_COLOR=1", "TERM=dumb"} {
			plain := *p
			plain.environ = append(slices.Clone(p.environ), variable)
			c := newPTY(t)
			c.run(&plain, "", "", "session")
			wait.Until(t, "the terminal shows the list", func() bool { return c.shows("hi") })
			if c.shows("\x1b[1m") {
				t.Errorf("with %s the list has colours", variable)
			}
		}
		if r := p.run("session"); !strings.Contains(r.out, id) || !regexp.MustCompile(` \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`).MatchString(r.out) || strings.ContainsAny(r.out, "\x1b…") {
			t.Errorf("in a pipe it is %q", r.out)
		}
	})
	t.Run("issue/21-3 lash chat -r shows the list of sessions, and Esc leaves without a chat", func(t *testing.T) {
		c := newPTY(t)
		if code := c.run(p, "hi", "\x1b", "chat", "-r"); code != 0 {
			t.Errorf("exit code %d", code)
		}
		p.want(console.ExitUsage, "", "omit it or the id", "chat", "-r", id)
		var all []protocol.Session
		if r := p.run("session", "--json"); json.Unmarshal([]byte(r.out), &all) != nil || len(all) != 1 {
			t.Errorf("there are other sessions now: %s", r.out)
		}
	})
}

// TestTrustOnATerminal reviews a workspace plugin on a terminal, with several answers.
func TestTrustOnATerminal(t *testing.T) {
	p := newPlace(t)
	p.environ = append(p.environ, "HOME="+p.home, "XDG_CONFIG_HOME="+p.home)
	dir := filepath.Join(p.work, ".agents", "plugins", "local")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	local := func(program string) {
		t.Helper()
		for name, text := range map[string]string{
			"plugin.json": `{"name":"local","lashd":{"tools":[{"name":"local_tool","description":"d","command":["` + program + `","a\u001b[2Jb","` + strings.Repeat("x ", 500) + `the end"]}]}}`,
			".mcp.json":   `{"mcpServers":{"web":{"url":"https://x.test/mcp","headers":{"Key":"${LOCAL_KEY}"}}}}`,
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		p.run("plugin", "reload", "--json") // fails while a plugin is not trusted
	}
	status := func(want protocol.PluginStatus) {
		t.Helper()
		p.want(0, `"name":"local","scope":"workspace"`, "", "plugin", "list", "--json")
		var r protocol.PluginListResult
		if err := json.Unmarshal([]byte(p.run("plugin", "list", "--json").out), &r); err != nil {
			t.Fatal(err)
		}
		if got := r.Data[len(r.Data)-1].Status; got != want {
			t.Errorf("the plugin is %s, want %s", got, want)
		}
	}
	local("true")
	status(protocol.PluginUntrusted)
	const asks = "Allow this plugin to run? [y/N]"
	for _, answer := range []string{"n\n", "\n", "yes, why not\n", "\x04"} {
		c := newPTY(t)
		if code := c.run(p, asks, answer, "plugin", "trust", "local"); code != console.ExitDenied {
			t.Errorf("issue/4-6 the answer %q: exit code %d", answer, code)
		}
		for _, shown := range []string{"local_tool", "/true", "https://x.test/mcp", "LOCAL_KEY", "digest", `x the end"`} {
			if !c.shows(shown) {
				t.Errorf("issue/4-6 %q does not appear", shown)
			}
		}
		if c.shows("\x1b[2J") {
			t.Error("issue/4-6 a plugin can clear the screen on which it is reviewed")
		}
	}
	status(protocol.PluginUntrusted)
	c := newPTY(t)
	if code := c.run(p, asks, "y\n", "plugin", "trust", "local"); code != 0 {
		t.Errorf("issue/4-6 approved: exit code %d", code)
	}
	wait.Until(t, "the status of the plugin appears", func() bool { return c.shows("local is loaded") })
	status(protocol.PluginLoaded)
	local("false")
	status(protocol.PluginModified)
	p.want(0, "local is untrusted\n", "", "plugin", "untrust", "local")
	status(protocol.PluginUntrusted)
	local("fal\nse")
	p.want(console.ExitFailed, "plugin.json:1:", "cannot be approved because it cannot be loaded", "plugin", "trust", "local")
	p.want(console.ExitFailed, "", "cannot be trusted because its files cannot be loaded", "plugin", "trust", "local", "--digest", "0")
	p.want(console.ExitFailed, "", "cannot be trusted because its files cannot be loaded", "call", "plugin/trust", `{"name":"local","cwd":"`+p.work+`","digest":""}`)
}

// TestProgressOnATerminal waits for a plugin whose program starts slowly, and makes a backup.
func TestProgressOnATerminal(t *testing.T) {
	p := newPlace(t)
	p.environ = append(p.environ, "HOME="+p.home, "XDG_CONFIG_HOME="+p.home)
	dir := filepath.Join(p.work, ".agents", "plugins", "slow")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "plugin.json"), []byte(`{"name":"slow","lashd":{"process":{"command":["sh","-c","sleep 3"]}}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Run("issue/21-4 a slow trust says what it does and how to stop, and ends with what came of it", func(t *testing.T) {
		c := newPTY(t)
		c.run(p, "Allow this plugin to run? [y/N]", "y\n", "plugin", "trust", "slow")
		wait.Until(t, "the terminal shows the progress and the result", func() bool {
			return c.shows("step 2 of 2, starting the plugin (Ctrl-C stops waiting)") && c.shows("slow is ")
		})
	})
	t.Run("issue/21-4 a backup ends with the size, the place and the time", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "copy")
		if r := p.want(0, "", "MiB to "+dir+" in ", "backup", dir); !strings.Contains(r.err, ", and verified the copy\n") || strings.Count(r.err, "\n") != 1 {
			t.Errorf("it ends with %q", r.err)
		}
	})
}

func TestDeleteAsksOnATerminal(t *testing.T) {
	const asks = "Delete permanently? [y/N]"
	p := newPlace(t)
	id := p.session()
	there := func() bool { return strings.Contains(p.run("session", "list", "--json").out, id) }
	for _, answer := range []string{"n\n", "\n", "yessir\n", "\x04"} {
		c := newPTY(t)
		if code := c.run(p, asks, answer, "session", "delete", id); code != console.ExitCancelled || !there() {
			t.Errorf("outside/25 the answer %q: exit code %d, the session exists: %t; want %d and true", answer, code, there(), console.ExitCancelled)
		}
	}
	c := newPTY(t)
	if code := c.run(p, asks, "y\n", "session", "delete", id); code != 0 || there() {
		t.Errorf("outside/25 the answer y: exit code %d, the session exists: %t", code, there())
	}
	id, c = p.session(), newPTY(t)
	if code := c.run(p, "", "", "session", "delete", "--yes", id); code != 0 || there() || c.shows(asks) {
		t.Errorf("outside/25 --yes: exit code %d, the session exists: %t, it asked: %t", code, there(), c.shows(asks))
	}
}

func TestWithoutACommand(t *testing.T) {
	t.Run("issue/21-1 lash alone prints the help where no person reads it", func(t *testing.T) {
		p := newPlace(t)
		p.want(0, "Usage: lash <command>", "")
	})
	t.Run("issue/21-1 lash alone is a chat on a terminal", func(t *testing.T) {
		p, c := newPlace(t), newPTY(t)
		if code := c.run(p, "Ask lashd to do something", "/quit\r"); code != 0 {
			t.Errorf("exit code %d, the terminal shows %q", code, c.text())
		}
		p.want(0, "", "", "call", "server/status") // the daemon has started, so that the end of the test finds it
	})
}
