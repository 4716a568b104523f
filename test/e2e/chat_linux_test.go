package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// chatScreen is lash chat on a terminal, with all of its output.
type chatScreen struct {
	t    *testing.T
	tty  *os.File
	done chan error

	process *os.Process

	mu    sync.Mutex
	shown strings.Builder
	seen  int // offset up to which the test has looked
}

func (h *home) chat(args ...string) *chatScreen {
	h.t.Helper()
	return h.onTerminal(append([]string{"chat"}, args...)...)
}

// onTerminal runs lashd on a terminal.
func (h *home) onTerminal(args ...string) *chatScreen {
	h.t.Helper()
	cmd := h.command(args...)
	cmd.Dir, cmd.Env, cmd.Stderr = h.work, append(cmd.Env, "TERM=xterm-256color"), nil
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		h.t.Fatal(err)
	}
	s := &chatScreen{t: h.t, tty: tty, done: make(chan error, 1), process: cmd.Process}
	go s.read()
	go func() { s.done <- cmd.Wait() }()
	h.t.Cleanup(func() {
		cmd.Process.Kill()
		tty.Close()
	})
	return s
}

func (s *chatScreen) read() {
	buf := make([]byte, 4096)
	for {
		n, err := s.tty.Read(buf)
		s.mu.Lock()
		s.shown.Write(buf[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// letters returns the output without cursor movements, which may replace spaces.
func (s *chatScreen) letters() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(strings.Fields(ansi.Strip(s.shown.String())), "")
}

// shows waits until what appears on the screen, after the text that was waited for before.
func (s *chatScreen) shows(what string) {
	s.t.Helper()
	bare := strings.Join(strings.Fields(what), "")
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		all := s.letters()
		if at := strings.Index(all[min(s.seen, len(all)):], bare); at >= 0 {
			s.seen += at + len(bare)
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%q does not appear in the output that followed: %s", what, all[min(s.seen, len(all)):])
		}
	}
}

func (s *chatScreen) types(text string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// enters types a line, and then Enter as a separate key press.
func (s *chatScreen) enters(text string) {
	s.t.Helper()
	s.types(text)
	s.shows(text[len(text)-3:])
	s.types("\r")
}

func (s *chatScreen) leaves() {
	s.t.Helper()
	select {
	case err := <-s.done:
		if err != nil {
			s.t.Errorf("%v: %s", err, s.letters()[s.seen:])
		}
	case <-time.After(patience):
		s.t.Fatal("the chat does not exit")
	}
}

// idle waits until the only session is idle.
func (w *world) idle() {
	w.t.Helper()
	p := w.dial("")
	id := ask[protocol.SessionListResult](p, "session/list", protocol.SessionListParams{}).Data[0].ID
	ask[protocol.SessionWaitResult](p, "session/wait", protocol.SessionWaitParams{SessionID: id})
}

func TestChat(t *testing.T) {
	t.Run("runtime/X03 issue/6-4 a user chats, allows and steers, and loses nothing when the daemon is killed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "ask",
			fakemodel.Step{Parts: []fakemodel.Part{{Text: "I am **bold** here."}}},
			fakemodel.Step{Parts: []fakemodel.Part{shell("echo sesame > made.txt; cat made.txt")}},
			fakemodel.Step{Parts: []fakemodel.Part{{Text: "It is made."}}},
			fakemodel.Step{Parts: []fakemodel.Part{{Text: "Alpha beta "}, {Stall: true}}},
			fakemodel.Step{Parts: []fakemodel.Part{{Text: "Alpha beta gamma delta."}}},
		)
		d := w.serve()
		w.dial("") // start the daemon
		s := w.chat()
		s.shows("idle")
		s.enters("who are you?")
		s.shows("I am bold here.")
		w.idle() // otherwise the next input would steer the running turn
		s.enters("make it")
		s.shows("Allow once")
		s.types("a") // a letter that is not alone on its line allows nothing
		s.types("\x7f")
		s.types("y\r")
		s.shows("Allowed once.")
		s.shows("sesame")
		s.shows("It is made.")
		if w.size("made.txt") == 0 {
			t.Error("the command did not run")
		}
		s.shows("Changed 1 file. /diff shows the changes, /undo reverts them.")
		s.enters("/diff")
		s.shows("+sesame")
		s.enters("/undo")
		s.shows("deleted made.txt")
		if w.size("made.txt") != 0 {
			t.Error("the file exists")
		}
		w.idle()
		s.enters("go on at length")
		s.shows("Alpha beta")
		d.kill()
		w.model.Release() // not before, or the turn could end
		s.shows("connecting")
		s.shows("Alpha beta gamma delta.")
		p := w.dial("")
		sessions := ask[protocol.SessionListResult](p, "session/list", protocol.SessionListParams{}).Data
		if len(sessions) != 1 {
			t.Fatalf("sessions: %+v", sessions)
		}
		ask[protocol.SessionWaitResult](p, "session/wait", protocol.SessionWaitParams{SessionID: sessions[0].ID})
		if r := ask[protocol.SessionReadResult](p, "session/read", protocol.SessionReadParams{SessionID: sessions[0].ID}); r.Session.TurnIndex != 3 {
			t.Errorf("got %+v", r.Session)
		}
		s.enters("/quit")
		s.shows(fmt.Sprintf("lash chat %.16s", sessions[0].ID))
		s.leaves()
		again := w.chat("-c")
		again.shows("who are you?")
		again.shows("It is made.")
		again.shows("Alpha beta gamma delta.")
		again.types("\x04")
		again.leaves()
		w.shutdown()
	})
	t.Run("runtime/X03 issue/6-4 commands, a question that another client answers, and an unused session", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "ask",
			fakemodel.Step{Parts: []fakemodel.Part{shell("touch never.txt")}},
			fakemodel.Step{Parts: []fakemodel.Part{{Text: "So be it."}}},
			fakemodel.Step{Parts: []fakemodel.Part{{Text: "And then."}}},
		)
		d := w.serve()
		p := w.dial("")
		s := w.chat()
		s.shows("idle")
		s.enters("/nothing of that kind")
		s.shows("Unknown command /nothing")
		s.types("\x15/help")
		s.shows("/help")
		s.types("\r")
		s.shows("/queue TEXT")
		s.enters("touch it")
		s.shows("waiting for your answer")
		s.enters("/queue afterwards")
		s.shows("queued: afterwards")
		var open protocol.Decision
		eventually(t, "the question is listed", func() error {
			all := ask[protocol.DecisionListResult](p, "decision/list", protocol.DecisionListParams{}).Data
			if len(all) != 1 {
				return errors.New("there is none")
			}
			open = all[0]
			return nil
		})
		ask[protocol.DecisionRespondResult](p, "decision/respond", protocol.DecisionRespondParams{DecisionID: open.ID, Choice: protocol.ChooseReject, ArgsHash: open.ArgsHash})
		s.shows("Denied.")
		s.shows("So be it.")
		s.shows("afterwards")
		s.shows("And then.")
		s.enters("/fork")
		s.shows("You are now in a copy.")
		s.shows("And then.")
		s.types("\x03\x03")
		s.leaves()
		if _, err := os.Stat(filepath.Join(w.work, "never.txt")); err == nil {
			t.Error("the denied command ran")
		}
		empty := w.chat()
		empty.shows("idle")
		empty.types("\x03\x03")
		empty.leaves()
		if n := len(ask[protocol.SessionListResult](p, "session/list", protocol.SessionListParams{}).Data); n != 2 {
			t.Errorf("%d sessions", n)
		}
		d.stop()
	})
	t.Run("runtime/X03 issue/6-4 a steered input is shown at once, and later where the model reads it", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "ask",
			fakemodel.Step{Parts: []fakemodel.Part{shell("touch made.txt")}},
			fakemodel.Step{Parts: []fakemodel.Part{{Text: "Alpha beta "}, {Stall: true}}},
			fakemodel.Step{Parts: []fakemodel.Part{{Text: "All done."}}},
		)
		d := w.serve()
		w.dial("")
		s := w.chat()
		s.shows("idle")
		s.enters("make it")
		s.shows("waiting for your answer")
		s.enters("mind the gap")
		s.shows("steering: mind the gap")
		s.enters("Yes")
		s.shows("Allowed once.")
		s.shows("› mind the gap")
		s.shows("Alpha beta")
		s.enters("steer me")
		s.shows("steering: steer me")
		s.enters("/queue later")
		s.shows("queued: later")
		s.types("\x1b")
		s.shows("Stopped.")
		s.shows("› steer me")
		s.shows("› later")
		s.shows("All done.")
		s.types("\x04")
		s.leaves()
		d.stop()
	})
}

