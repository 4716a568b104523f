//go:build linux

package persistence

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStaleLog(t *testing.T) {
	seen := witnessed{File: identity{Inode: 1}, Log: identity{Inode: 2}, ChangedNs: 5}
	file := fileStamp{identity: seen.File, changedNs: 9} // was written over
	for _, c := range []struct {
		name string
		log  fileStamp
		want bool
	}{
		{"before the database", fileStamp{changedNs: 8, modifiedNs: 8, size: 1}, true},
		{"in the same tick of the clock", fileStamp{changedNs: 9, modifiedNs: 9, size: 1}, true},
		{"after the database", fileStamp{changedNs: 10, modifiedNs: 10, size: 1}, false},
		{"by a copy that keeps times", fileStamp{changedNs: 8, modifiedNs: 7, size: 1}, false},
		{"before the database, and is empty", fileStamp{changedNs: 8, modifiedNs: 8}, false},
	} {
		t.Run("issue/29 a log that was written "+c.name, func(t *testing.T) {
			c.log.identity = seen.Log
			if got := seen.staleLog(file, c.log, "boot"); got != c.want {
				t.Errorf("stale: %v, want %v", got, c.want)
			}
		})
	}
}

func TestClosedFiles(t *testing.T) {
	t.Run("issue/29 a closed store has no open files", func(t *testing.T) {
		dir, _ := life(t)
		for _, e := range must(os.ReadDir("/proc/self/fd")) {
			if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, dir) {
				t.Errorf("%s is open", to)
			}
		}
	})
}

