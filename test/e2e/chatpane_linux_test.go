package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// pane is a chat in a tmux of its own, which shows what a person sees.
type pane struct {
	t      *testing.T
	socket string
}

// pane starts a chat in a terminal of this size.
func (h *home) pane(width, height int, args ...string) *pane {
	h.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		h.t.Fatal("tmux is missing; install it")
	}
	dir, err := os.MkdirTemp("", "pane") // t.TempDir is too long for a socket
	if err != nil {
		h.t.Fatal(err)
	}
	conf := filepath.Join(dir, "conf")
	if err := os.WriteFile(conf, []byte("set -g status off\nset -s escape-time 0\n"), 0o600); err != nil {
		h.t.Fatal(err)
	}
	p := &pane{h.t, filepath.Join(dir, "s")}
	chat := h.command(append([]string{"chat"}, args...)...)
	cmd := exec.Command("tmux", append([]string{"-S", p.socket, "-f", conf, "new-session", "-d", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height), chat.Path}, chat.Args[1:]...)...)
	cmd.Dir, cmd.Env = h.work, chat.Env
	if out, err := cmd.CombinedOutput(); err != nil {
		h.t.Fatalf("tmux: %v: %s", err, out)
	}
	h.t.Cleanup(func() {
		_ = exec.Command("tmux", "-S", p.socket, "kill-server").Run() // it has ended if the chat has
		os.RemoveAll(dir)
	})
	return p
}

// do runs a command of tmux and returns its output.
func (p *pane) do(args ...string) string {
	p.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", p.socket}, args...)...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

// types types a text.
func (p *pane) types(text string) {
	p.t.Helper()
	p.do("send-keys", "-l", text)
}

// presses presses keys by their names in tmux, such as Enter and C-s.
func (p *pane) presses(keys ...string) {
	p.t.Helper()
	p.do(append([]string{"send-keys"}, keys...)...)
}

// screen returns the lines on the screen, up to the last one with a text.
func (p *pane) screen() string {
	p.t.Helper()
	return strings.TrimRight(p.do("capture-pane", "-p"), "\n ")
}

// shows waits until the screen contains a text.
func (p *pane) shows(text string) {
	p.t.Helper()
	p.waits(fmt.Sprintf("%q is not shown", text), func(screen string) bool { return strings.Contains(screen, text) })
}

// ends waits until the last lines of the screen are these.
func (p *pane) ends(lines ...string) {
	p.t.Helper()
	want := strings.Join(lines, "\n")
	p.waits(fmt.Sprintf("the screen does not end with\n%s\n", want), func(screen string) bool { return strings.HasSuffix(screen, "\n"+want) })
}

func (p *pane) waits(problem string, done func(screen string) bool) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		screen := p.screen()
		if done(screen) {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s on the screen:\n%s", problem, screen)
		}
	}
}

func TestPromptOnATerminal(t *testing.T) {
	t.Run("part/12 commands and paths are completed below the prompt, also on 40 columns", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "ask", fakemodel.Say("It is read."))
		for path, text := range map[string]string{".gitignore": "*.log\n", "main.go": "", "old.log": "", "pkg/server/main.go": "", "pkg/my file.txt": ""} {
			at := filepath.Join(w.work, path)
			if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("/etc", filepath.Join(w.work, "outside")); err != nil {
			t.Fatal(err)
		}
		w.serve()
		w.dial("") // start the daemon, so that the chat does not
		p := w.pane(80, 24)
		p.shows("idle")
		p.types("/se")
		p.ends("› /se", "▸ /sessions [ID]  find a session of this directory and open it (also /resume)")
		p.presses("Escape")
		p.ends("› /se")
		p.presses("C-u")
		p.types("@")
		p.ends("› @", "▸ main.go", "  pkg/", "  .gitignore")
		p.types("ma")
		p.ends("› @ma", "▸ main.go", "  pkg/server/main.go")
		p.presses("Down", "Tab")
		p.ends("› @pkg/server/main.go")
		p.types("and @pkg/")
		p.ends("› @pkg/server/main.go and @pkg/", "  pkg/my file.txt", "  pkg/server/", "  pkg/server/main.go")
		p.presses("Tab")
		p.ends(`› @pkg/server/main.go and @"pkg/my file.txt"`)
		p.do("resize-window", "-x", "40", "-y", "24")
		p.presses("Enter")
		p.shows("It is read.")
		w.idle()
		p.types("/s")
		p.ends("› /s", "▸ /stop                 stop the turn", "  /sandbox readOnly|w…  set the sandbox…", "  /sessions [ID]        find a session …")
		items := ask[protocol.SessionReadResult](w.dial(""), "session/read", protocol.SessionReadParams{SessionID: w.stored()[0].ID}).Data
		if text := items[0].Text; text != `@pkg/server/main.go and @"pkg/my file.txt"` {
			t.Errorf("the model gets %q", text)
		}
	})
}

