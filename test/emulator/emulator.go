//go:build unix

package emulator

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"lashd/test/skip"
)

// Terminal is an emulator with a program in it. Its scrollback holds 50,000 lines.
type Terminal interface {
	// Type sends the program what a keyboard would send.
	Type(keys string)
	// Resize changes the size. The emulator has the new size when Resize returns; the
	// program may not know it yet.
	Resize(width, height int)
	// Look returns what the terminal holds.
	Look() Picture
}

// Picture is what a terminal holds at a moment.
type Picture struct {
	Lines  []string // the scrollback and the screen, with wrapped rows joined, without spaces at the ends
	Screen []string // the rows of the screen, without spaces at the ends
	X, Y   int      // the cursor, from 0
}

// String returns the rows of the screen.
func (p Picture) String() string { return strings.Join(p.Screen, "\n") }

// All returns all lines.
func (p Picture) All() string { return strings.TrimRight(strings.Join(p.Lines, "\n"), "\n") }

// Emulators are the emulators by name.
var Emulators = map[string]func(t testing.TB, cmd *exec.Cmd, width, height int) Terminal{
	"tmux":  Tmux,
	"xterm": XTerm,
}

// patience is the limit for a single wait.
const patience = time.Minute

// Shows waits until a terminal has a text, in the scrollback or on the screen, and
// returns what it then holds.
func Shows(t testing.TB, x Terminal, text string) Picture {
	t.Helper()
	return Until(t, x, text, func(p Picture) bool { return strings.Contains(p.All(), text) })
}

// Until waits until so holds for a terminal.
func Until(t testing.TB, x Terminal, what string, so func(Picture) bool) Picture {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		p := x.Look()
		if so(p) {
			return p
		}
		if time.Now().After(end) {
			t.Fatalf("%q does not appear:\n%s", what, p.All())
		}
	}
}

// environment returns the environment of a command in an emulator: without the
// variables that name the terminal of the test.
func environment(cmd *exec.Cmd) (env []string) {
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	for _, e := range cmd.Env {
		name, _, _ := strings.Cut(e, "=")
		switch name {
		case "TMUX", "TMUX_PANE", "STY", "XTERM_VERSION", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "VTE_VERSION", "COLORTERM", "COLUMNS", "LINES":
			continue
		}
		env = append(env, e)
	}
	return env
}

// need fails the test if a program is missing.
func need(t testing.TB, variable, program string) {
	t.Helper()
	_, err := exec.LookPath(program)
	skip.Unless(t, variable, err == nil, program+" is missing; install it")
}
