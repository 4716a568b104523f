package persistence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"lashd/rpc/protocol"
)

// group queues commits before the writer runs, lets it write them as one group, and returns their errors in order.
func group(t *testing.T, s *Store, commits ...*Commit) []error {
	t.Helper()
	var all []*request
	for _, c := range commits {
		r, err := newRequest(c)
		if err != nil {
			t.Fatal(err)
		}
		s.requests <- r
		all = append(all, r)
	}
	t.Cleanup(run(t, s))
	var errs []error
	for _, r := range all {
		<-r.done
		errs = append(errs, r.err)
	}
	return errs
}

func idleStore(t *testing.T) *Store {
	s, stop := start(t, quiet(t.TempDir()))
	commit(t, s, rootCommit("ses_a"))
	stop()
	s, err := Open(t.Context(), quiet(s.Dir()))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestGroup(t *testing.T) {
	add := func(id string) *Commit {
		return &Commit{Session: "ses_a", Nodes: []protocol.Node{message(id)}, Events: []Event{event(1)}}
	}
	t.Run("a conflict fails alone", func(t *testing.T) {
		s := idleStore(t)
		before := s.meta.commits + s.uncounted
		wrong := int64(77)
		conflict := add("nod_2")
		conflict.Fence.Revision = &wrong
		errs := group(t, s, add("nod_1"), conflict, add("nod_3"), add("nod_1"))
		if errs[0] != nil || !errors.Is(errs[1], ErrFenced) || errs[2] != nil || !errors.Is(errs[3], ErrExists) {
			t.Errorf("errors %v", errs)
		}
		if got := path(t, s, "ses_a", 10); len(got) != 3 || got[2] != "nod_3" {
			t.Errorf("path %v", got)
		}
		if n := s.meta.commits + s.uncounted - before; n != 2 {
			t.Errorf("%d commits counted, want 2", n)
		}
		verified(t, s)
	})
	t.Run("a full disk makes the writer try each commit alone", func(t *testing.T) {
		s := idleStore(t)
		limitPages(t, s, 30)
		big := &Commit{Session: "ses_a", Events: []Event{{Type: "x", Body: make([]byte, 1<<20)}}}
		errs := group(t, s, add("nod_1"), big, add("nod_2"))
		if errs[0] != nil || !errors.Is(errs[1], ErrFull) || errs[2] != nil {
			t.Errorf("errors %v", errs)
		}
		limitPages(t, s, 1<<30)
		commit(t, s, big) // nothing was poisoned
		if s.Healthy() != nil || session(t, s, "ses_a").Seq != 3 {
			t.Errorf("health %v", s.Healthy())
		}
	})
	t.Run("a client that disconnects does not affect other commits", func(t *testing.T) {
		s := idleStore(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		cancel(gone)
		s.requests <- must(newRequest(add("nod_1")))
		if _, err := s.Commit(ctx, add("nod_2")); !errors.Is(err, gone) {
			t.Errorf("cancelled commit gave %v", err)
		}
		if errs := group(t, s, add("nod_3")); errs[0] != nil {
			t.Error(errs)
		}
	})
	t.Run("after the end every caller gets a result", func(t *testing.T) {
		s, stop := start(t, quiet(t.TempDir()))
		commit(t, s, rootCommit("ses_a"))
		stop()
		for range 2 * groupLimit {
			refuse(t, s, add("nod_1"), ErrClosed)
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// limitPages makes SQLite report a full disk.
func limitPages(t *testing.T, s *Store, n int) {
	t.Helper()
	var now int
	if err := s.stmts.conn.QueryRowContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", n)).Scan(&now); err != nil {
		t.Fatal(err)
	}
}

func TestBallast(t *testing.T) {
	t.Run("reliability/P17 on a full disk finishing work is written and new work is rejected", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		commit(t, s, &Commit{Session: "ses_a", Turns: []Turn{{ID: "trn_1", State: protocol.TurnQueued}}})
		if err := s.ballast.restore(); err != nil {
			t.Fatal(err)
		}
		if n := fileSize(s.ballast.path); n != ballastSize {
			t.Fatalf("ballast of %d bytes", n)
		}
		limitPages(t, s, 30)
		ends := &Commit{Session: "ses_a", Events: []Event{{Type: "x", Body: make([]byte, 1<<20)}}, Turns: []Turn{{ID: "trn_1", State: protocol.TurnCompleted}}}
		refuse(t, s, ends, ErrFull) // here the ballast is no help, but it was given up
		if _, err := os.Stat(s.ballast.path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("ballast: %v", err)
		}
		limitPages(t, s, 1<<30)
		refuse(t, s, rootCommit("ses_b"), ErrFull)
		if !errors.Is(s.Space(), ErrFull) {
			t.Errorf("space: %v", s.Space())
		}
		commit(t, s, ends)
		if err := s.ballast.restore(); err != nil { // the writer does so within two seconds
			t.Fatal(err)
		}
		commit(t, s, rootCommit("ses_b"))
	})
}
