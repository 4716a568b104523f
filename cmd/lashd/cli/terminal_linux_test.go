package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"lashd/test/skip"
)

// console is a pseudo-terminal, and what was shown on it.
type console struct {
	*os.File
	tty *os.File

	mu    sync.Mutex
	shown string
}

func newConsole(t *testing.T) *console {
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
	c := &console{File: ptmx, tty: tty}
	go c.read()
	return c
}

func (c *console) read() {
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

func (c *console) shows(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Contains(c.shown, text)
}

// run starts a command on the terminal, answers what it is asked, and returns its exit code.
func (c *console) run(p *place, answer string, args ...string) int {
	p.t.Helper()
	cmd := p.command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.tty, c.tty, c.tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	if answer != "" {
		until(p.t, "it asks", func() bool { return c.shows(`allow shell {"command":"touch touched"}?`) })
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
		{"n\n", exitDenied, false, true},
		{"\n", exitDenied, false, true},
		{"\x04", exitDenied, false, true}, // end of file
	} {
		p := newPlace(t)
		c := newConsole(t)
		code := c.run(p, test.answer, "run", "touch it")
		_, err := os.Stat(filepath.Join(p.work, "touched"))
		if code != test.code || (err == nil) != test.runs {
			t.Errorf("answer %q: exit code %d, the command ran: %t; want %d, %t", test.answer, code, err == nil, test.code, test.runs)
		}
		if r := p.run("run", "touch it again"); (r.code == exitDenied) != test.asked {
			t.Errorf("after %q, the next turn ends with %d, asked: want %t", test.answer, r.code, test.asked)
		}
	}
}

func TestTerminalIsTold(t *testing.T) {
	p, c := newPlace(t), newConsole(t)
	if code := c.run(p, "", "run", "escape"); code != 0 {
		t.Errorf("run: exit code %d", code)
	}
	until(t, "the terminal shows the session and escaped text", func() bool { return c.shows("[session ses_") && c.shows(`\u001b]52;`) })
	if code := c.run(p, "", "doctor"); code != 0 {
		t.Errorf("doctor: exit code %d", code)
	}
	until(t, "the terminal shows a table", func() bool { return c.shows("daemon ") })
}
