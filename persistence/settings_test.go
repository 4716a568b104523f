package persistence

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestSettings(t *testing.T) {
	t.Run("runtime/P17 every connection reads back every setting", func(t *testing.T) {
		s := open(t, t.TempDir())
		for name, options := range map[string]map[string]string{
			"writer": expected(writerOptions("FULL")), "reader": expected(readerOptions("FULL")),
		} {
			for _, pragma := range []string{"journal_mode", "synchronous", "busy_timeout", "foreign_keys", "trusted_schema", "cell_size_check",
				"temp_store", "secure_delete", "journal_size_limit", "wal_autocheckpoint", "auto_vacuum", "mmap_size"} {
				if options[pragma] == "" {
					t.Errorf("%s: %s is not read back", name, pragma)
				}
			}
		}
		// All connections of the readers at once, so that the pool must open each.
		var wg sync.WaitGroup
		for range s.pool.db.Stats().MaxOpenConnections {
			conn, err := s.pool.db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				defer conn.Close()
				for pragma, want := range maps.All(expected(readerOptions("FULL"))) {
					var got string
					if err := conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
						t.Errorf("PRAGMA %s is %s, want %s: %v", pragma, got, want, err)
					}
				}
				if _, err := conn.ExecContext(t.Context(), "DELETE FROM meta"); err == nil {
					t.Error("a reader could write")
				}
			})
		}
		wg.Wait()
	})
	t.Run("runtime/P17 a connection with a wrong setting is not opened", func(t *testing.T) {
		cfg := quiet(t.TempDir())
		cfg.Durability = "FUL"
		if _, err := Open(t.Context(), cfg); err == nil {
			t.Error("a typo in synchronous was accepted")
		}
		path := filepath.Join(t.TempDir(), "x.db")
		// SQLite ignores a misspelled PRAGMA, so only reading it back shows the mistake.
		options := writerOptions("FULL")
		for i, pragma := range options["_pragma"] {
			wrong := url.Values(maps.Clone(options))
			wrong["_pragma"] = slices.Clone(options["_pragma"])
			wrong["_pragma"][i] = "x" + pragma
			db := must(openPool(path, wrong, 1))
			if err := db.PingContext(t.Context()); err == nil {
				t.Errorf("x%s was accepted", pragma)
			}
			db.Close()
		}
	})
	t.Run("runtime/P17 paths with special characters work", func(t *testing.T) {
		for _, name := range []string{"a?b#c%20.db", "with space", "ünïcode", "percent%", "q'uote\"d", "?mode=ro"} {
			dir := filepath.Join(t.TempDir(), name)
			s, stop := start(t, quiet(dir))
			commit(t, s, rootCommit("ses_a"))
			if _, err := s.Backup(t.Context(), filepath.Join(dir, "copy?")); err != nil {
				t.Error(err)
			}
			stop()
			if fileSize(filepath.Join(dir, "lashd.db")) == 0 {
				t.Errorf("the database is not in %q", dir)
			}
			if s := open(t, dir); session(t, s, "ses_a").ID != "ses_a" {
				t.Errorf("%q: the session is gone", name)
			}
		}
	})
	t.Run("runtime/P17 a relative directory works", func(t *testing.T) {
		t.Chdir(t.TempDir())
		s := open(t, "rel")
		commit(t, s, rootCommit("ses_a"))
	})
}

func TestFilesArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, dir)
	commit(t, s, rootCommit("ses_a"))
	commit(t, s, &Commit{Session: "ses_a", Blobs: []Blob{must(s.PrepareBlob(make([]byte, inlineBlob+1)))}})
	s.witness.update(true, func(*witnessed) {})
	if err := s.ballast.restore(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Backup(t.Context(), filepath.Join(dir, "copy")); err != nil {
		t.Fatal(err)
	}
	var seen []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		seen = append(seen, e.Name())
		if info := must(e.Info()); info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lashd.db", "lashd.db-wal", "lashd.db-shm", "lashd.witness", "lashd.ballast", "copy", "blobs"} {
		if !strings.Contains(strings.Join(seen, "\n")+"\n", name+"\n") {
			t.Errorf("%s was not made", name)
		}
	}
}

func TestReadsAreCancellable(t *testing.T) {
	s := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Session(ctx, "ses_a"); err == nil {
		t.Error("a cancelled read succeeded")
	}
	if s.Healthy() != nil {
		t.Error(s.Healthy())
	}
	if _, err := s.Sessions(context.WithoutCancel(ctx), SessionQuery{Limit: 1}); err != nil {
		t.Error(err)
	}
}

func TestBackup(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	commit(t, s, rootCommit("ses_a"))
	large := must(s.PrepareBlob(make([]byte, inlineBlob+1)))
	commit(t, s, &Commit{Session: "ses_a", Events: []Event{event(1)}, Blobs: []Blob{large}})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 200 {
			commit(t, s, &Commit{Session: "ses_a", Events: []Event{event(i + 2)}})
		}
	}()
	times := 5
	if os.Getenv("LASHD_LONG") != "" {
		times = 100
	}
	t.Run("reliability/R22 a backup under load holds a complete prefix of the commits and works as a data directory", func(t *testing.T) {
		for range times {
			copied := filepath.Join(t.TempDir(), "copy")
			if _, err := s.Backup(t.Context(), copied); err != nil {
				t.Fatal(err)
			}
			old, stop := start(t, quiet(copied))
			verified(t, old)
			if got := session(t, old, "ses_a"); got.Seq < 1 || old.Facts().StoreID != s.Facts().StoreID || old.Facts().Secret != s.Facts().Secret {
				t.Errorf("backup has %d events, facts %+v", got.Seq, old.Facts())
			}
			if _, err := old.Blob(t.Context(), large.Digest); err != nil {
				t.Error(err)
			}
			stop()
		}
	})
	<-done
	t.Run("reliability/R22 a backup overwrites nothing, and a failed one leaves nothing", func(t *testing.T) {
		at := t.TempDir()
		if _, err := s.Backup(t.Context(), at); !errors.Is(err, fs.ErrExist) {
			t.Errorf("onto a directory: %v", err)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Backup(over, filepath.Join(at, "copy")); err == nil {
			t.Error("a cancelled backup was made")
		}
		if left := must(os.ReadDir(at)); len(left) != 0 {
			t.Errorf("it leaves %v", left)
		}
	})
}
