package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lashd/test/skip"
)

// TestTranscript types the commands of docs/plugin-transcript.md at a terminal and compares the
// output.
func TestTranscript(t *testing.T) {
	_, err := exec.LookPath("python3")
	skip.Unless(t, "PYTHON", err == nil, "there is no python3")
	const file = "../../docs/plugin-transcript.md"
	doc, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	a := newTypist(t)
	got := a.replay(t, string(doc))
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := strings.TrimSpace(string(doc)); strings.TrimSpace(got) != want && !*rewrite {
		t.Errorf("issue/4-9 the commands of %s now print\n%s", file, got)
	}
}

// typist is a user at a terminal with an own home directory.
type typist struct {
	home, cwd string
	wait      time.Duration // time to wait for the documented output
}

func newTypist(t *testing.T) *typist {
	t.Helper()
	dir, err := os.MkdirTemp("", "lashd-") // socket paths must be short
	if err != nil {
		t.Fatal(err)
	}
	a := &typist{home: dir, cwd: dir, wait: patience}
	t.Cleanup(func() {
		a.types(t, `lash stop`)
		for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
			if exec.Command("sh", "-c", "chmod -R u+w "+dir+" && rm -r "+dir).Run() == nil {
				return
			}
		}
		t.Errorf("%s cannot be removed", dir)
	})
	return a
}

// replay types all commands of a document and returns the document with their output.
func (a *typist) replay(t *testing.T, doc string) string {
	t.Helper()
	var out strings.Builder
	blocks := strings.Split(doc, "```")
	for i, block := range blocks {
		if i > 0 {
			out.WriteString("```")
		}
		text, console := strings.CutPrefix(block, "console\n")
		if !console {
			out.WriteString(block)
			continue
		}
		out.WriteString("console\n")
		for _, step := range strings.Split("\n"+text, "\n$ ")[1:] {
			out.WriteString("$ " + a.step(t, step))
		}
	}
	return out.String()
}

// step types a command and returns it with its output. A command that only reads is repeated until it
// prints the documented output.
func (a *typist) step(t *testing.T, step string) string {
	t.Helper()
	typed, want, _ := strings.Cut(step+"\n", "\n")
	command := typed
	for strings.HasPrefix(want, "> ") {
		line, rest, _ := strings.Cut(want, "\n")
		command, typed, want = command+"\n"+line[2:], typed+"\n"+line, rest
	}
	looks := strings.HasPrefix(command, "lash plugin") && (command == "lash plugin" || strings.HasPrefix(command, "lash plugin logs"))
	var got string
	for until := time.Now().Add(a.wait); ; time.Sleep(50 * time.Millisecond) {
		got = a.types(t, command)
		if !looks || same(got, want) || time.Now().After(until) {
			break
		}
		if *rewrite {
			time.Sleep(3 * time.Second)
			got = a.types(t, command)
			break
		}
	}
	if same(got, want) {
		got = want
	}
	return typed + "\n" + strings.TrimRight(got, "\n") + strings.Repeat("\n", min(1, len(strings.TrimSpace(got))))
}

// same compares output except for the width of columns, which depends on shortened values.
func same(got, want string) bool {
	fields := func(s string) string {
		lines := strings.Split(strings.TrimSpace(s), "\n")
		for i, l := range lines {
			lines[i] = strings.Join(strings.Fields(l), " ")
		}
		return strings.Join(lines, "\n")
	}
	return fields(got) == fields(want)
}

// types has a shell run a command at a terminal, answers yes to questions, and returns what the
// terminal shows.
func (a *typist) types(t *testing.T, command string) string {
	t.Helper()
	s := newScreen(t)
	cmd := exec.Command("sh", "-c", command+"\npwd > "+filepath.Join(a.home, ".cwd"))
	cmd.Dir, cmd.Env = a.cwd, []string{"HOME=" + a.home, "PATH=" + bin + ":" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.tty, s.tty, s.tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for answered := false; ; {
		select {
		case err := <-done:
			if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
				t.Fatal(err)
			}
			if cwd, err := os.ReadFile(filepath.Join(a.home, ".cwd")); err == nil {
				a.cwd = strings.TrimSpace(string(cwd))
			}
			return a.plain(s.end())
		case <-time.After(5 * time.Millisecond):
			if !answered && strings.HasSuffix(s.text(), "[y/N] ") {
				answered = true
				s.ptmx.WriteString("y\n")
			}
		}
	}
}

// Text that differs in each run, and its replacement.
var plain = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\r`), ""},
	{regexp.MustCompile(`\b([0-9a-f]{8})[0-9a-f]{56}\b`), "…"},
	{regexp.MustCompile(`\b(ses|trn)_[0-9a-f]+`), "${1}_…"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`), "12:00:00"},
	{regexp.MustCompile(`\b\d+ ms\b`), "1 ms"},
	{regexp.MustCompile(`\(pid \d+\)`), "(pid 1234)"},
	{regexp.MustCompile(`\b\d+\.\d+s\b`), "0.001s"},
	{regexp.MustCompile(`(?m)^((?:handshake|hook|session|stop)\b.*? ok +)\d+`), "${1}1"},
	{regexp.MustCompile(`(?m)^(program +)\S+`), "${1}/usr/bin/…"},
}

func (a *typist) plain(text string) string {
	text = strings.ReplaceAll(text, a.home, "~")
	for _, p := range plain {
		text = p.what.ReplaceAllString(text, p.with)
	}
	return text
}

// screen is a pseudo-terminal and its contents.
type screen struct {
	ptmx, tty *os.File
	over      chan struct{}
	mu        sync.Mutex
	shown     []byte
}

func newScreen(t *testing.T) *screen {
	t.Helper()
	ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	skip.Unless(t, "PTY", err == nil, fmt.Sprint("no pseudo-terminal can be opened: ", err))
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
	s := &screen{ptmx: ptmx, tty: tty, over: make(chan struct{})}
	go s.read()
	return s
}

func (s *screen) read() {
	defer close(s.over)
	for buf := make([]byte, 4096); ; {
		n, err := s.ptmx.Read(buf)
		s.mu.Lock()
		s.shown = append(s.shown, buf[:n]...)
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.shown)
}

// end closes the terminal after everything written to it has been read.
func (s *screen) end() string {
	s.tty.Close() // no other process has it open, so reading ends
	<-s.over
	s.ptmx.Close()
	return s.text()
}