// ends waits for a chat that was sent a signal.
func (s *chatScreen) ends() {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(patience):
		s.t.Fatal("the chat does not exit")
	}
}

func (w *world) stored() []protocol.Session {
	w.t.Helper()
	return ask[protocol.SessionListResult](w.dial(""), "session/list", protocol.SessionListParams{}).Data
}

func TestChatSessionsAndKeys(t *testing.T) {
	t.Run("outside/25 the first message becomes the title", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "ask", fakemodel.Say("It is mended."), fakemodel.Say("So is this."))
		w.serve()
		w.dial("") // start the daemon, so that the chat does not
		s := w.chat()
		s.shows("idle")
		s.enters("mend the failing test")
		s.shows("It is mended.")
		w.idle()
		s.enters("and the other")
		s.shows("So is this.")
		s.types("\x04")
		s.leaves()
		if all := w.stored(); len(all) != 1 || all[0].Title != "mend the failing test" {
			t.Errorf("sessions %+v, want one with the first message as its title", all)
		}
	})
	t.Run("outside/25 a chat without a message leaves no session", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "ask")
		w.serve()
		w.dial("") // start the daemon, so that the chat does not
		s := w.chat()
		s.shows("idle")
		s.enters("/approve deny") // a setting is not a message
		s.shows("Tool calls that no rule covers: deny")
		s.types("\x04")
		s.leaves()
		if all := w.stored(); len(all) != 0 {
			t.Errorf("sessions %+v, want none", all)
		}
	})
	t.Run("outside/25 a chat whose terminal is closed leaves no session", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "ask")
		w.serve()
		w.dial("")                                             // start the daemon, so that the chat does not
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // otherwise the chat would ignore SIGHUP where these tests do, as under nohup
		s := w.chat()
		s.shows("idle")
		s.process.Signal(syscall.SIGHUP)
		s.ends()
		if all := w.stored(); len(all) != 0 {
			t.Errorf("sessions %+v, want none", all)
		}
	})
	t.Run("outside/25 the first Ctrl-C clears or stops, the second one quits", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "ask", fakemodel.Step{Parts: []fakemodel.Part{{Text: "On and on "}, {Stall: true}}})
		w.serve()
		w.dial("") // start the daemon, so that the chat does not
		s := w.chat()
		s.shows("idle")
		s.types("\x03")
		s.shows("Press Ctrl-C again to quit")
		s.enters("hello there") // the chat is still open, and another key forgets the first Ctrl-C
		s.shows("On and on")
		s.types("\x03")
		s.shows("Stopped.")
		s.types("x\x03") // clears the input
		s.shows("Press Ctrl-C again to quit")
		s.types("\x03")
		s.leaves()
		if all := w.stored(); len(all) != 1 {
			t.Errorf("sessions %+v, want the one of the chat", all)
		}
		w.model.Release()
	})
}

