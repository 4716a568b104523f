package persistence

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// tamper changes a database behind lashd's back, with a connection of its own.
func tamper(t *testing.T, dir, query string, args ...any) {
	t.Helper()
	db := must(sql.Open("sqlite", fileURL(filepath.Join(dir, "lashd.db"), nil)))
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatal(err)
	}
}

func findings(t *testing.T, dir string) string {
	t.Helper()
	s := must(Open(t.Context(), quiet(dir)))
	defer s.closePools()
	defer s.witness.close()
	report, err := s.Verify(t.Context(), func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(report.Problems, "; ")
}

func TestVerify(t *testing.T) {
	fill := func(t *testing.T) string {
		s, stop := start(t, quiet(t.TempDir()))
		commit(t, s, rootCommit("ses_a"))
		for i := range 5 {
			commit(t, s, &Commit{Session: "ses_a", Events: []Event{event(i)}, Nodes: []protocol.Node{message(fmt.Sprint("nod_", i))},
				Component: []Component{{"c", make([]byte, 1000+i)}, {"d", make([]byte, 2000+i)}}})
		}
		commit(t, s, &Commit{Session: "ses_a", Tasks: []TaskChange{counted("ses_a", "tsk_1", 1)}})
		stop()
		return s.Dir()
	}
	t.Run("issue/29 damage outside a session's rows names no session", func(t *testing.T) {
		dir := fill(t)
		tamper(t, dir, "UPDATE meta SET value = 'x' WHERE name = 'secret'")
		if got := findings(t, dir); !strings.HasPrefix(got, "row name secret of table meta") {
			t.Errorf("found %q", got)
		}
	})
	t.Run("reliability/F7 every flipped byte of an event is found", func(t *testing.T) {
		dir := fill(t)
		flips := 0
		for _, column := range []string{"type", "body", "chain"} {
			var size int
			db := must(sql.Open("sqlite", fileURL(filepath.Join(dir, "lashd.db"), nil)))
			err := db.QueryRowContext(t.Context(), "SELECT length(CAST("+column+" AS BLOB)) FROM events LIMIT 1 OFFSET 2").Scan(&size)
			db.Close()
			if err != nil {
				t.Fatal(err)
			}
			cast := "BLOB"
			if column == "type" {
				cast = "TEXT"
			}
			for at := range size {
				flip := fmt.Sprintf(`UPDATE events SET %s = CAST(unhex(substr(hex(%[1]s), 1, %d) ||
					printf('%%02X', (unicode(substr('0123456789ABCDEF', 1 + (instr('0123456789ABCDEF', substr(hex(%[1]s), %[3]d, 1)) - 1 + 1) %% 16, 1)))) ||
					substr(hex(%[1]s), %[4]d)) AS %[5]s) WHERE place = (SELECT place FROM events LIMIT 1 OFFSET 2)`,
					column, 2*at, 2*at+1, 2*at+3, cast)
				saved := save(t, dir)
				tamper(t, dir, flip)
				if got := findings(t, dir); !strings.Contains(got, "the log is broken at event 3") {
					t.Fatalf("byte %d of %s: found %q", at, column, got)
				}
				restore(t, dir, saved)
				flips++
			}
		}
		t.Logf("%d flips found", flips)
	})
	t.Run("reliability/F7 missing and inconsistent rows are found", func(t *testing.T) {
		dir := fill(t)
		saved := save(t, dir)
		for query, want := range map[string]string{
			"DELETE FROM events WHERE place = (SELECT max(place) FROM events)": "broken",
			"DELETE FROM events WHERE place = (SELECT min(place) FROM events)": "broken",
			"DELETE FROM events":                                                                 "broken",
			"UPDATE sessions SET seq = seq - 1":                                                  "broken",
			"UPDATE sessions SET chain = zeroblob(32)":                                           "broken",
			"UPDATE events SET place = place + 9 WHERE place % 16 = 2":                           "broken",
			"UPDATE events SET place = place + 1 WHERE place = (SELECT max(place) FROM events)":  "broken",
			"UPDATE sqlite_sequence SET seq = seq - 1 WHERE name = 'branches'":                   "the highest row number of branches is 1",
			"UPDATE sqlite_sequence SET seq = 1 << 31 WHERE name = 'branches'":                   "SQLite recorded 2147483648",
			"UPDATE nodes SET turn_id = 'x' WHERE node_id = 'nod_2'":                             "session ses_a: row place ",
			"UPDATE components SET name = 'x' WHERE name = 'c'":                                  "session ses_a: row session 1, snapshot , name x of table components",
			"UPDATE sessions SET title = cwd, cwd = title":                                       "session ses_a: row session 1 of table sessions",
			"UPDATE task_events SET key = 'x'":                                                   "session ses_a: row task 1, ordinal 1 of table task_events",
			"DELETE FROM nodes WHERE node_id = 'nod_2'":                                          "nodes are missing",
			"DELETE FROM branches":                                                               "branch 1 is missing",
			"UPDATE blobs SET body = zeroblob(7) WHERE digest = (SELECT max(digest) FROM blobs)": "does not match its digest",
			"PRAGMA foreign_keys = 0; UPDATE components SET session = 99":                        "refers to a missing row",
		} {
			tamper(t, dir, "PRAGMA foreign_keys = 0; "+query)
			if got := findings(t, dir); !strings.Contains(got, want) {
				t.Errorf("%s: found %q", query, got)
			}
			restore(t, dir, saved)
		}
		if got := findings(t, dir); got != "" {
			t.Errorf("an intact store: found %q", got)
		}
	})
	t.Run("reliability/F7 concurrent commits do not disturb a check", func(t *testing.T) {
		s := open(t, fill(t))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; ctx.Err() == nil; i++ {
				commit(t, s, &Commit{Session: "ses_a", Events: []Event{event(i)}, Nodes: []protocol.Node{message(fmt.Sprint("nod_x", i))}})
			}
		}()
		for range 20 {
			verified(t, s)
		}
		cancel()
		<-done
	})
}

