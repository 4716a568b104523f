package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/rpc/protocol"
	"lashd/test/emulator"
	"lashd/test/fakemodel"
)

// terminal is a chat in an emulator.
type terminal struct {
	emulator.Terminal
	w *world
}

// emulated starts a chat in an emulator of 100 by 30, and waits until it is idle.
func (w *world) emulated(name string, args ...string) *terminal {
	w.t.Helper()
	cmd := w.command(append([]string{"chat"}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stderr = w.work, append(cmd.Env, "TERM=xterm-256color"), nil
	x := &terminal{emulator.Emulators[name](w.t, cmd, 100, 30), w}
	x.shows("─ idle")
	return x
}

func (x *terminal) shows(text string) emulator.Picture {
	x.w.t.Helper()
	return emulator.Shows(x.w.t, x, text)
}

// hides waits until the screen has a text no more.
func (x *terminal) hides(text string) emulator.Picture {
	x.w.t.Helper()
	return emulator.Until(x.w.t, x, "without "+text, func(p emulator.Picture) bool { return !strings.Contains(p.String(), text) })
}

// masks replace what differs between two runs.
var masks = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\b(ses|fpt|trn)_[0-9a-f]+`), "${1}_1"},
	{regexp.MustCompile(`\b[0-9.]+ ?m?s\b`), "1 ms"},
}

// looks waits until the screen is the one that a file holds. has is a text that appears last, for -update. Ids and durations
// do not count.
func (x *terminal) looks(file, has string) {
	x.w.t.Helper()
	name := filepath.Join("testdata", "screens", file+".txt")
	screen := func() string {
		text := strings.TrimRight(x.Look().String(), "\n") + "\n"
		for _, m := range masks {
			text = m.what.ReplaceAllString(text, m.with)
		}
		return text
	}
	if *rewrite {
		x.shows(has)
		time.Sleep(time.Second) // for what follows it
		if err := os.WriteFile(name, []byte(screen()), 0o600); err != nil {
			x.w.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		x.w.t.Fatal(err)
	}
	for deadline := time.Now().Add(patience / 8); screen() != string(want); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			x.w.t.Fatalf("the screen is\n%s\nwant %s:\n%s", screen(), name, want)
		}
	}
}

// leaves leaves the chat, whose prompt is empty.
func (x *terminal) leaves() {
	x.w.t.Helper()
	x.Type("\x04")
	x.shows("To continue this session")
}

// unchanged fails the test unless the terminal has the lines that it had before.
func (x *terminal) unchanged(before emulator.Picture) {
	x.w.t.Helper()
	want := before.All()
	if p := emulator.Until(x.w.t, x, "the prompt", func(p emulator.Picture) bool { return strings.Contains(p.All(), "─ idle") }); p.All() != want {
		x.w.t.Errorf("the terminal has\n%s\nwant\n%s", p.All(), want)
	}
}

// converses runs turns in a new session, and names it.
func (w *world) converses(title string, inputs ...string) protocol.SessionID {
	w.t.Helper()
	p := w.dial("")
	id := ask[protocol.SessionNewResult](p, "session/new", protocol.SessionNewParams{Cwd: w.work}).SessionID
	ask[protocol.SeqResult](p, "session/setTitle", protocol.SessionSetTitleParams{SessionID: id, Title: title})
	for _, text := range inputs {
		w.says(p, id, text)
		ask[protocol.SessionWaitResult](p, "session/wait", protocol.SessionWaitParams{SessionID: id})
	}
	return id
}

// says sends an input to a session.
func (*world) says(p *peer, id protocol.SessionID, text string) {
	p.t.Helper()
	ask[protocol.TurnStartResult](p, "turn/start", protocol.TurnStartParams{SessionID: id, Input: []protocol.InputPart{{Type: protocol.InputText, Text: text}}})
}

func TestSessionPicker(t *testing.T) {
	for name := range emulator.Emulators {
		t.Run("part/12 sessions: a session is found and opened in "+name+", and the scrollback is as before", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "ask", fakemodel.Say("The lock is **held** twice.\n\n```go\nmu.Lock()\n```"), fakemodel.Say("It is mended."), fakemodel.Say("Paris."),
				fakemodel.Step{Parts: []fakemodel.Part{shell("make docs")}}, fakemodel.Step{Parts: []fakemodel.Part{{Text: "On and on "}, stalls}}, fakemodel.Say("Here is the first chat."))
			w.serve()
			w.converses("Mend the lock", "why does the test hang?", "mend it")
			w.converses("", "what is the capital of France?")
			asks := w.converses("Write the docs")
			w.says(w.dial(""), asks, "write the docs")
			eventually(t, "a question is open", func() error { return w.state(asks, protocol.SessionRequiresAction) })
			runs := w.converses("Count to a million 数える")
			w.says(w.dial(""), runs, "count")
			eventually(t, "a turn runs", func() error { return w.state(runs, protocol.SessionRunning) })

			x := w.emulated(name)
			x.Type("what is here?\r")
			x.shows("Here is the first chat.")
			x.shows("─ idle")
			before := x.hides("─ working")
			x.Type("/resume\r")
			x.looks("sessions", "Here is the first chat.")
			x.Type("hang twice thrice")
			x.looks("sessions-none", "No session has these words.")
			x.Type("\x15held twice") // words of an answer
			x.looks("sessions-message", "“")
			x.Type("\x15hang lock")
			x.looks("sessions-found", "It is mended.")
			x.Resize(40, 20)
			x.looks("sessions-narrow", "Sessions of")
			x.Resize(100, 30)
			x.looks("sessions-found", "It is mended.")
			x.Type("\x1b")
			x.hides("Sessions of")
			x.unchanged(before)

			x.Type("/sessions\r")
			x.shows("Sessions of")
			x.Type("france\r")
			p := x.shows("Paris.")
			if want := "· Continuing session ses_"; !strings.Contains(p.All(), want) || strings.Contains(p.All(), "Sessions of") {
				t.Errorf("the terminal has\n%s", p.All())
			}
			x.leaves()
			w.model.Release()
		})
	}
}

// state fails unless a session is in a state.
func (w *world) state(id protocol.SessionID, want protocol.SessionState) error {
	all := w.stored()
	i := slices.IndexFunc(all, func(s protocol.Session) bool { return s.ID == id && s.State == want })
	if i < 0 {
		return os.ErrNotExist
	}
	return nil
}

// changing is a model that changes files in two turns, and says something in a third.
func changing() []fakemodel.Step {
	write := func(path, text string) fakemodel.Step {
		return fakemodel.Step{Parts: []fakemodel.Part{uses("write", map[string]string{"path": path, "content": text})}}
	}
	return []fakemodel.Step{
		write("a.txt", "one\ntwo\n"), fakemodel.Say("There is `a.txt` now."),
		write("a.txt", "one\n2\nthree\n"), write("b.txt", "b\n"), fakemodel.Say("Both are written."),
		fakemodel.Say("It is a file."), fakemodel.Say("Again."), fakemodel.Say("More."),
	}
}

// files returns the names of the files in the workspace.
func (w *world) files() (names []string) {
	entries, err := os.ReadDir(w.work)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestListOfTurns(t *testing.T) {
	for name := range emulator.Emulators {
		t.Run("part/12 turns: a person looks at turns in "+name+", undoes files, goes back and forks", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "allow", changing()...)
			w.serve()
			id := w.converses("Files", "write a.txt", "change it, and write b.txt\nas well", "what is it?")
			x := w.emulated(name, string(id))
			before := x.shows("It is a file.")
			x.Type("\x1b")
			x.shows("Press Esc again to list the turns.")
			x.Type("\x1b")
			x.looks("turns", "1 file +2 -0")
			x.Type("\x1b[B")
			x.looks("turns-second", "created b.txt")
			x.Type("\r")
			x.looks("turns-details", "Up, Down")
			x.Type("\x1b")
			x.Resize(40, 20)
			x.looks("turns-narrow", "Turns of this session")
			x.Type("r")
			x.looks("turns-back-narrow", "Go back")
			x.Resize(100, 30)
			x.looks("turns-back", "/undo can bring")
			x.Type("2")
			x.looks("turns-back-talk", "Files stay as they are.")
			x.Type("\x1b")
			x.shows("Turns of this session")
			x.Type("\x1b")
			x.hides("Turns of this session")
			x.unchanged(before)
			if got := w.files(); !slices.Equal(got, []string{"a.txt", "b.txt"}) {
				t.Errorf("looking changed files: %q", got)
			}

			w.write(filepath.Join(w.work, "a.txt"), "mine\n")
			x.Type("/turns\r")
			x.shows("· 1 file +2 -0")
			x.Type("\x1b[B")
			x.Type("u")
			x.looks("turns-undo-conflict", "o overwrites")
			x.Type("\r")
			x.Type("o")
			x.shows("will be overwritten")
			x.Type("\r")
			x.shows("Restored 2 files")
			if got, err := os.ReadFile(filepath.Join(w.work, "a.txt")); err != nil || string(got) != "one\ntwo\n" || w.size("b.txt") != 0 {
				t.Errorf("a.txt is %q (%v), b.txt has %d bytes", got, err, w.size("b.txt"))
			}

			x.Type("/turns\r")
			x.shows("+3 -1 · undone")
			x.Type("\x1b[B\x1b[B")
			x.Type("f")
			x.shows("You are now in a copy that ends after")
			x.hides("Turns of")
			eventually(t, "there is a copy", func() error {
				if len(w.stored()) != 2 {
					return os.ErrNotExist
				}
				return nil
			})
			x.shows("─ idle")
			x.Type("/turns\r")
			x.shows("1 of 1")
			x.Type("\x1b")
			x.hides("1 of 1")

			x.Type("/resume " + string(id) + "\r")
			x.shows("Continuing session")
			x.shows("─ idle")
			x.Type("/turns\r")
			x.shows("1 of 3")
			x.Type("\x1b[B")
			x.Type("r2")
			x.shows("Files stay as they are.")
			x.Type("\r")
			x.shows("The conversation went back to an earlier point.")
			x.shows("› change it, and write b.txt\n  as well")
			x.Type("\r")
			x.shows("Again.")
			ask[protocol.SessionWaitResult](w.dial(""), "session/wait", protocol.SessionWaitParams{SessionID: id})
			items := ask[protocol.SessionReadResult](w.dial(""), "session/read", protocol.SessionReadParams{SessionID: id}).Data
			var said []string
			for _, i := range items {
				if i.Kind == protocol.ItemUserMessage {
					said = append(said, i.Text)
				}
			}
			if want := []string{"write a.txt", "change it, and write b.txt\nas well"}; !slices.Equal(said, want) {
				t.Errorf("the history has %q, want %q", said, want)
			}

			x.Type("/turns\r")
			x.shows("1 of 2")
			x.Type("\x1b[F")
			x.Type("r")
			x.looks("turns-first", "forgets")
			x.Type("q")
			x.shows("2 of 2")
			x.Type("q")
			x.hides("Turns of")
			x.leaves()
		})
	}
}
