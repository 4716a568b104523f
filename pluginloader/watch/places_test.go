//go:build unix

package watch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lashd/pluginloader/watch"
)

// moves change what the path x/y/plugins leads to, in a directory where it leads to nothing, to a directory, or through a
// link. After each one plugin in the root is changed: that must be seen, too.
var moves = map[string]struct {
	before, move func(t *testing.T, dir string)
}{
	"it comes": {none, fill},
	"it comes step by step": {none, func(t *testing.T, dir string) {
		for _, d := range []string{"x", "x/y", "x/y/plugins", "x/y/plugins/p"} {
			check(t, os.Mkdir(filepath.Join(dir, d), 0o755))
			time.Sleep(2 * settle) // each is watched after this time
		}
		fill(t, dir)
	}},
	"it goes and comes": {fill, func(t *testing.T, dir string) {
		check(t, os.RemoveAll(filepath.Join(dir, "x/y/plugins")))
		time.Sleep(pause)
		fill(t, dir)
	}},
	"it is moved away, and another comes": {fill, func(t *testing.T, dir string) {
		check(t, os.Rename(filepath.Join(dir, "x/y/plugins"), filepath.Join(dir, "old")))
		fill(t, dir)
	}},
	"what it is in is moved away and back": {fill, func(t *testing.T, dir string) {
		check(t, os.Rename(filepath.Join(dir, "x"), filepath.Join(dir, "z")))
		time.Sleep(2 * settle)
		check(t, os.Rename(filepath.Join(dir, "z"), filepath.Join(dir, "x")))
	}},
	"what it is in is another directory": {fill, func(t *testing.T, dir string) {
		fill(t, filepath.Join(dir, "next"))
		check(t, os.Rename(filepath.Join(dir, "x"), filepath.Join(dir, "z")), os.Rename(filepath.Join(dir, "next/x"), filepath.Join(dir, "x")))
	}},
	"it is a link that leads elsewhere": {func(t *testing.T, dir string) {
		fill(t, filepath.Join(dir, "1"))
		check(t, os.Symlink("1/x", filepath.Join(dir, "x")))
	}, func(t *testing.T, dir string) {
		fill(t, filepath.Join(dir, "2"))
		check(t, os.Symlink(filepath.Join(dir, "2/x"), filepath.Join(dir, "tmp")), os.Rename(filepath.Join(dir, "tmp"), filepath.Join(dir, "x")))
	}},
	"it becomes a link": {fill, func(t *testing.T, dir string) {
		check(t, os.Rename(filepath.Join(dir, "x/y/plugins"), filepath.Join(dir, "real")), os.Symlink("../../real", filepath.Join(dir, "x/y/plugins")))
	}},
	"a link to nothing leads to something": {func(t *testing.T, dir string) {
		check(t, os.MkdirAll(filepath.Join(dir, "x"), 0o755), os.Symlink("../to/y", filepath.Join(dir, "x/y")))
	}, func(t *testing.T, dir string) {
		check(t, os.MkdirAll(filepath.Join(dir, "to/y"), 0o755))
		fill(t, dir)
	}},
	"a file exists first": {func(t *testing.T, dir string) { write(t, "", dir, "x") }, func(t *testing.T, dir string) {
		check(t, os.Remove(filepath.Join(dir, "x")))
		fill(t, dir)
	}},
	"a pipe exists first": {func(t *testing.T, dir string) { pipe(t, filepath.Join(dir, "x")) }, func(t *testing.T, dir string) {
		check(t, os.Remove(filepath.Join(dir, "x")))
		fill(t, dir)
	}},
	"a link leads to itself first": {func(t *testing.T, dir string) { check(t, os.Symlink("x", filepath.Join(dir, "x"))) }, func(t *testing.T, dir string) {
		check(t, os.Remove(filepath.Join(dir, "x")))
		fill(t, dir)
	}},
}

func none(*testing.T, string) {}

func fill(t *testing.T, dir string) { write(t, "old", dir, "x/y/plugins/p/plugin.json") }

func TestARootIsWatchedWhateverBecomesOfItsPath(t *testing.T) {
	for mode, config := range modes {
		for name, m := range moves {
			t.Run(fmt.Sprintf("issue/4-4 %s, by %s", name, mode), func(t *testing.T) {
				t.Parallel()
				dir := realDir(t)
				m.before(t, dir)
				w := start(t, config)
				root := filepath.Join(dir, "x/y/plugins")
				w.begin(root)
				w.mode(root, mode)
				m.move(t, dir)
				w.settled(root, filepath.Join(root, "p/plugin.json"), "old")
				write(t, "new", root, "p/plugin.json")
				w.settled(root, filepath.Join(root, "p/plugin.json"), "new")
			})
		}
	}
}

// settled waits for a look that finds a text in a file, and until there are no more.
func (w watching) settled(root, name, want string) {
	w.t.Helper()
	for {
		w.expect(root)
		if got, _ := os.ReadFile(name); string(got) == want {
			break
		}
	}
	for {
		select {
		case <-w.Changes():
		case <-time.After(2 * settle):
			return
		}
	}
}

func TestRootsAreWatchedEachForItself(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	one, two := filepath.Join(dir, "1"), filepath.Join(dir, "2")
	write(t, "old", one, "p/plugin.json")
	write(t, "old", two, "p/plugin.json")
	w := start(t, watch.Config{})
	stop := w.begin(one)
	again := w.Watch(one)
	stopTwo := w.begin(two)
	t.Run("issue/4-4 only the changed root is reported", func(t *testing.T) {
		swap(t, "new", one, "p/plugin.json")
		w.expect(one)
		swap(t, "new", two, "p/plugin.json")
		w.expect(two)
		w.quiet()
	})
	t.Run("issue/4-4 changes of several roots are reported together", func(t *testing.T) {
		swap(t, "newer", one, "p/plugin.json")
		swap(t, "newer", two, "p/plugin.json")
		time.Sleep(10 * settle)
		w.expect(one, two)
		w.quiet()
	})
	t.Run("issue/4-4 a root is watched until its last user stops", func(t *testing.T) {
		stop()
		stop()
		swap(t, "newest", one, "p/plugin.json")
		w.expect(one)
		again()
		stopTwo()
		swap(t, "last", one, "p/plugin.json")
		swap(t, "last", two, "p/plugin.json")
		w.quiet()
		if s := w.Status(); len(s) != 0 {
			t.Errorf("still %+v", s)
		}
	})
	t.Run("issue/4-4 a root can be watched again", func(t *testing.T) {
		w.begin(one)
		swap(t, "x", one, "p/plugin.json")
		w.expect(one)
		w.quiet()
	})
	t.Run("issue/4-4 entries beside the path to a root are ignored", func(t *testing.T) {
		write(t, "x", dir, "neighbour")
		write(t, "x", dir, "3/p/plugin.json")
		w.quiet()
	})
}

func TestADirectoryMayBeThePluginsOfTwoRoots(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	write(t, "old", dir, "1/p/plugin.json")
	check(t, os.Symlink("1", filepath.Join(dir, "2")))
	w := start(t, watch.Config{})
	one, two := filepath.Join(dir, "1"), filepath.Join(dir, "2")
	stop := w.begin(one)
	w.begin(two)
	swap(t, "new", one, "p/plugin.json")
	time.Sleep(10 * settle)
	w.expect(one, two)
	stop()
	swap(t, "newer", one, "p/plugin.json")
	w.expect(two)
	w.quiet()
}