func TestStopBesideOthers(t *testing.T) {
	t.Run("part12/3 stop returns when the daemon has exited, and says that another one has started", func(t *testing.T) {
		w := newWorld(t, "ask")
		next := w.command("serve")
		again := exec.Command("sh", append([]string{"-c", `trap exit TERM; while :; do "$@" 2>/dev/null; done`, "sh"}, next.Args...)...)
		again.Env = next.Env
		if err := again.Start(); err != nil {
			t.Fatal(err)
		}
		// Whether the next daemon already listens when stop looks for it is a matter of time.
		want := regexp.MustCompile(`^lash: stopped .* \(pid \d+\); no turn was running\n(lash: .* has started it again \(pid \d+\))?`)
		for seen := false; !seen; {
			w.dial("").conn.Close()
			stop := w.command("stop")
			stop.Stderr = nil
			out, err := stop.CombinedOutput()
			found := want.FindSubmatch(out)
			if err != nil || found == nil {
				t.Fatalf("%v: %s, want %s", err, out, want)
			}
			seen = len(found[1]) > 0
		}
		again.Process.Signal(syscall.SIGTERM)
		w.shutdown()
		again.Wait()
	})
	t.Run("part12/2 a chat stays open while the daemon is stopped repeatedly", func(t *testing.T) {
		w := newWorld(t, "ask", fakemodel.Say("Still here."))
		s := w.chat()
		s.shows("idle")
		for range 5 {
			w.lash("stop")
			w.dial("").conn.Close()
		}
		s.enters("are you there?")
		s.shows("Still here.")
		s.enters("/quit")
		s.leaves()
		w.shutdown()
	})
}

func TestFailedTurnInChat(t *testing.T) {
	t.Run("part12/2 a chat that opens a session says how its newest turn failed", func(t *testing.T) {
		w := newWorld(t, "ask", fakemodel.Fail(400))
		run := w.command("run", "do a thing")
		if run.Dir = w.work; run.Run() == nil {
			t.Fatal("the turn succeeded")
		}
		s := w.chat("-c")
		s.shows("do a thing")
		s.shows("Turn failed")
		s.enters("/quit")
		s.leaves()
		w.shutdown()
	})
}
