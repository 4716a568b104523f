package engine_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// burstTree is a workspace whose files change. It counts the bursts, because a slow machine may turn one burst of writes into several.
type burstTree struct {
	t      testing.TB
	dir    string
	begun  time.Time
	last   time.Time
	bursts int
}

// breath is the time between two changes that are certainly reported together.
const breath = 250 * time.Millisecond

func newTree(t testing.TB) *burstTree { return &burstTree{t: t, dir: t.TempDir()} }

// expect starts counting.
func (w *burstTree) expect() { w.begun, w.last, w.bursts = time.Now(), time.Now(), 1 }

func (w *burstTree) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	// Create the tree in one step; otherwise a scan in between counts as a burst of its own.
	made := filepath.Join(w.t.TempDir(), "made")
	if err := errors.Join(os.WriteFile(made, []byte(text), 0o600), os.Rename(made, path)); err != nil {
		w.t.Fatal(err)
	}
	w.did()
}

func (w *burstTree) did() {
	if time.Since(w.last) > breath || time.Since(w.begun) > breath && w.last.Sub(w.begun) <= breath {
		w.bursts++
	}
	w.last = time.Now()
}

func (w *burstTree) remove(name string) {
	w.t.Helper()
	if err := os.RemoveAll(filepath.Join(w.dir, name)); err != nil {
		w.t.Fatal(err)
	}
	w.did()
}

// told waits until a trigger has reported all these paths since a number of occurrences, in no more occurrences than there were
// bursts. It returns the new number of occurrences.
func (w *burstTree) told(d *daemon, id protocol.TriggerID, since int, want ...string) int {
	w.t.Helper()
	var got []string
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		all := d.occurrences(w.t, id)
		got = nil
		for _, o := range all[:len(all)-since] {
			var p struct{ Paths []string }
			if err := json.Unmarshal(o.Payload, &p); err != nil {
				w.t.Fatal(err)
			}
			got = append(got, p.Paths...)
		}
		slices.Sort(got)
		if got = slices.Compact(got); len(got) < len(want) {
			continue
		}
		if n := len(all) - since; n > w.bursts {
			w.t.Errorf("%d occurrences of %d bursts", n, w.bursts)
		}
		same(w.t, "told", got, want)
		return len(all)
	}
	w.t.Fatalf("the trigger reported %q, want %q", got, want)
	return 0
}

func TestFilesChanged(t *testing.T) {
	t.Run("runtime/B14 a burst of changes is one occurrence that names the files matching the glob", func(t *testing.T) {
		t.Parallel()
		d := start(t, setup{model: replies()})
		w := newTree(t)
		w.write("sub/old.go", "1")
		w.write("sub/same.go", "1")
		id := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: w.dir})).SessionID
		g := d.trigger(t, "k", files("**/*.go", ""), wakes(id, "look"))
		if g.Source.File.Dir != w.dir {
			t.Errorf("the trigger watches %s, want the workspace %s", g.Source.File.Dir, w.dir)
		}
		w.expect()
		for i := range 20 {
			w.write("main.go", strings.Repeat("x", i))
			w.write("main.txt", strings.Repeat("x", i))
			w.write(".git/objects/a.go", strings.Repeat("x", i))
		}
		w.write("sub/old.go", "2")
		w.write("new/deep/made.go", "1")
		n := w.told(d, g.ID, 0, "main.go", "new/deep/made.go", "sub/old.go")
		w.expect()
		w.remove("sub/old.go")
		n = w.told(d, g.ID, n, "sub/old.go")
		w.expect()
		w.write("new/deep/made.go", "22")
		w.told(d, g.ID, n, "new/deep/made.go")
	})
	t.Run("runtime/B14 lashd's own files are not watched, and a change right after the answer is reported", func(t *testing.T) {
		t.Parallel()
		w := newTree(t)
		d := start(t, setup{model: replies(), dir: filepath.Join(w.dir, "state")})
		id := d.session(t)
		g := d.trigger(t, "k", files("**", w.dir), wakes(id, "look"))
		w.expect()
		w.write("a", "1")
		w.told(d, g.ID, 0, "a")
		time.Sleep(2 * time.Second) // long enough for the wake to change the state
		w.told(d, g.ID, 0, "a")
	})
	t.Run("runtime/B14 a disabled or deleted trigger reports nothing; when enabled again it starts from the present files", func(t *testing.T) {
		t.Parallel()
		d := start(t, setup{model: replies()})
		w := newTree(t)
		id := d.session(t)
		a, b := d.trigger(t, "a", files("*", w.dir), wakes(id, "look")), d.trigger(t, "b", files("*", w.dir), wakes(id, "look"))
		off := func(on bool) {
			must[*protocol.TriggerResult](t)(d.Triggers.Update(t.Context(), &protocol.TriggerUpdateParams{Key: "a", Enabled: &on}))
		}
		off(false)
		w.expect()
		w.write("one", "1")
		n := w.told(d, b.ID, 0, "one")
		off(true)
		w.expect()
		w.write("two", "1")
		w.told(d, a.ID, 0, "two")
		n = w.told(d, b.ID, n, "two")
		must[*protocol.TriggerResult](t)(d.Triggers.Delete(t.Context(), &protocol.TriggerDeleteParams{Key: "a"}))
		w.expect()
		w.write("three", "1")
		w.told(d, b.ID, n, "three")
		if n := len(d.occurrences(t, a.ID)); n != 1 {
			t.Errorf("the trigger has %d occurrences", n)
		}
	})
	t.Run("runtime/B14 an occurrence with many files names some and counts the others", func(t *testing.T) {
		t.Parallel()
		d := start(t, setup{model: replies()})
		w := newTree(t)
		if err := os.Mkdir(filepath.Join(w.dir, "made"), 0o700); err != nil {
			t.Fatal(err)
		}
		for i := range 130 {
			w.write(filepath.Join("made", strings.Repeat("x", i+1)), "")
		}
		watched := filepath.Join(w.dir, "watched")
		if err := os.Mkdir(watched, 0o700); err != nil {
			t.Fatal(err)
		}
		g := d.trigger(t, "k", files("**", watched), wakes(d.session(t), "look"))
		if err := os.Rename(filepath.Join(w.dir, "made"), filepath.Join(watched, "made")); err != nil { // all files in one step
			t.Fatal(err)
		}
		for len(d.occurrences(t, g.ID)) == 0 {
			time.Sleep(20 * time.Millisecond)
		}
		var p struct {
			Paths []string
			More  int
		}
		if err := json.Unmarshal(d.occurrences(t, g.ID)[0].Payload, &p); err != nil || len(p.Paths) != 100 || p.More != 30 {
			t.Errorf("%d are named, and %d more, %v", len(p.Paths), p.More, err)
		}
	})
}
