package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"lashd/test/emulator"
	"lashd/test/fakemodel"
	"lashd/test/wait"
)

// updateScreens makes TestScreens write the pictures in testdata/screens.
var updateScreens = flag.Bool("screens", false, "write testdata/screens")

// screenTerms are the terminals whose screens are compared: one with all that the chat uses, that of
// tmux and GNU Screen, and one without colors and a second screen.
var screenTerms = []string{"xterm-256color", "screen-256color", "vt100"}

// gallery is a chat in an emulator whose screens are compared with stored ones.
type gallery struct {
	emulator.Terminal
	*world
	t *testing.T
}

// inEmulator starts a chat of 80 by 30 in an emulator.
func (w *world) inEmulator(t *testing.T, name, term string, args ...string) *gallery {
	t.Helper()
	cmd := w.command(append([]string{"chat"}, args...)...)
	cmd.Dir, cmd.Env = w.work, append(cmd.Env, "TERM="+term, "LASHD_NOTIFY=off", "FORCE_HYPERLINK=0")
	return &gallery{emulator.Emulators[name](t, cmd, 80, 30), w, t}
}

// varying matches what differs between two runs: times, ports and ids.
var varying = regexp.MustCompile(`[0-9]+(\.[0-9]+)?( ms|s\b)|[0-9]+:[0-9]{2}\b|(tsk|ses)_[0-9a-f]+|\(waiting for [^)]*\)|lash · /\S+`)

// still returns the last rows of a terminal of 80 columns, without what differs between two runs. In xterm.js, the rows of the
// live area form one line.
func still(p emulator.Picture) string {
	lines := strings.Split(ansi.Hardwrap(p.All(), 80, true), "\n")
	text := varying.ReplaceAllStringFunc(strings.Join(lines[max(0, len(lines)-30):], "\n"), func(s string) string {
		if strings.HasPrefix(s, "(waiting") {
			return ""
		}
		return "#"
	})
	return regexp.MustCompile(` +\n`).ReplaceAllString(text+"\n", "\n")
}

// shows waits until the terminal has a text on its screen, and compares it with the picture of that name.
func (g *gallery) shows(text, picture string) {
	g.t.Helper()
	path := filepath.Join("testdata", "screens", picture+".txt")
	stored, _ := os.ReadFile(path) // a missing one differs
	var got string
	emulator.Until(g.t, g, text, func(p emulator.Picture) bool {
		got = still(p)
		return strings.Contains(p.String(), text)
	})
	for range 100 { // what follows the text may still be on its way
		if got == string(stored) {
			return
		}
		got = still(g.Look())
	}
	if *updateScreens {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			g.t.Fatal(err)
		}
		return
	}
	g.t.Errorf("the screen differs from %s:\n%s", path, cmp.Diff(string(stored), got))
}

// enters types a line and Enter.
func (g *gallery) enters(line string) {
	g.t.Helper()
	g.Type(line)
	emulator.Shows(g.t, g, line)
	g.Type("\r")
}

// only waits until the terminal has a text on its screen.
func (g *gallery) only(text string) {
	g.t.Helper()
	emulator.Until(g.t, g, text, func(p emulator.Picture) bool { return strings.Contains(p.String(), text) })
}

// markdownAnswer is an answer with everything that is rendered.
const markdownAnswer = "## What I changed\n\n`Total` skipped the first price. Now it adds **every** price.\n\n```go\nfunc Total(prices []int) int {\n\treturn sum(prices)\n}\n```\n\n" +
	"```diff\n-for _, p := range prices[1:] {\n+for _, p := range prices {\n```\n\n| case | before | after |\n|---|---|---|\n| empty | panic | 0 |\n| one price | 0 | 日本 |\n\n1. The loop starts at the *first* price.\n2. An empty list gives 0.\n\n> Tests pass.\n"

// planOf returns the call that writes a plan of three steps, of which n are done.
func planOf(n int) fakemodel.Part {
	var steps []map[string]string
	for i, text := range []string{"Read cart.go", "Mend the loop", "Run the tests"} {
		status := "pending"
		if i < n {
			status = "completed"
		} else if i == n {
			status = "inProgress"
		}
		steps = append(steps, map[string]string{"text": text, "status": status})
	}
	return uses("update_plan", map[string]any{"steps": steps})
}

