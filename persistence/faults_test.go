package persistence

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"lashd/rpc/protocol"
)

// errFault is the error of a statement that a test makes fail.
var errFault = errors.New("the statement fails")

// faults is a connection pool of SQLite that calls a function before one of its statements. The statement returns the function's error.
type faults struct {
	inner driver.Connector

	mu     sync.Mutex
	before int // statements until then; negative: already called
	do     func() error
	hit    string // the statement; empty: it was not reached
}

// at calls a function before the statement with this number, from 0.
func (f *faults) at(n int, do func() error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.do, f.hit = n, do, ""
}

// statement returns the statement before which the function was called; empty if there were fewer statements.
func (f *faults) statement() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	hit := f.hit
	f.before = -1
	return hit
}

func (f *faults) next(query string) error {
	f.mu.Lock()
	now := f.before == 0
	f.before--
	if now {
		f.hit = query
	}
	f.mu.Unlock()
	if now {
		return f.do()
	}
	return nil
}

func (f *faults) Driver() driver.Driver { return f.inner.Driver() }

func (f *faults) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := f.inner.Connect(ctx)
	return faultyConn{c, f}, err
}

// faultyConn has database/sql prepare every statement.
type faultyConn struct {
	driver.Conn
	*faults
}

func (c faultyConn) Prepare(query string) (driver.Stmt, error) {
	s, err := c.Conn.Prepare(query)
	return faultyStmt{s, c.faults, query}, err
}

type faultyStmt struct {
	driver.Stmt
	*faults
	query string
}