func TestQueueOnATerminal(t *testing.T) {
	t.Run("part/12 Up takes back queued and steered inputs, and each is sent once", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "ask",
			fakemodel.Step{Parts: []fakemodel.Part{{Text: "Alpha "}, {Stall: true}, {Text: "beta."}}},
			fakemodel.Say("Gamma."), fakemodel.Say("Delta."),
		)
		w.serve()
		w.dial("") // start the daemon, so that the chat does not
		p := w.pane(80, 24)
		p.shows("idle")
		p.types("go on at length")
		p.presses("Enter")
		p.shows("Alpha")
		p.types("mind the gap")
		p.presses("Enter")
		p.shows("steering: mind the gap")
		p.types("/queue later")
		p.presses("Enter")
		p.shows("queued: later")
		p.shows("› Steer the turn… (Up edits the newest queued input)")
		p.presses("Up")
		p.ends("› /queue later")
		p.types(" on")
		p.presses("Enter")
		p.shows("queued: later on")
		p.presses("Up")
		p.ends("› /queue later on")
		p.presses("C-u", "Up")
		p.ends("› mind the gap")
		p.types("s")
		p.presses("Enter")
		p.shows("steering: mind the gaps")
		w.model.Release()
		p.shows("Gamma.")
		p.shows("› mind the gaps")
		w.idle()
		var sent []string
		for _, i := range ask[protocol.SessionReadResult](w.dial(""), "session/read", protocol.SessionReadParams{SessionID: w.stored()[0].ID}).Data {
			if i.Kind == protocol.ItemUserMessage {
				sent = append(sent, i.Text)
			}
		}
		if len(sent) != 2 || strings.Contains(p.screen(), "Not started") || strings.Contains(p.screen(), "later on") {
			t.Errorf("the agent gets %q; the screen is\n%s", sent, p.screen())
		}
	})
	t.Run("part/12 a draft survives a daemon that is killed, and is sent once", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "ask", fakemodel.Say("First."), fakemodel.Say("Second."))
		d := w.serve()
		w.dial("") // start the daemon, so that the chat does not
		p := w.pane(80, 24)
		p.shows("idle")
		p.types("one")
		p.presses("Enter")
		p.shows("First.")
		w.idle()
		p.types("half a thou")
		p.ends("› half a thou")
		d.kill()
		p.types("ght")
		p.ends("› half a thought")
		p.shows("idle") // the chat has started another daemon
		p.ends("› half a thought")
		p.presses("Enter")
		p.shows("Second.")
		if n := strings.Count(p.screen(), "half a thought"); n != 1 {
			t.Errorf("it is shown %d times:\n%s", n, p.screen())
		}
	})
}

