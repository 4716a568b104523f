package persistence

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"

	"lashd/rpc/protocol"
)

// children are the functions that a copy of this test binary runs instead of tests, by the environment variable that selects them.
var children = map[string]func(){}

func TestMain(m *testing.M) {
	if os.Getenv(migrateEnv) != "" {
		migrateAndDie()
	}
	for env, run := range children {
		if os.Getenv(env) != "" {
			run()
		}
	}
	if os.Getenv("LASHD_LONG") == "" {
		flag.Set("rapid.checks", "25") // of a registered flag, with a number
	}
	goleak.VerifyTestMain(m)
}

func quiet(dir string) Config { return Config{Dir: dir, Log: slog.New(slog.DiscardHandler)} }

// open starts a store in dir and stops it at the end of the test.
func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, stop := start(t, quiet(dir))
	t.Cleanup(stop)
	return s
}

// start opens and runs a store; stop ends it and may be called again.
func start(t testing.TB, cfg Config) (s *Store, stop func()) {
	t.Helper()
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s, run(t, s)
}

func run(t testing.TB, s *Store) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stopped := false
	return func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := errors.Join(<-done, s.Close()); err != nil {
			t.Error(err)
		}
	}
}

func rootCommit(id protocol.SessionID) *Commit {
	return &Commit{
		Session: id,
		Create:  &NewSession{Cwd: "/w", Relation: protocol.Relation{Kind: protocol.RelationRoot}},
		Nodes:   []protocol.Node{{ID: protocol.DeriveNodeID(id, "open", 0), FrameOpen: &protocol.FrameOpen{Key: "initial", Reason: "initial"}}},
		AtMs:    1,
	}
}

// commit writes c and fails the test if it is refused.
func commit(t testing.TB, s *Store, c *Commit) Result {
	t.Helper()
	res, err := s.Commit(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// refuse writes c, which must be refused with want.
func refuse(t testing.TB, s *Store, c *Commit, want error) {
	t.Helper()
	if _, err := s.Commit(t.Context(), c); !errors.Is(err, want) {
		t.Errorf("commit gave %v, want %v", err, want)
	}
}

func message(id string) protocol.Node {
	return protocol.Node{ID: protocol.NodeID(id), Message: &protocol.Message{Role: protocol.RoleUser}}
}

func event(n int) Event {
	return Event{Type: protocol.EventTurnAccepted, Body: fmt.Appendf(nil, `{"n":%d}`, n)}
}

func session(t testing.TB, s *Store, id protocol.SessionID) Session {
	t.Helper()
	row, err := s.Session(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// path reads a session's whole path in pages of a size, root first.
func path(t testing.TB, s *Store, id protocol.SessionID, page int) []protocol.NodeID {
	t.Helper()
	row := session(t, s, id)
	var ids []protocol.NodeID
	for at := (Cursor{Branch: row.Branch, Generation: row.Head.Generation}); !at.Done; {
		nodes, next, err := s.Path(t.Context(), at, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes {
			ids = append([]protocol.NodeID{n.ID}, ids...)
		}
		at = next
	}
	return ids
}

func verified(t testing.TB, s *Store) Report {
	t.Helper()
	report, err := s.Verify(t.Context(), func(int, int) {})
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("verify found %q, %v", report.Problems, err)
	}
	return report
}

// count asks a store's tables directly.
func count(t testing.TB, s *Store, query string, args ...any) int {
	t.Helper()
	var n int
	if err := s.pool.db.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
