//go:build linux

package persistence

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// life is a store with a session of two events, closed properly, and its epoch.
func life(t *testing.T) (dir string, epoch int64) {
	t.Helper()
	dir = oldDatabase(t)
	s, stop := start(t, quiet(dir))
	epoch = s.Facts().Epoch
	commit(t, s, &Commit{Session: "ses_a", Events: []Event{event(2)}})
	stop()
	return dir, epoch
}

// goOn commits n more events in a run that is closed properly, and returns the epoch of that run.
func goOn(t *testing.T, dir string, n int) int64 {
	t.Helper()
	s, stop := start(t, quiet(dir))
	for i := range n {
		commit(t, s, &Commit{Session: "ses_a", Events: []Event{event(100 + i)}})
	}
	stop()
	return s.Facts().Epoch
}

// crashed copies a directory while its store is open, as a kill would leave it.
func crashed(t *testing.T, s *Store) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "crashed")
	shell(t, "cp", "-a", s.Dir(), dir)
	os.Remove(filepath.Join(dir, fileName+"-shm"))
	adopt(t, dir)
	return dir
}

// adopt makes the witness of a copied directory accept its files as written by lashd.
func adopt(t *testing.T, dir string) {
	t.Helper()
	w := must(openWitness(filepath.Join(dir, fileName), slog.New(slog.DiscardHandler)))
	now := w.last
	path := filepath.Join(dir, fileName)
	file := must(stampOf(path))
	now.File, now.Log = file.identity, must(stampIfThere(path+"-wal")).identity
	if now.ChangedNs != 0 {
		now.ChangedNs = file.changedNs
	}
	if err := errors.Join(w.save(now, true), w.close()); err != nil {
		t.Fatal(err)
	}
}

// rebooted makes the witness that of another run of the kernel.
func rebooted(t *testing.T, dir string) {
	t.Helper()
	w := must(openWitness(filepath.Join(dir, fileName), slog.New(slog.DiscardHandler)))
	now := w.last
	now.Boot = "another"
	if err := errors.Join(w.save(now, true), w.close()); err != nil {
		t.Fatal(err)
	}
}

func shell(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", args, err, out)
	}
}

