package engine_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// tree is a workspace whose files change.
type tree struct {
	t   testing.TB
	dir string
}

func (w tree) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w tree) remove(name string) {
	w.t.Helper()
	if err := os.RemoveAll(filepath.Join(w.dir, name)); err != nil {
		w.t.Fatal(err)
	}
}

// changed waits until a trigger has n occurrences, and gives the paths of the newest.
func changed(t testing.TB, d *daemon, id protocol.TriggerID, n int) []string {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		all := d.occurrences(t, id)
		if len(all) < n {
			continue
		}
		var p struct{ Paths []string }
		if err := json.Unmarshal(all[0].Payload, &p); err != nil || len(all) > n {
			t.Fatalf("%d occurrences, want %d; %v", len(all), n, err)
		}
		return p.Paths
	}
	t.Fatalf("there are not %d occurrences", n)
	return nil
}

func TestFilesChanged(t *testing.T) {
	t.Run("runtime/B14 a burst of changes is one occurrence, which names the files that a glob fits", func(t *testing.T) {
		t.Parallel()
		d := start(t, setup{model: replies()})
		w := tree{t, t.TempDir()}
		w.write("sub/old.go", "1")
		w.write("sub/same.go", "1")
		id := must[*protocol.SessionNewResult](t)(d.NewSession(t.Context(), &protocol.SessionNewParams{Cwd: w.dir})).SessionID
		g := d.trigger(t, "k", files("**/*.go", ""), wakes(id, "look"))
		if g.Source.File.Dir != w.dir {
			t.Errorf("it watches %s, want the workspace %s", g.Source.File.Dir, w.dir)
		}
		for i := range 20 {
			w.write("main.go", strings.Repeat("x", i))
			w.write("main.txt", strings.Repeat("x", i))
			w.write(".git/objects/a.go", strings.Repeat("x", i))
		}
		w.write("sub/old.go", "2")
		w.write("new/deep/made.go", "1")
		same(t, "changed", changed(t, d, g.ID, 1), []string{"main.go", "new/deep/made.go", "sub/old.go"})
		w.remove("sub/old.go")
		same(t, "removed", changed(t, d, g.ID, 2), []string{"sub/old.go"})
		w.write("new/deep/made.go", "22")
		same(t, "in a directory that was made", changed(t, d, g.ID, 3), []string{"new/deep/made.go"})
	})
	t.Run("runtime/B14 what lashd keeps is not watched, and what changes right after the answer is told", func(t *testing.T) {
		t.Parallel()
		w := tree{t, t.TempDir()}
		d := start(t, setup{model: replies(), dir: filepath.Join(w.dir, "state")})
		id := d.session(t)
		g := d.trigger(t, "k", files("**", w.dir), wakes(id, "look"))
		w.write("a", "1")
		same(t, "changed", changed(t, d, g.ID, 1), []string{"a"})
		time.Sleep(2 * time.Second) // the wake has changed the state by now
		same(t, "afterwards", changed(t, d, g.ID, 1), []string{"a"})
	})
	t.Run("runtime/B14 a trigger that is off, or was deleted, is told nothing; on again it begins with what is there", func(t *testing.T) {
		t.Parallel()
		d := start(t, setup{model: replies()})
		w := tree{t, t.TempDir()}
		id := d.session(t)
		a, b := d.trigger(t, "a", files("*", w.dir), wakes(id, "look")), d.trigger(t, "b", files("*", w.dir), wakes(id, "look"))
		off := func(on bool) {
			must[*protocol.TriggerResult](t)(d.UpdateTrigger(t.Context(), &protocol.TriggerUpdateParams{Key: "a", Enabled: &on}))
		}
		off(false)
		w.write("one", "1")
		same(t, "the other one", changed(t, d, b.ID, 1), []string{"one"})
		off(true)
		w.write("two", "1")
		same(t, "on again", changed(t, d, a.ID, 1), []string{"two"})
		must[*protocol.TriggerResult](t)(d.DeleteTrigger(t.Context(), &protocol.TriggerDeleteParams{Key: "a"}))
		changed(t, d, b.ID, 2)
		w.write("three", "1")
		changed(t, d, b.ID, 3)
		if n := len(d.occurrences(t, a.ID)); n != 1 {
			t.Errorf("it has %d occurrences", n)
		}
	})
	t.Run("runtime/B14 of many files some are named", func(t *testing.T) {
		t.Parallel()
		d := start(t, setup{model: replies()})
		w := tree{t, t.TempDir()}
		g := d.trigger(t, "k", files("*", w.dir), wakes(d.session(t), "look"))
		for i := range 130 {
			w.write(strings.Repeat("x", i+1), "")
		}
		if n := len(changed(t, d, g.ID, 1)); n != 100 {
			t.Errorf("%d are named", n)
		}
		if o := d.occurrences(t, g.ID)[0]; !slices.Contains([]string{`"more":30}`}, string(o.Payload[len(o.Payload)-10:])) {
			t.Errorf("payload ends with %s", o.Payload[len(o.Payload)-20:])
		}
	})
}
