package proc

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestMark runs several daemons in one directory, one after the other. Each leaves a process behind.
func TestMark(t *testing.T) {
	dir, mine := t.TempDir(), nonce(t)
	left := func() witness {
		w := newWitness(t)
		c := leaves(t)
		c.Stderr, c.Nonce = w.end, mine
		p := start(t, t.Context(), c)
		w.release()
		w.line(t)
		wait(t, p)
		return w
	}
	begin := func() *Mark {
		m, err := Begin(dir, mine)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}

	begin() // this run is killed
	crashed := left()
	m := begin()
	if !crashed.allDead(time.Minute) {
		t.Error("a process of a run without an end is alive after the next one began")
	}
	ended := left()
	if err := m.End(); err != nil {
		t.Fatal(err)
	}
	if !ended.allDead(time.Minute) {
		t.Error("a process is alive after the end of its run")
	}
	if _, err := os.Stat(filepath.Join(dir, markName)); !os.IsNotExist(err) {
		t.Errorf("the mark after the end: %v, want it gone", err)
	}
	other := left()
	defer Sweep(mine)
	begin()
	if other.allDead(50 * time.Millisecond) {
		t.Error("a run that follows a proper end looked at every process")
	}
}