func remove(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOlderCopies(t *testing.T) {
	for name, c := range map[string]struct {
		back   func(t *testing.T, dir, copied string) // puts the copy back
		rolled bool                                   // a loss of commits is reported
	}{
		"of the directory, in the place of it": {func(t *testing.T, dir, copied string) {
			remove(t, filepath.Dir(dir), filepath.Base(dir))
			shell(t, "cp", "-a", copied, dir)
		}, false},
		"of the directory, written over it": {func(t *testing.T, dir, copied string) { shell(t, "cp", "-a", copied+"/.", dir) }, false},
		"of the directory, moved there": {func(t *testing.T, dir, copied string) {
			remove(t, filepath.Dir(dir), filepath.Base(dir))
			shell(t, "mv", copied, dir)
		}, false},
		"of the database alone": {func(t *testing.T, dir, copied string) { shell(t, "cp", "-a", copied+"/lashd.db", dir+"/lashd.db") }, true},
		"of the database alone, as another file": {func(t *testing.T, dir, copied string) {
			remove(t, dir, "lashd.db")
			shell(t, "cp", copied+"/lashd.db", dir)
		}, true},
		"of database and witness": {func(t *testing.T, dir, copied string) {
			shell(t, "cp", "-a", copied+"/lashd.db", copied+"/lashd.witness", dir)
		}, false},
	} {
		t.Run("outside/12 an older copy "+name+" has a new epoch", func(t *testing.T) {
			dir, epoch := life(t)
			copied := filepath.Join(t.TempDir(), "copied")
			shell(t, "cp", "-a", dir, copied)
			if got := goOn(t, dir, 3); got != epoch {
				t.Fatalf("the store went on with epoch %d, want %d", got, epoch)
			}
			c.back(t, dir, copied)
			s := open(t, dir)
			if s.Facts().Epoch == epoch || session(t, s, "ses_a").Seq != 2 {
				t.Errorf("epoch %d as before, seq %d", epoch, session(t, s, "ses_a").Seq)
			}
			if got := s.Rollback() != nil; got != c.rolled {
				t.Errorf("a loss is reported: %v", s.Rollback())
			}
		})
	}
	t.Run("outside/12 a copy written over a killed store is opened with its own log", func(t *testing.T) {
		dir, epoch := life(t)
		s, stop := start(t, quiet(dir))
		commit(t, s, &Commit{Session: "ses_a", Events: []Event{event(3)}})
		dir = crashed(t, s)
		stop()
		copied := filepath.Join(t.TempDir(), "copied")
		shell(t, "cp", "-a", dir, copied)
		shell(t, "cp", "-a", copied+"/"+fileName+"-wal", dir) // before the database
		shell(t, "cp", "-a", copied+"/.", dir)
		shell(t, "cp", "-a", copied+"/"+fileName, dir)
		if s := open(t, dir); s.Facts().Epoch == epoch || s.Rollback() != nil || session(t, s, "ses_a").Seq != 3 {
			t.Errorf("epoch %d as before; seq %d; %v", epoch, session(t, s, "ses_a").Seq, s.Rollback())
		}
	})
	for _, more := range []int{1, 20} { // commits here, and nine elsewhere
		t.Run(fmt.Sprintf("issue/29 a database that went on elsewhere for two epochs is reported as another one: %d", more), func(t *testing.T) {
			dir, epoch := life(t)
			other := dir
			for range 2 {
				next := filepath.Join(t.TempDir(), "copy")
				shell(t, "cp", "-a", other, next)
				goOn(t, next, 4)
				other = next
			}
			goOn(t, dir, more)
			shell(t, "cp", "-a", other+"/lashd.db", dir)
			s := open(t, dir)
			if found := s.Rollback(); found == nil || !strings.Contains(found.Problem, fmt.Sprintf("expected %d", epoch)) || s.Facts().Epoch == epoch {
				t.Errorf("found %v, epoch %d", found, s.Facts().Epoch)
			}
		})
	}
	t.Run("issue/29 opening a copy fails if its new epoch cannot be stored", func(t *testing.T) {
		dir, _ := life(t)
		s, stop := start(t, quiet(dir))
		commit(t, s, &Commit{Session: "ses_a", Events: []Event{{"x", make([]byte, smallFile)}}}) // too large to be checked at once
		stop()
		copied := filepath.Join(t.TempDir(), "copied")
		shell(t, "cp", "-a", dir, copied)
		strict := ") STRICT, WITHOUT ROWID', ') WITHOUT ROWID"
		tamper(t, copied, "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = replace(sql, '"+strict+"') WHERE name = 'meta'")
		tamper(t, copied, "UPDATE meta SET sum = 'x' WHERE name = 'epoch'")
		strict = ") WITHOUT ROWID', ') STRICT, WITHOUT ROWID"
		tamper(t, copied, "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = replace(sql, '"+strict+"') WHERE name = 'meta'")
		if s, err := Open(t.Context(), quiet(copied)); err == nil {
			run(t, s)()
			t.Errorf("it is open with epoch %d", s.Facts().Epoch)
		} else if !strings.Contains(err.Error(), "sum that is a string") {
			t.Error(err)
		}
	})
	t.Run("outside/12 two diverged copies of a store never share an epoch", func(t *testing.T) {
		dir, epoch := life(t)
		other := filepath.Join(t.TempDir(), "other")
		shell(t, "cp", "-a", dir, other)
		older := save(t, dir)
		goOn(t, dir, 1)
		restore(t, dir, older)
		seen := map[int64]string{epoch: "first"}
		for name, epoch := range map[string]int64{"original after a loss": goOn(t, dir, 5), "copy": goOn(t, other, 5)} {
			if was := seen[epoch]; was != "" {
				t.Errorf("epoch %d is that of the %s and of the %s", epoch, was, name)
			}
			seen[epoch] = name
		}
	})
	t.Run("outside/12 a store that is closed, killed, moved or opened again keeps its epoch", func(t *testing.T) {
		dir, epoch := life(t)
		moved := filepath.Join(t.TempDir(), "moved")
		shell(t, "mv", dir, moved)
		s, stop := start(t, quiet(moved))
		commit(t, s, &Commit{Session: "ses_a", Events: []Event{event(3)}})
		after := crashed(t, s)
		stop()
		for _, d := range []string{moved, after} {
			s := open(t, d)
			if s.Facts().Epoch != epoch || s.Rollback() != nil || session(t, s, "ses_a").Seq != 3 {
				t.Errorf("epoch %d, want %d; seq %d; %v", s.Facts().Epoch, epoch, session(t, s, "ses_a").Seq, s.Rollback())
			}
		}
	})
	t.Run("outside/12 a backup begins a new epoch when it is first opened", func(t *testing.T) {
		dir, epoch := life(t)
		backup := filepath.Join(t.TempDir(), "backup")
		s, stop := start(t, quiet(dir))
		if _, err := s.Backup(t.Context(), backup); err != nil {
			t.Fatal(err)
		}
		stop()
		first := goOn(t, backup, 1)
		if second := goOn(t, backup, 1); first == epoch || second != first {
			t.Errorf("epochs %d and %d of the backup of epoch %d", first, second, epoch)
		}
		if found := open(t, backup).Rollback(); found != nil {
			t.Errorf("a loss is reported: %v", found)
		}
	})
	t.Run("issue/29 a backup written over its store has a new epoch, also after a reboot", func(t *testing.T) {
		dir, epoch := life(t)
		backup := filepath.Join(t.TempDir(), "backup")
		s, stop := start(t, quiet(dir))
		if _, err := s.Backup(t.Context(), backup); err != nil {
			t.Fatal(err)
		}
		stop()
		shell(t, "cp", filepath.Join(backup, fileName), dir)
		rebooted(t, dir)
		if s := open(t, dir); s.Facts().Epoch == epoch || s.Rollback() != nil {
			t.Errorf("epoch %d as before; %v", epoch, s.Rollback())
		}
	})
	t.Run("issue/29 a new epoch that the witness does not know is not a loss", func(t *testing.T) {
		dir, epoch := life(t)
		seen := must(os.ReadFile(filepath.Join(dir, witnessName)))
		shell(t, "cp", filepath.Join(dir, fileName), filepath.Join(dir, "copy"))
		shell(t, "mv", filepath.Join(dir, "copy"), filepath.Join(dir, fileName))
		if second := goOn(t, dir, 1); second == epoch {
			t.Fatalf("a copy keeps epoch %d", epoch)
		}
		if err := os.WriteFile(filepath.Join(dir, witnessName), seen, 0o600); err != nil {
			t.Fatal(err)
		}
		if s := open(t, dir); s.Rollback() != nil || s.Facts().Epoch == epoch {
			t.Errorf("epoch %d after %d; %v", s.Facts().Epoch, epoch, s.Rollback())
		}
	})
	t.Run("issue/29 a killed store whose folded database was overwritten has a new epoch", func(t *testing.T) {
		dir, epoch := life(t)
		s, stop := start(t, quiet(dir))
		commit(t, s, &Commit{Session: "ses_a", Events: []Event{event(3)}})
		s.fold(t.Context(), "PASSIVE")
		dir = crashed(t, s)
		stop()
		if err := os.WriteFile(filepath.Join(dir, fileName), save(t, dir), 0o600); err != nil {
			t.Fatal(err)
		}
		if s := open(t, dir); s.Facts().Epoch == epoch || s.Rollback() != nil {
			t.Errorf("epoch %d as before; %v", epoch, s.Rollback())
		}
	})
	t.Run("outside/12 the epoch survives every JSON library", func(t *testing.T) {
		for range 1000 {
			if e := newEpoch(); e < 1 || e >= 1e14 {
				t.Fatal(e)
			}
		}
	})
}

func TestSealedWitness(t *testing.T) {
	t.Run("issue/29 a file changed after a proper stop counts as a copy, also after a reboot", func(t *testing.T) {
		dir := oldDatabase(t)
		tamper(t, dir, "DELETE FROM events")
		there := must(survey(dir))
		found := present{storeID: there.seen.StoreID, epoch: there.seen.Epoch, commits: there.seen.Commits, file: there.file}
		if how, why := there.seen.judge(found, "another run"); how != copied {
			t.Errorf("it is judged %v, %s", how, why)
		}
	})
	for name, c := range map[string]struct {
		boot  string
		fresh bool
	}{"this run": {bootID(), true}, "an earlier run": {"earlier", false}} {
		t.Run("issue/29 after a kill the change time counts only until the next reboot: "+name, func(t *testing.T) {
			dir := oldDatabase(t)
			s, stop := start(t, quiet(dir))
			epoch := s.Facts().Epoch
			stop()
			w := must(openWitness(filepath.Join(dir, fileName), slog.New(slog.DiscardHandler)))
			seen := w.last
			seen.ChangedNs, seen.Boot = 1, c.boot
			if err := errors.Join(w.save(seen, true), w.close()); err != nil {
				t.Fatal(err)
			}
			if got := open(t, dir).Facts().Epoch; (got != epoch) != c.fresh {
				t.Errorf("epoch %d after %d", got, epoch)
			}
		})
	}
}

// listing returns the content of a directory: names, bytes, modes and times.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, e := range must(os.ReadDir(dir)) {
		path := filepath.Join(dir, e.Name())
		info := must(os.Lstat(path))
		all[e.Name()] = info.Mode().String() + info.ModTime().String()
		if info.Mode().IsRegular() {
			all[e.Name()] += string(must(os.ReadFile(path)))
		}
	}
	return all
}