func TestMissingData(t *testing.T) {
	for name, c := range map[string]struct {
		gone  []string
		wants string
	}{
		"the database":                    {[]string{fileName}, "lashd.db is missing"},
		"the database and the witness":    {[]string{fileName, witnessName}, "lashd.db-wal ("},
		"all but the log":                 {[]string{fileName, witnessName, blobsName}, "lashd.db-wal ("},
		"all but large outputs":           {[]string{fileName, fileName + "-wal", witnessName}, "blobs/"},
		"all but the witness":             {[]string{fileName, fileName + "-wal", blobsName}, "lashd.witness (of a store with"},
		"the log, of a store as it began": {[]string{fileName + "-wal"}, "is missing"},
	} {
		t.Run("outside/14 a store whose "+name+" is missing is rejected and left unchanged", func(t *testing.T) {
			s, stop := start(t, quiet(t.TempDir()))
			defer stop()
			commit(t, s, rootCommit("ses_a"))
			commit(t, s, &Commit{Session: "ses_a", Blobs: []Blob{must(s.PrepareBlob(make([]byte, inlineBlob+1)))}})
			dir := crashed(t, s)
			remove(t, dir, c.gone...)
			before := listing(t, dir)
			again, err := Open(t.Context(), quiet(dir))
			if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), c.wants) {
				t.Errorf("Open gives %v, %v; want ErrMissing with %q", again, err, c.wants)
			}
			if _, err := Inspect(t.Context(), quiet(dir)); !errors.Is(err, ErrMissing) {
				t.Errorf("Inspect gives %v", err)
			}
			if !maps.Equal(before, listing(t, dir)) {
				t.Error("the directory was changed")
			}
			aside, err := SetAside(dir)
			if err != nil {
				t.Fatal(err)
			}
			fresh := open(t, dir)
			if n := count(t, fresh, "SELECT count(*) FROM sessions"); n != 0 {
				t.Errorf("the new store has %d sessions", n)
			}
			if kept, _ := os.ReadDir(aside); len(kept) == 0 {
				t.Error("what was left was not set aside")
			}
		})
	}
	t.Run("outside/14 an interrupted first start is not reported as a loss", func(t *testing.T) {
		s, stop := start(t, quiet(t.TempDir()))
		dir := crashed(t, s)
		stop()
		for _, left := range [][]string{{}, {witnessName}, {witnessName, fileName + "-wal"}} {
			remove(t, dir, left...)
			if _, err := survey(dir); err != nil {
				t.Fatal(err)
			}
		}
		if got := open(t, dir); got.Rollback() != nil {
			t.Error(got.Rollback())
		}
	})
	for name, leave := range map[string][]string{"empty files": {fileName, fileName + "-wal"}, "other files": {"lashd-schema.txt", "my.backup.db"}} {
		t.Run("issue/29 a directory with "+name+" and no large outputs held no store", func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range leave {
				if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Mkdir(filepath.Join(dir, blobsName), 0o700); err != nil {
				t.Fatal(err)
			}
			s := open(t, dir)
			commit(t, s, rootCommit("ses_a"))
		})
	}
	t.Run("issue/29 a backup from before a migration shows that there was a store", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "lashd-schema1.backup.db"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), quiet(dir)); !errors.Is(err, ErrMissing) {
			t.Errorf("Open gives %v", err)
		}
	})
	t.Run("issue/29 an unreadable directory of large outputs does not count as empty", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, blobsName), nil, 0o600); err != nil { // a file cannot be listed
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), quiet(dir)); !errors.Is(err, ErrMissing) {
			t.Errorf("Open gives %v", err)
		}
	})
	t.Run("issue/29 a store that lost all its sessions is left unchanged even if its log has content", func(t *testing.T) {
		s := must(Open(t.Context(), quiet(t.TempDir())))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		early := crashed(t, s)
		commit(t, s, rootCommit("ses_a"))
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		s.count(t.Context()) // the writer, to which this belongs, has ended
		dir := crashed(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		shell(t, "cp", early+"/"+fileName, early+"/"+fileName+"-wal", dir)
		adopt(t, dir)
		before := listing(t, dir)
		if _, err := Open(t.Context(), quiet(dir)); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "no sessions at all") {
			t.Errorf("Open gives %v", err)
		}
		after := listing(t, dir)
		delete(after, fileName+"-shm") // which SQLite makes to look
		if !maps.Equal(before, after) {
			t.Error("the directory was changed")
		}
	})
	t.Run("issue/29 a store with damaged facts is left unchanged", func(t *testing.T) {
		dir, _ := life(t)
		s, stop := start(t, quiet(dir))
		commit(t, s, rootCommit("ses_b"))
		tamper(t, dir, "UPDATE meta SET value = 'many' WHERE name = 'commits'")
		dir = crashed(t, s)
		stop()
		before := listing(t, dir)
		if _, err := Open(t.Context(), quiet(dir)); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "meta commits") {
			t.Errorf("Open gives %v", err)
		}
		after := listing(t, dir)
		delete(after, fileName+"-shm") // which SQLite makes to look
		if !maps.Equal(before, after) {
			t.Error("the directory was changed")
		}
	})
	t.Run("issue/29 removing a fully folded log is not a loss", func(t *testing.T) {
		dir, epoch := life(t)
		s, stop := start(t, quiet(dir))
		commit(t, s, &Commit{Session: "ses_a", Events: []Event{event(3)}})
		s.fold(t.Context(), "PASSIVE")
		dir = crashed(t, s)
		stop()
		remove(t, dir, fileName+"-wal")
		if s := open(t, dir); s.Rollback() != nil || s.Facts().Epoch != epoch || session(t, s, "ses_a").Seq != 3 {
			t.Errorf("found %v; epoch %d after %d", s.Rollback(), s.Facts().Epoch, epoch)
		}
	})
	t.Run("outside/14 a log removed after a kill is reported until the loss is acknowledged", func(t *testing.T) {
		dir, epoch := life(t)
		s, stop := start(t, quiet(dir))
		commit(t, s, &Commit{Session: "ses_a", Events: []Event{event(3)}})
		dir = crashed(t, s)
		stop()
		remove(t, dir, fileName+"-wal")
		s, stop = start(t, quiet(dir))
		found := s.Rollback()
		if found == nil || !strings.Contains(found.Error(), "lashd.db-wal was removed") || s.Facts().Epoch == epoch {
			t.Errorf("found %v; epoch %d as before", found, epoch)
		}
		stop()
		goOn(t, dir, 1)
		s = must(Open(t.Context(), quiet(dir)))
		if s.Rollback() == nil || *s.Rollback() != *found {
			t.Errorf("at the second start after that: %v, want %v", s.Rollback(), found)
		}
		if err := errors.Join(s.Acknowledge(t.Context()), s.Close()); err != nil {
			t.Fatal(err)
		}
		if s := open(t, dir); s.Rollback() != nil {
			t.Errorf("after it was acknowledged: %v", s.Rollback())
		}
	})
	for _, inPlace := range []bool{false, true} {
		name := map[bool]string{false: "replaced", true: "written over"}[inPlace]
		t.Run("outside/12 a database that was "+name+" is not opened with the log of the previous one", func(t *testing.T) {
			dir, _ := life(t)
			older := save(t, dir)
			goOn(t, dir, 1)
			s, stop := start(t, quiet(dir))
			commit(t, s, &Commit{Session: "ses_a", Events: []Event{event(3)}})
			dir = crashed(t, s)
			stop()
			shell(t, "touch", filepath.Join(dir, fileName+"-wal")) // as if it had been written here
			if !inPlace {
				remove(t, dir, fileName)
			}
			if err := os.WriteFile(filepath.Join(dir, fileName), older, 0o600); err != nil {
				t.Fatal(err)
			}
			before := listing(t, dir)
			_, err := Open(t.Context(), quiet(dir))
			if _, ok := errors.AsType[*StaleLogError](err); !ok || !maps.Equal(before, listing(t, dir)) {
				t.Errorf("Open gives %v", err)
			}
			if _, err := SetLogAside(dir); err != nil {
				t.Fatal(err)
			}
			if s := open(t, dir); s.Rollback() == nil || session(t, s, "ses_a").Seq != 2 {
				t.Errorf("seq %d, %v", session(t, s, "ses_a").Seq, s.Rollback())
			}
		})
	}
}
