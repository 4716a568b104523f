package persistence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/rpc/protocol"
)

// afterIdling lets a store idle until it has folded its log, and returns the sizes of its files.
func afterIdling(s *Store) (db, wal int64) {
	time.Sleep(idleAfter + 2*witnessDelay)
	synctest.Wait()
	return s.Sizes()
}

func modified(t *testing.T, path string) time.Time {
	t.Helper()
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return fi.ModTime()
}

func TestUpkeep(t *testing.T) {
	t.Run("an idle store folds its log and then overwrites it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, stop := start(t, quiet(t.TempDir()))
			defer stop()
			commit(t, s, rootCommit("ses_a"))
			for i := range 20 {
				commit(t, s, turnLike("ses_a", i))
			}
			time.Sleep(witnessDelay)
			synctest.Wait() // they are counted, and not folded in yet
			made, before := s.Sizes()
			db, wal := afterIdling(s)
			if db <= made || wal != before {
				t.Errorf("database and log have %d and %d bytes, then %d and %d; want the first to grow and the other to stay", made, before, db, wal)
			}
			commit(t, s, turnLike("ses_a", 20))
			if _, now := s.Sizes(); now != wal {
				t.Errorf("the log has %d bytes after the next commit, want %d as before", now, wal)
			}
		})
	})
	t.Run("issue/2 the writer waits for locks again after a checkpoint timed out", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		s.fold(t.Context(), "TRUNCATE") // what is prepared for the first time takes effect then
		ctx, cancel := context.WithCancel(t.Context())
		long := func() error {
			cancel()
			return ctx.Err()
		}
		if err := withoutLockWait(ctx, &tx{stmts: s.stmts}, long); !errors.Is(err, context.Canceled) {
			t.Errorf("the checkpoint returned %v", err)
		}
		var ms int
		if err := s.stmts.conn.QueryRowContext(t.Context(), "PRAGMA busy_timeout").Scan(&ms); err != nil || ms != busyTimeout {
			t.Errorf("locks are waited for %d ms, %v; want %d", ms, err, busyTimeout)
		}
	})
	t.Run("deleted data leaves the log", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, stop := start(t, quiet(t.TempDir()))
			defer stop()
			commit(t, s, rootCommit("ses_a"))
			commit(t, s, &Commit{Session: "ses_a", Delete: true})
			if _, wal := afterIdling(s); wal != 0 {
				t.Errorf("the log has %d bytes, want none", wal)
			}
		})
	})
	t.Run("runtime/P14 an idle store gives the space of deleted data back to the file system", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, stop := start(t, quiet(t.TempDir()))
			defer stop()
			commit(t, s, rootCommit("ses_a"))
			note := protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: strings.Repeat("x", 1<<20)}}}
			commit(t, s, &Commit{Session: "ses_a", Nodes: []protocol.Node{{ID: "nod_1", Message: &note}}})
			full, _ := afterIdling(s)
			commit(t, s, &Commit{Session: "ses_a", Delete: true})
			if now, _ := afterIdling(s); now > full-1<<19 {
				t.Errorf("the database has %d bytes, and %d after a session of 1 MiB was deleted", full, now)
			}
			verified(t, s)
		})
	})
	t.Run("a busy store restarts its log", func(t *testing.T) {
		s, stop := start(t, quiet(t.TempDir()))
		defer stop()
		commit(t, s, rootCommit("ses_a"))
		big := strings.Repeat("x", 1<<20)
		for i := range 20 {
			note := protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: big}}}
			commit(t, s, &Commit{Session: "ses_a", Nodes: []protocol.Node{{ID: protocol.NodeID(fmt.Sprint("nod_", i)), Message: &note}}})
		}
		if _, wal := s.Sizes(); wal > 2*walSoftLimit {
			t.Errorf("the log has %d bytes after 20 MiB were committed, want about %d", wal, walSoftLimit)
		}
		commit(t, s, turnLike("ses_a", 0)) // what was folded in after the last one is, by now
		before := modified(t, s.path)
		for i := range 5 {
			commit(t, s, turnLike("ses_a", 1+i))
		}
		if !modified(t, s.path).Equal(before) {
			t.Error("the database was written although the log has room")
		}
	})
}