func TestVerifyTasks(t *testing.T) {
	fill := func(t *testing.T) string {
		s, stop := start(t, quiet(t.TempDir()))
		commit(t, s, rootCommit("ses_a"))
		for _, id := range []protocol.TaskID{"tsk_1", "tsk_2"} {
			commit(t, s, &Commit{Session: "ses_a", Tasks: []TaskChange{counted("ses_a", id, 1)}})
			commit(t, s, &Commit{Session: "ses_a", Tasks: []TaskChange{counted("ses_a", id, 2)}})
		}
		stop()
		return s.Dir()
	}
	for damage, want := range map[string]string{
		"SELECT 1": "",
		"DELETE FROM task_events WHERE task = 2 AND ordinal = 2":                                                                                                 "task tsk_2: it differs from the result of its 1 events",
		"DELETE FROM task_events WHERE task = 1 AND ordinal = 1":                                                                                                 "task tsk_1: it differs from the result of its 1 events",
		"INSERT INTO task_events SELECT 2, 3, 'more', body, 0 FROM task_events WHERE ordinal = 2 LIMIT 1":                                                        "task tsk_2: it differs from the result of its 3 events",
		`UPDATE tasks SET body = CAST(replace(body, '"attempt":0', '"attempt":1') AS BLOB) WHERE task = 1`:                                                       "task tsk_1: it differs from the result of its 2 events",
		`UPDATE tasks SET body = CAST(replace(body, '"attempt":0', '"attempt":1,"pruned":true') AS BLOB) WHERE task = 1; DELETE FROM task_events WHERE task = 1`: "",
	} {
		t.Run("issue/29 tasks that differ from their events are found: "+damage, func(t *testing.T) {
			dir := fill(t)
			tamper(t, dir, damage)
			s := open(t, dir)
			got, err := s.VerifyTasks(t.Context(), foldCount)
			if text := strings.Join(got, "; "); err != nil || !strings.HasSuffix(text, want) || (want == "") != (text == "") {
				t.Errorf("found %q, %v; want %q", got, err, want)
			}
		})
	}
}

func save(t *testing.T, dir string) []byte {
	t.Helper()
	return must(os.ReadFile(filepath.Join(dir, "lashd.db")))
}