// story returns a world whose model plays the parts of all pictures.
func story(t *testing.T, approval string) *world {
	t.Helper()
	w := newWorld(t, approval,
		step(says(markdownAnswer)),
		step(planOf(0), shell("seq 1 300"), shell("cat nowhere; exit 3"), uses("read", map[string]any{"path": "gone.txt"})),
		step(planOf(1), uses("start_command", map[string]any{"command": "exec sleep 300", "label": "npm run dev"}),
			uses("edit", map[string]any{"path": "cart.go", "old": "prices[1:]", "new": "prices"}), shell("touch began; until [ -e go ]; do sleep 0.02; done")),
		step(says("It is mended.")),
		step(says("Later it is.")),
		step(shell("test -e ok || touch ok")),
		step(uses("edit", map[string]any{"path": "cart.go", "old": "sum := 0", "new": "var sum int"})),
		step(says("Both are done.")),
	)
	w.write(filepath.Join(w.work, "cart.go"), "package cart\n\n// Total adds up prices, in cents.\nfunc Total(prices []int) int {\n\tsum := 0\n\tfor _, p := range prices[1:] {\n\t\tsum += p\n\t}\n\treturn sum\n}\n")
	w.serve()
	w.dial("") // start the daemon, so that the chat does not
	return w
}

func TestScreens(t *testing.T) {
	for name := range emulator.Emulators {
		for _, term := range screenTerms {
			t.Run(fmt.Sprintf("issue/21-2 screens: the pictures of the chat in %s, TERM=%s", name, term), func(t *testing.T) {
				t.Parallel()
				g := story(t, "allow").inEmulator(t, name, term)
				g.menus()
				g.enters("What did you change?")
				g.shows("Tests pass.", "answer")
				g.only("─ idle")
				g.work()
				g.transcript()
				g.approvals()
			})
			t.Run(fmt.Sprintf("issue/21-2 screens: the form of a key in %s, TERM=%s", name, term), func(t *testing.T) {
				t.Parallel()
				g := newKeyless(t).inEmulator(t, name, term)
				g.only("no model is set up")
				g.enters("/login")
				g.shows("Provider ", "providers")
				g.Type("\x1b")
				g.only("No key was stored.")
				g.enters("/login anthropic")
				g.only("API key of")
				g.Type("secret")
				g.shows("••••••", "keyform")
			})
			t.Run(fmt.Sprintf("issue/21-2 screens: a chat for a screen reader in %s, TERM=%s", name, term), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, "ask", step(shell("echo hello")), step(says(markdownAnswer)))
				w.serve()
				w.dial("")
				g := w.inEmulator(t, name, term, "--screen-reader")
				g.only("Ready.")
				g.enters("hello")
				g.only("Type a number")
				g.Type("1\r")
				g.only("quote: Tests pass.")
				g.shows("Ready.", "reader")
			})
		}
	}
}

// menus takes the pictures of the menus.
func (g *gallery) menus() {
	g.t.Helper()
	g.only("─ idle")
	g.Type("/s")
	g.shows("▸ /stop", "menu-commands")
	g.Type("\x15@")
	g.shows("▸ cart.go", "menu-paths")
	g.Type("\x15")
}

// work takes a picture of a turn with a plan, a background task, a running call, and inputs that wait, and one
// after it.
func (g *gallery) work() {
	g.t.Helper()
	g.enters("Mend it.")
	wait.Until(g.t, "the call runs", func() bool { _, err := os.Stat(filepath.Join(g.world.work, "began")); return err == nil })
	g.enters("mind the gap")
	g.only("steering: mind")
	g.enters("/queue later")
	g.shows("queued: later", "working")
	g.write(filepath.Join(g.world.work, "go"), "")
	g.only("Later it is.")
	g.shows("─ idle", "cards")
}

// transcript takes pictures of the unfolded calls, and of the screen after them.
func (g *gallery) transcript() {
	g.t.Helper()
	g.enters("/output 2")
	g.shows("Transcript", "transcript")
	g.Type("/nowhere\r")
	g.shows("cat: nowhere", "transcript-search")
	g.Type("q")
	g.shows("─ idle", "cards-again")
}

// approvals takes pictures of questions.
func (g *gallery) approvals() {
	g.t.Helper()
	g.enters("/approve ask")
	g.only("Tool calls that no rule covers: ask")
	g.enters("Test it.")
	g.shows("Allow once", "approval")
	g.Type("y\r") // a card that has just appeared leaves the letter to the input
	g.only("var sum int")
	g.shows("r Deny, say why", "approval-diff")
	g.Type("n\r")
	g.only("Both are done.")
	g.shows("─ idle", "end")
}
