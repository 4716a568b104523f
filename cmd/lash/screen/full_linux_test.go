package screen

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"lashd/test/emulator"
)

// fills waits until the program has the whole screen of a size, and nothing else is on it.
func (x *shown) fills(state string, width, height int) {
	x.t.Helper()
	head := fmt.Sprintf("full %s %dx%d", state, width, height)
	last := fmt.Sprint("row ", height-1, " ====")
	emulator.Until(x.t, x, head, func(p emulator.Picture) bool {
		return len(p.Screen) == height && strings.HasPrefix(p.Screen[0], head) && strings.HasPrefix(p.Screen[height-1], last) && p.X == 5 && p.Y == 2
	})
}

// whole fails the test unless the scrollback is exact. In tmux, lines that wrapped at the top of
// the screen may have become two.
func (x *shown) whole(name string, p emulator.Picture) {
	x.t.Helper()
	if name != "tmux" {
		x.exact(p)
		return
	}
	data, err := os.ReadFile(x.log)
	if err != nil {
		x.t.Fatal(err)
	}
	letters := func(text string) string { return strings.ReplaceAll(strings.ReplaceAll(text, "\n", ""), " ", "") }
	if got, want := letters(p.All()), letters(string(data)+"over 0"); got != want || strings.Count(string(data), "\n") > len(p.Lines) {
		x.t.Errorf("the scrollback is not exact:\n%s", p.All())
	}
}

func TestWholeScreen(t *testing.T) {
	for name := range emulator.Emulators {
		for _, term := range []string{"xterm-256color", "linux"} {
			t.Run(fmt.Sprintf("part/12 scrollback: it is exact after the whole screen was used in %s while an answer streamed, TERM=%s", name, term), func(t *testing.T) {
				t.Parallel()
				x := open(t, name, term, 5, 1500)
				for range 3 {
					x.Type("\x06")
					x.fills("working", 100, 30)
					x.Type("\x06")
					emulator.Shows(t, x, "─ working 100x30")
				}
				emulator.Shows(t, x, "─ finished")
				x.whole(name, x.ends())
			})
		}
		t.Run("part/12 scrollback: it is exact after the terminal was resized while "+name+" had the whole screen", func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(3, 3))
			x := open(t, name, "xterm-256color", 8, 1200)
			emulator.Shows(t, x, "─ finished")
			for range 6 {
				x.Type("\x06")
				emulator.Shows(t, x, "full finished")
				for range 2 {
					width, height := 40+random.IntN(120), 10+random.IntN(40)
					x.Resize(width, height)
					x.fills("finished", width, height)
				}
				x.Type("\x06")
				emulator.Shows(t, x, "─ finished")
				x.steers("a line")
			}
			x.typed = nil // the lines are alike
			x.whole(name, x.ends())
		})
	}
}

func TestWholeScreenEndsWithTheProgram(t *testing.T) {
	for name := range emulator.Emulators {
		for what, end := range map[string]string{"Ctrl-Q": "\x11", "a panic": "\x10"} {
			t.Run("part/12 after "+what+" the shell in "+name+" has its screen as before", func(t *testing.T) {
				x, _ := shell(t, name)
				x.Type("\x06")
				emulator.Shows(t, x, "full finished")
				x.Type(end)
				p := emulator.Until(t, x, "a prompt", func(p emulator.Picture) bool { return strings.HasSuffix(p.All(), "\n$") })
				if strings.Contains(p.All(), "full finished") || !strings.Contains(p.All(), "$ SCREEN_PROGRAM") || what == "a panic" && !strings.Contains(p.All(), "a panic of the test") {
					t.Errorf("the screen is\n%s", p.All())
				}
			})
		}
	}
}

func TestNoAlternateScreen(t *testing.T) {
	for env, want := range map[string]bool{
		"TERM=xterm-256color": true, "TERM=linux": false, "TERM=screen-256color": false,
		"TERM=screen TMUX=/s,1,0": true, "TERM=xterm STY=1.x": false,
	} {
		if got := kindOf(strings.Fields(env)).alternate; got != want {
			t.Errorf("part/12 with %s there is an alternate screen: %t, want %t", env, got, want)
		}
	}
}
