package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
	"lashd/test/tree"
)

// change is the effect of a file point on a path; empty contents mean that the path does not exist.
type change struct{ before, after string }

// did is the expected content of a file point, taken from the disk.
type did struct {
	undo    protocol.SessionRewindParams // undoes this point and all later ones
	changes map[string]change
	unsure  bool
}

// confusion is a session with tools, a person, undos and SIGKILL in random order.
type confusion struct {
	*world
	*rand.Rand
	peer    *peer
	daemon  *daemon
	id      protocol.SessionID
	outside string // directory of scripts and their signal files
	turns   int
	points  []did
}

// TestUndoAtRandom compares the effect of undos with the recorded states of the disk. LASHD_LONG=1
// runs it for minutes.
func TestUndoAtRandom(t *testing.T) {
	rounds, seeds := 30, []uint64{1}
	if os.Getenv("LASHD_LONG") != "" {
		rounds, seeds = 250, []uint64{2, 3, 4, 5, uint64(time.Now().UnixNano())}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("issue/6-2 undo restores the recorded files, seed ", seed), func(t *testing.T) {
			outside := t.TempDir()
			script := filepath.Join(outside, "script")
			var steps []fakemodel.Step
			for range rounds {
				steps = append(steps, step(shell("sh "+script)), step(says("done")))
			}
			w := newWorld(t, "allow", steps...)
			c := &confusion{world: w, Rand: rand.New(rand.NewPCG(seed, 0)), outside: outside}
			c.begin()
			c.id = c.peer.session(w.home)
			c.edit(8)
			for range rounds {
				switch n := c.IntN(10); {
				case n < 5:
					c.turn()
				case n < 7:
					c.edit(1 + c.IntN(3))
				case len(c.points) > 0:
					c.rewind()
				}
				if t.Failed() {
					return
				}
			}
			t.Logf("%d turns, %d points", c.turns, len(c.points))
		})
	}
}

func (c *confusion) begin() {
	c.daemon = c.serve()
	c.peer = c.dial("")
}

func isDir(state string) bool { return strings.HasPrefix(state, "d") }

// commands returns random changes of files as shell commands.
func (c *confusion) commands(n int) string {
	var out strings.Builder
	file := func() string { return []string{"a", "b", "c", "sub/d", "sub/e", "odd\xff"}[c.IntN(6)] }
	for range n {
		f, g, dir := file(), file(), fmt.Sprint("n", c.IntN(3))
		switch c.IntN(8) {
		case 0, 1, 2:
			fmt.Fprintf(&out, "rm -f '%s'; mkdir -p sub; echo %d >'%s'\n", f, c.IntN(100), f)
		case 3:
			fmt.Fprintf(&out, "[ -h '%s' ] || echo %d >>'%s'\n", f, c.IntN(100), f)
		case 4:
			fmt.Fprintf(&out, "rm -f '%s'\n", f)
		case 5:
			fmt.Fprintf(&out, "ln -sfn target%d '%s'; [ -h '%s' ] || chmod %d '%s'\n", c.IntN(3), f, g, 600+c.IntN(2)*44, g)
		case 6:
			fmt.Fprintf(&out, "mkdir -p %s; echo %d >%s/x%d\n", dir, c.IntN(100), dir, c.IntN(3))
		case 7:
			fmt.Fprintf(&out, "rm -rf %s; mv '%s' '%s'\n", dir, f, g)
		}
	}
	return out.String()
}

// edit changes files as a person does.
func (c *confusion) edit(n int) {
	cmd := exec.Command("sh", "-c", "mkdir -p sub\n"+c.commands(n)+"exit 0")
	cmd.Dir = c.work
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("%v: %s", err, out)
	}
}

// turn runs a turn whose tool changes files, waits, and changes more. While it waits, a person may
// change files and the daemon may die.
func (c *confusion) turn() {
	c.turns++
	sign := filepath.Join(c.outside, fmt.Sprint("sign", c.turns))
	c.write(filepath.Join(c.outside, "script"), fmt.Sprintf(
		"%s\n>%s.at\ni=0; while [ ! -e %s.on ]; do i=$((i+1)); [ $i -lt 3000 ] || exit 1; sleep 0.01; done\n%s\nexit 0\n",
		c.commands(c.IntN(4)), sign, sign, c.commands(c.IntN(3))))
	before := tree.Read(c.t, c.work)
	turn := c.peer.start(c.id, "go").TurnID
	eventually(c.t, "the tool is running", func() error { _, err := os.Stat(sign + ".at"); return err })
	if c.IntN(3) == 0 {
		c.edit(1)
	}
	killed := c.IntN(5) == 0
	if killed {
		c.daemon.kill()
		c.edit(c.IntN(2))
		c.begin()
		eventually(c.t, "the question about the command is open", func() error { return unknowns(c.peer, c.id) })
	} else {
		c.write(sign+".on", "")
	}
	c.peer.wait(turn)
	d := did{undo: protocol.SessionRewindParams{SessionID: c.id, ToTurn: turn, Files: protocol.RewindOnly}, changes: changed(before, tree.Read(c.t, c.work)), unsure: killed}
	if len(d.changes) > 0 {
		c.points = append(c.points, d)
	}
}