func TestHistoryOnATerminal(t *testing.T) {
	t.Run("part/12 inputs of other sessions of the directory return with Up and Ctrl-S", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "ask", fakemodel.Say("First."), fakemodel.Say("Second."), fakemodel.Say("Third."))
		w.serve()
		p := w.dial("")
		for cwd, texts := range map[string][]string{w.work: {"mend the lock", "write a test for it"}, t.TempDir(): {"elsewhere"}} {
			for _, text := range texts {
				id := ask[protocol.SessionNewResult](p, "session/new", protocol.SessionNewParams{Cwd: cwd}).SessionID
				ask[protocol.TurnStartResult](p, "turn/start", protocol.TurnStartParams{SessionID: id, Input: []protocol.InputPart{{Type: protocol.InputText, Text: text}}})
				ask[protocol.SessionWaitResult](p, "session/wait", protocol.SessionWaitParams{SessionID: id})
			}
		}
		s := w.pane(60, 20)
		s.shows("idle")
		s.types("mine")
		s.presses("Enter")
		s.shows("› mine")
		s.shows("idle")
		s.presses("Up")
		s.ends("› mine")
		s.presses("Up")
		s.ends("› write a test for it")
		s.presses("Up")
		s.ends("› mend the lock")
		s.presses("Up", "C-u")
		s.types("draft")
		s.presses("C-s")
		s.ends("search: words of an earlier input (Enter takes it)", "▸ mine", "  write a test for it", "  mend the lock")
		s.types("lock")
		s.ends("search: lock", "▸ mend the lock")
		s.presses("Escape")
		s.ends("› draft")
		s.presses("C-s")
		s.types("test")
		s.ends("search: test", "▸ write a test for it")
		s.presses("Enter")
		s.ends("› write a test for it")
	})
}

func TestImagesOnATerminal(t *testing.T) {
	t.Run("part/12 images come from the clipboard and by path, as blocks that Backspace removes", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "ask", fakemodel.Say("It is white."))
		const png = `\211PNG\r\n\032\n\000\000\000\rIHDR\000\000\000\001\000\000\000\001`
		bin := t.TempDir()
		script := "#!/bin/sh\ncase \"$*\" in *TARGETS) echo image/png;; *) printf '" + png + "';; esac\n"
		if err := os.WriteFile(filepath.Join(bin, "xclip"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		image := filepath.Join(w.work, "my image.png")
		if err := exec.Command("sh", "-c", "printf '"+png+`' > "$0"`, image).Run(); err != nil {
			t.Fatal(err)
		}
		w.path, w.env = append(w.path, bin), append(w.env, "WAYLAND_DISPLAY=", "DISPLAY=:9")
		w.serve()
		w.dial("") // start the daemon, so that the chat does not
		p := w.pane(80, 24)
		p.shows("idle")
		p.presses("C-v")
		p.ends("› [image clipboard-1.png 1 KB]")
		p.presses("BSpace", "BSpace")
		p.ends("› Ask lashd to do something… (/help lists commands)")
		p.types("see ")
		p.do("set-buffer", strings.ReplaceAll(image, " ", `\ `))
		p.do("paste-buffer", "-p")
		p.ends("› see [image my image.png 1 KB]")
		p.presses("Enter")
		p.shows("It is white.")
		w.idle()
		p.shows("─ idle")
		var got []string
		for _, i := range ask[protocol.SessionReadResult](w.dial(""), "session/read", protocol.SessionReadParams{SessionID: w.stored()[0].ID}).Data {
			if i.Attachment != nil {
				got = append(got, i.Attachment.Name+" "+i.Attachment.Type)
			} else {
				got = append(got, i.Text)
			}
		}
		if want := "see [image my image.png]|my image.png image/png|It is white."; strings.Join(got, "|") != want {
			t.Errorf("the session has %q", got)
		}
		if n := strings.Count(p.screen(), "my image.png"); n != 1 { // the message; the title in the status line is cut
			t.Errorf("the image is shown %d times:\n%s", n, p.screen())
		}
	})
}