// restore puts back a database that no process has open.
func restore(t *testing.T, dir string, data []byte) {
	t.Helper()
	for _, suffix := range []string{"-wal", "-shm"} {
		os.Remove(filepath.Join(dir, "lashd.db"+suffix)) // usually there is none
	}
	if err := os.WriteFile(filepath.Join(dir, "lashd.db"), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWitness(t *testing.T) {
	t.Run("issue/29 each commit is counted once", func(t *testing.T) {
		s, stop := start(t, quiet(t.TempDir()))
		for i := range 3 {
			commit(t, s, rootCommit(protocol.SessionID(fmt.Sprint("ses_", i))))
		}
		stop()
		s = must(Open(t.Context(), quiet(s.Dir())))
		s.uncounted = 2
		s.count(t.Context())
		s.count(t.Context())
		if got := must(readWitness(filepath.Join(s.Dir(), witnessName))).Commits; got != 5 {
			t.Errorf("%d commits are counted, want 5", got)
		}
		run(t, s)()
	})
	t.Run("a witness that is behind is accepted", func(t *testing.T) {
		dir := oldDatabase(t)
		path := filepath.Join(dir, witnessName)
		s, stop := start(t, quiet(dir))
		epoch := s.Facts().Epoch
		before := must(os.ReadFile(path))
		commit(t, s, &Commit{Session: "ses_a", Events: []Event{event(2)}})
		stop()
		if err := os.WriteFile(path, before, 0o600); err != nil {
			t.Fatal(err)
		}
		reseal(t, dir)
		if got := open(t, dir).Facts().Epoch; got != epoch {
			t.Errorf("epoch %d, want %d", got, epoch)
		}
	})
	t.Run("outside/12 without a witness the store has a new epoch and no loss is reported", func(t *testing.T) {
		for _, keep := range []int{0, 20} {
			dir := oldDatabase(t)
			path := filepath.Join(dir, witnessName)
			s, stop := start(t, quiet(dir))
			epoch := s.Facts().Epoch
			stop()
			if err := os.WriteFile(path, must(os.ReadFile(path))[:keep], 0o600); err != nil {
				t.Fatal(err)
			}
			if s := open(t, dir); s.Facts().Epoch == epoch || s.Rollback() != nil {
				t.Errorf("with %d bytes of the witness: epoch %d as before, %v", keep, epoch, s.Rollback())
			}
		}
	})
}

// reseal makes the witness accept the database file as the one that lashd closed.
func reseal(t *testing.T, dir string) {
	t.Helper()
	w := must(openWitness(filepath.Join(dir, fileName), slog.New(slog.DiscardHandler)))
	now := w.last
	now.ChangedNs = must(stampOf(filepath.Join(dir, fileName))).changedNs
	if err := errors.Join(w.save(now, true), w.close()); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedStoreServesReads(t *testing.T) {
	dir := oldDatabase(t)
	tamper(t, dir, "UPDATE events SET chain = zeroblob(32)")
	s := must(Open(t.Context(), quiet(dir)))
	stop := run(t, s)
	defer stop()
	refuse(t, s, rootCommit("ses_b"), ErrCorrupt)
	if got := session(t, s, "ses_a"); got.Seq != 1 {
		t.Errorf("session %+v", got)
	}
}

func TestSmallDatabases(t *testing.T) {
	t.Run("issue/2 damage is found before the first write even after a proper close", func(t *testing.T) {
		dir := oldDatabase(t)
		tamper(t, dir, "UPDATE sessions SET chain = zeroblob(32)")
		reseal(t, dir)
		s := must(Open(t.Context(), quiet(dir)))
		if err := s.Healthy(); err != nil {
			t.Errorf("opening waited for the check: %v", err)
		}
		before := must(os.ReadFile(s.path))
		failed := make(chan error, 1)
		go func() {
			_, err := s.Commit(t.Context(), rootCommit("ses_b"))
			failed <- err
		}()
		for len(s.requests) == 0 { // queued before the check
			runtime.Gosched()
		}
		stop := run(t, s)
		if err := <-failed; !errors.Is(err, ErrCorrupt) {
			t.Errorf("commit: %v", err)
		}
		stop()
		if !bytes.Equal(must(os.ReadFile(s.path)), before) {
			t.Error("the damaged database was written to")
		}
	})
	t.Run("issue/29 a database that was not closed is checked before it is opened", func(t *testing.T) {
		s := must(Open(t.Context(), quiet(oldDatabase(t))))
		defer s.closePools()
		defer s.witness.close()
		tamper(t, s.Dir(), "PRAGMA ignore_check_constraints = 1; INSERT INTO turns SELECT 9, 'trn_x', 1, 'odd', '', NULL, NULL, 0, 0, 0")
		again := must(Open(t.Context(), quiet(s.Dir())))
		defer again.closePools()
		defer again.witness.close()
		if err := again.Healthy(); !errors.Is(err, ErrCorrupt) {
			t.Errorf("it is open, and healthy: %v", err)
		}
	})
	t.Run("issue/29 a database that was not closed and cannot be checked is not opened", func(t *testing.T) {
		s := must(Open(t.Context(), quiet(oldDatabase(t))))
		defer s.closePools()
		defer s.witness.close()
		ended, end := context.WithCancel(t.Context())
		end()
		for _, size := range []int64{1, slowFile + 1} {
			if err := s.checkUnclean(ended, preview{unclean: true, size: size}); !errors.Is(err, context.Canceled) {
				t.Errorf("of %d bytes: %v", size, err)
			}
		}
	})
	t.Run("issue/2 a damaged database whose witness has more commits is left unchanged", func(t *testing.T) {
		dir := oldDatabase(t)
		tamper(t, dir, "UPDATE sessions SET chain = zeroblob(32)")
		w, err := openWitness(filepath.Join(dir, fileName), slog.New(slog.DiscardHandler))
		seen := w.last
		seen.Commits++
		if err := errors.Join(err, w.save(seen, true), w.close()); err != nil {
			t.Fatal(err)
		}
		read := func() []byte {
			return append(must(os.ReadFile(filepath.Join(dir, "lashd.db"))), must(os.ReadFile(filepath.Join(dir, "lashd.witness")))...)
		}
		before := read()
		s := must(Open(t.Context(), quiet(dir)))
		run(t, s)()
		if !errors.Is(s.Healthy(), ErrCorrupt) && !errors.Is(s.Healthy(), ErrClosed) || !bytes.Equal(read(), before) {
			t.Errorf("%v, written to: %v", s.Healthy(), !bytes.Equal(read(), before))
		}
	})
	t.Run("issue/2 a database that cannot be checked is not written", func(t *testing.T) {
		s := must(Open(t.Context(), quiet(oldDatabase(t))))
		ended, end := context.WithCancel(t.Context())
		end()
		s.checkSmall(ended)
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- s.Run(ctx) }()
		if _, err := s.Commit(t.Context(), rootCommit("ses_b")); !errors.Is(err, ErrPoisoned) {
			t.Errorf("commit: %v", err)
		}
		stop()
		if err := <-ran; !errors.Is(err, ErrPoisoned) {
			t.Errorf("the writer ends with %v", err)
		}
		if err := errors.Join(s.witness.close(), s.closePools()); err != nil {
			t.Error(err)
		}
	})
}

func TestPlans(t *testing.T) {
	s := open(t, t.TempDir())
	for query, index := range map[string]string{
		turnColumns + whereOpen:     "turns_open",
		inputColumns + wherePending: "inputs_pending",
		unfinished:                  "turns_open",
	} {
		t.Run("runtime/P16 queries for open rows use an index "+index, func(t *testing.T) {
			args := slices.Repeat([]any{1}, strings.Count(query, "?"))
			rows := must(s.pool.db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+expanded(query), args...))
			type step struct{ text string }
			plan := must(collect(rows, func(rows *sql.Rows, p *step) error {
				var id, parent, unused int
				return rows.Scan(&id, &parent, &unused, &p.text)
			}))
			if !slices.ContainsFunc(plan, func(p step) bool { return strings.Contains(p.text, "INDEX "+index) }) {
				t.Errorf("plan %v", plan)
			}
		})
	}
}