func changed(before, after map[string]string) map[string]change {
	all := map[string]change{}
	for p := range before {
		all[p] = change{before[p], after[p]}
	}
	for p := range after {
		all[p] = change{before[p], after[p]}
	}
	maps.DeleteFunc(all, func(_ string, c change) bool { return c.before == c.after })
	return all
}

// expect returns the effect of undoing points from one on, and whether that would overwrite changes of
// a person.
func (c *confusion) expect(from int, present map[string]string) (todo map[string]change, conflicts []string) {
	todo = map[string]change{}
	last, broken, unsure := map[string]string{}, map[string]bool{}, map[string]bool{}
	for _, d := range c.points[from:] {
		for p, ch := range d.changes {
			if _, known := todo[p]; known {
				broken[p] = broken[p] || last[p] != ch.before
			} else {
				todo[p] = change{present[p], ch.before}
			}
			last[p], unsure[p] = ch.after, unsure[p] || d.unsure
		}
	}
	maps.DeleteFunc(todo, func(_ string, ch change) bool { return ch.before == ch.after })
	for p, ch := range todo {
		if !isDir(ch.before) && (broken[p] || unsure[p] || ch.before != last[p]) {
			conflicts = append(conflicts, p)
		}
	}
	slices.Sort(conflicts)
	return todo, conflicts
}

// rewind undoes some points and compares the result with the expectation.
func (c *confusion) rewind() {
	from := c.IntN(len(c.points))
	present := tree.Read(c.t, c.work)
	todo, conflicts := c.expect(from, present)
	undo := c.points[from].undo
	undo.IdempotencyKey = fmt.Sprint("undo", c.Uint64())
	undo.Force = c.IntN(2) == 0
	res, err := c.ask(undo)
	if len(conflicts) > 0 && !undo.Force {
		if code, kind := refusal(err); code != -32011 || kind != protocol.KindFileConflict {
			c.t.Fatalf("rewind with conflicts %q: %v", conflicts, err)
		}
		c.same(present)
		return
	}
	if err != nil {
		c.t.Fatalf("rewind of %q: %v", slices.Sorted(maps.Keys(todo)), err)
	}
	for p, ch := range todo {
		if present[p] = ch.after; ch.after == "" {
			delete(present, p)
		}
	}
	c.same(present)
	if (res.Point == "") != (len(todo) == 0) {
		c.t.Fatalf("point %q, to do %q", res.Point, slices.Sorted(maps.Keys(todo)))
	}
	if res.Point != "" {
		c.points = append(c.points, did{undo: protocol.SessionRewindParams{SessionID: c.id, ToPoint: res.Point, Files: protocol.RewindOnly}, changes: todo})
	}
}

// ask requests an undo. Sometimes the daemon is killed during it, and the request is repeated.
func (c *confusion) ask(p protocol.SessionRewindParams) (protocol.SessionRewindResult, error) {
	if c.IntN(4) == 0 {
		first := c.peer
		go try[protocol.SessionRewindResult](first, "session/rewind", p) // the result does not matter
		time.Sleep(time.Duration(c.IntN(20_000)) * time.Microsecond)
		c.daemon.kill()
		c.begin()
	}
	return try[protocol.SessionRewindResult](c.peer, "session/rewind", p)
}

// same compares files. A directory may stay because it is not empty, or be created for a file in it.
func (c *confusion) same(want map[string]string) {
	c.t.Helper()
	now := tree.Read(c.t, c.work)
	for _, m := range []map[string]string{want, now} {
		maps.DeleteFunc(m, func(_, state string) bool { return isDir(state) })
	}
	for p, ch := range changed(want, now) {
		c.t.Errorf("%q is %q, want %q", p, ch.after, ch.before)
	}
}
