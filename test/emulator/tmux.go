//go:build unix

package emulator

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tmux is a server of tmux with one window.
type tmux struct {
	t      testing.TB
	socket string
}

// Tmux runs cmd in tmux. TERM is that of cmd.
func Tmux(t testing.TB, cmd *exec.Cmd, width, height int) Terminal {
	t.Helper()
	need(t, "TMUX", "tmux")
	x := &tmux{t, filepath.Join(t.TempDir(), "s")}
	conf := filepath.Join(filepath.Dir(x.socket), "conf")
	if err := os.WriteFile(conf, []byte("set -g history-limit 50000\nset -g status off\nset -sg escape-time 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	x.do("-f", conf, "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), "-c", cmd.Dir, x.script(cmd))
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", x.socket, "kill-server").Run() })
	return x
}

// script writes a shell script that runs cmd in its environment, plus the variables
// that tmux sets, and then keeps the window open. It returns its name.
func (x *tmux) script(cmd *exec.Cmd) string {
	var b strings.Builder
	b.WriteString("env -i TMUX=\"$TMUX\" ")
	for _, e := range environment(cmd) {
		b.WriteString(quoted(e) + " ")
	}
	for _, a := range cmd.Args {
		b.WriteString(quoted(a) + " ")
	}
	name := filepath.Join(filepath.Dir(x.socket), "script")
	if err := os.WriteFile(name, []byte(b.String()+"\nexec sleep 1000\n"), 0o600); err != nil {
		x.t.Fatal(err)
	}
	return "exec sh " + quoted(name)
}

// quoted returns a word for a shell.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

func (x *tmux) do(args ...string) string {
	x.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", x.socket}, args...)...).CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

// Type implements Terminal.
func (x *tmux) Type(keys string) {
	x.t.Helper()
	args := []string{"send-keys", "-H"}
	for _, b := range []byte(keys) {
		args = append(args, fmt.Sprintf("%x", b))
	}
	x.do(args...)
}

// Resize implements Terminal.
func (x *tmux) Resize(width, height int) {
	x.t.Helper()
	x.do("resize-window", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height))
}

// Look implements Terminal. It asks for everything in one request: the server does
// nothing else between its parts.
func (x *tmux) Look() (p Picture) {
	x.t.Helper()
	const mark = "<end of the screen>"
	out := x.do("capture-pane", "-p", ";", "display-message", "-p", mark+" #{cursor_x} #{cursor_y}", ";", "capture-pane", "-p", "-J", "-S", "-")
	screen, rest, _ := strings.Cut(out, mark)
	cursor, all, _ := strings.Cut(rest, "\n")
	fmt.Sscan(cursor, &p.X, &p.Y)
	p.Screen, p.Lines = rowsOf(screen), rowsOf(all)
	return p
}

// rowsOf returns the lines of a text without the spaces at their ends.
func rowsOf(text string) []string {
	rows := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, r := range rows {
		rows[i] = strings.TrimRight(r, " ")
	}
	return rows
}