func (s faultyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.next(s.query); err != nil {
		return nil, err
	}
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (s faultyStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := s.next(s.query); err != nil {
		return nil, err
	}
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}

// faultyReads has the reads of a store go through one connection that may fail.
func faultyReads(t *testing.T, s *Store) *faults {
	t.Helper()
	f := &faults{inner: &connector{dsn: fileURL(s.path, readerOptions("FULL"))}, before: -1}
	if err := s.pool.close(); err != nil {
		t.Fatal(err)
	}
	s.pool.db, s.pool.stmts = sql.OpenDB(f), nil
	return f
}

// faultyWrites has the writes of a store that does not run yet go through a connection that may fail.
func faultyWrites(t *testing.T, s *Store) *faults {
	t.Helper()
	f := &faults{inner: &connector{dsn: fileURL(s.path, writerOptions("OFF"))}, before: -1}
	write := sql.OpenDB(f)
	stmts := must(prepare(t.Context(), write)) // before the other one is closed, as the last one would remove the log
	if err := errors.Join(s.stmts.close(), s.db.Close()); err != nil {
		t.Fatal(err)
	}
	s.db, s.stmts = write, stmts
	return f
}

// afterwards reports whether a statement runs after the commit and is retried later.
func afterwards(query string) bool { return strings.HasPrefix(query, "SELECT 1 FROM blobs") }

func TestFailingWrites(t *testing.T) {
	t.Run("issue/29 a commit with any failing statement stores nothing, and succeeds when repeated", func(t *testing.T) {
		want := must(Open(t.Context(), quiet(t.TempDir())))
		stop := run(t, want)
		defer stop()
		everyChange(t, want, func(c *Commit) { commit(t, want, c) })
		everyEnd(func(c *Commit) { commit(t, want, c) })

		s := must(Open(t.Context(), Config{Dir: t.TempDir(), Log: quiet("").Log, Durability: "OFF"}))
		f := faultyWrites(t, s)
		defer run(t, s)()
		failed := 0
		try := func(c *Commit) {
			for n := 0; ; n++ {
				f.at(n, func() error { return errFault })
				_, err := s.Commit(t.Context(), c)
				hit := f.statement()
				switch {
				case hit == "" && err != nil:
					t.Fatal(err)
				case hit == "":
					return
				case afterwards(hit) && err == nil:
					return
				case !errors.Is(err, errFault):
					t.Fatalf("the commit gives %v although this failed: %s", err, hit)
				}
				failed++
			}
		}
		everyChange(t, s, try)
		everyEnd(try)
		t.Logf("%d statements failed", failed)
		if got, want := withoutMeta(dump(t, s.pool.db)), withoutMeta(dump(t, want.pool.db)); got != want {
			t.Errorf("the store holds\n%s\nwant\n%s", got, want)
		}
		verified(t, s)
	})
}

// everyEnd makes commits that read what everyChange has stored, and commits that remove it.
func everyEnd(commit func(*Commit)) {
	commit(fork("ses_f", "ses_a", "trn_ses_a2b"))
	turns := []Turn{{ID: "trn_1", State: protocol.TurnQueued, Incarnation: "i"}, {ID: "trn_2", State: protocol.TurnQueued, Incarnation: "i"}}
	commit(&Commit{Session: "ses_f", Requires: "trn_ses_a2b", Nodes: []protocol.Node{message("nod_f")}, Turns: turns})
	commit(&Commit{Session: "ses_f", Fence: Fence{Turn: "trn_1", Incarnation: "i"}, Events: []Event{event(1)}})
	commit(&Commit{Session: "ses_a", TakeFirst: true})
	commit(&Commit{Receipt: &Receipt{Key: "begun", Hash: []byte("h")}})
	commit(&Commit{Forget: "begun"})
	commit(&Commit{Session: "ses_a", Delete: true})
	commit(&Commit{Session: "ses_f", Delete: true})
}

func withoutMeta(dump string) string {
	var b strings.Builder
	for line := range strings.Lines(dump) {
		if !strings.HasPrefix(line, "meta ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// everyRead calls all reads of a store.
func everyRead(ctx context.Context, s *Store) error {
	report, err := s.Verify(ctx, func(int, int) {})
	if err != nil {
		return err
	}
	problems, err := s.VerifyTasks(ctx, foldCount)
	if wrong := append(report.Problems, problems...); err == nil && len(wrong) > 0 {
		return fmt.Errorf("found %q", wrong)
	}
	return err
}

// foldCount is the fold of the tasks in these tests: they count their events.
func foldCount(id protocol.TaskID, events []protocol.TaskEvent) (t protocol.Task, err error) {
	if len(events) == 0 {
		return t, errors.New("no events")
	}
	for i, e := range events {
		if e.Ordinal != i+1 {
			return t, fmt.Errorf("event %d is event %d", i+1, e.Ordinal)
		}
	}
	return countedTask(events[0].SessionID, id, len(events)), nil
}

func countedTask(session protocol.SessionID, id protocol.TaskID, events int) protocol.Task {
	return protocol.Task{ID: id, SessionID: session, Origin: protocol.TaskOrigin{SessionID: session}, Ordinal: events}
}

// counted is a change of a task: its newest event.
func counted(session protocol.SessionID, id protocol.TaskID, n int) TaskChange {
	e := protocol.TaskEvent{Ordinal: n, SessionID: session, Key: fmt.Sprint(n)}
	if n == 1 {
		e.Kind = protocol.TaskWasCreated
	}
	return TaskChange{Task: countedTask(session, id, n), Events: []protocol.TaskEvent{e}}
}

func TestChangesWhileChecking(t *testing.T) {
	for name, meanwhile := range map[string]func(t *testing.T, s *Store, id protocol.SessionID){
		"grows": func(t *testing.T, s *Store, id protocol.SessionID) {
			commit(t, s, &Commit{Session: id, Nodes: []protocol.Node{message("nod_more_" + string(id))}, Events: []Event{event(3)}})
		},
		"is deleted": func(t *testing.T, s *Store, id protocol.SessionID) {
			commit(t, s, &Commit{Session: id, Delete: true})
		},
		"has another event in its task": func(t *testing.T, s *Store, id protocol.SessionID) {
			commit(t, s, &Commit{Session: id, Tasks: []TaskChange{counted(id, "tsk_1", 2)}})
		},
	} {
		t.Run("issue/29 a session that "+name+" between any two reads of a check is not reported as damaged", func(t *testing.T) {
			s := open(t, t.TempDir())
			f := faultyReads(t, s)
			commit(t, s, rootCommit("ses_a"))
			for n := 0; ; n++ {
				id := protocol.SessionID(fmt.Sprint("ses_", n))
				commit(t, s, fork(id, "ses_a", session(t, s, "ses_a").Head.Leaf))
				large := must(s.PrepareBlob(fmt.Appendf(nil, "%0*d", inlineBlob+1, n)))
				commit(t, s, &Commit{Session: id, Nodes: []protocol.Node{message("nod_" + string(id))}, Events: []Event{event(1), event(2)},
					Tasks: []TaskChange{counted(id, "tsk_1", 1)}, Blobs: []Blob{large}, Component: []Component{{"c", fmt.Appendf(nil, "%0*d", inlineComponent+1, n)}}})
				f.at(n, func() error { meanwhile(t, s, id); return nil })
				err := everyRead(t.Context(), s)
				hit := f.statement()
				if err != nil {
					t.Errorf("before %q: %v", hit, err)
				}
				if hit == "" {
					break
				}
				if name != "is deleted" {
					commit(t, s, &Commit{Session: id, Delete: true})
				}
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	t.Run("issue/29 a store without failures logs no warnings", func(t *testing.T) {
		var log bytes.Buffer
		s, stop := start(t, Config{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
		everyChange(t, s, func(c *Commit) { commit(t, s, c) })
		everyEnd(func(c *Commit) { commit(t, s, c) })
		refuse(t, s, &Commit{Session: "ses_a", TakeFirst: true}, ErrDeleted)
		stop()
		if log.Len() > 0 {
			t.Errorf("it says %s", log.String())
		}
	})
}

func TestFailingReads(t *testing.T) {
	t.Run("issue/29 a check with any failing read fails", func(t *testing.T) {
		s := open(t, everyTable(t))
		f := faultyReads(t, s)
		n := 0
		for ; ; n++ {
			f.at(n, func() error { return errFault })
			err := everyRead(t.Context(), s)
			hit := f.statement()
			if hit == "" {
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			if !errors.Is(err, errFault) {
				t.Errorf("the check gives %v although this failed: %s", err, hit)
			}
		}
		t.Logf("%d reads failed", n)
	})
	for damage, want := range map[string]string{
		"DELETE FROM nodes WHERE place = (SELECT max(place) FROM nodes)": "nodes are missing",
		"UPDATE blobs SET body = zeroblob(7)":                            "does not match its digest",
	} {
		t.Run("issue/29 a failing read hides no damage: "+damage, func(t *testing.T) {
			s, stop := start(t, quiet(t.TempDir()))
			c := rootCommit("ses_a")
			c.Nodes = append(c.Nodes, message("nod_1"))
			c.Blobs = []Blob{must(s.PrepareBlob([]byte("blob")))}
			commit(t, s, c)
			stop()
			tamper(t, s.Dir(), damage)
			s = open(t, s.Dir())
			f := faultyReads(t, s)
			for n := 0; ; n++ {
				f.at(n, func() error { return errFault })
				err := everyRead(t.Context(), s)
				hit := f.statement()
				if err == nil || !errors.Is(err, errFault) && !strings.Contains(err.Error(), want) {
					t.Errorf("the check gives %v although this failed: %s", err, hit)
				}
				if hit == "" {
					break
				}
			}
		})
	}
}
