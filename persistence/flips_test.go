package persistence

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// flips is how often each test of damage flips something at random; LASHD_LONG=1 flips more.
func flips() int {
	if os.Getenv("LASHD_LONG") != "" {
		return 1000
	}
	return 50
}

// everyTable fills a store so that each table has rows, most of them some that were changed after they were made.
func everyTable(t *testing.T) (dir string) {
	t.Helper()
	s, stop := start(t, quiet(t.TempDir()))
	everyChange(t, s, func(c *Commit) { commit(t, s, c) })
	stop()
	return s.Dir()
}

// everyChange makes commits that write to each table.
func everyChange(t *testing.T, s *Store, commit func(*Commit)) {
	t.Helper()
	root := rootCommit("ses_a")
	root.Create.First = []protocol.InputPart{{Text: "first"}}
	root.Create.Title = "a title"
	commit(root)
	child := rootCommit("ses_b")
	child.Create.Relation = protocol.Relation{Kind: protocol.RelationChild, Parent: "ses_a"}
	commit(child)
	title := "another title"
	for i := range 6 {
		c := turnLike("ses_a", i)
		c.Meta = &Meta{Title: &title}
		c.Config = &protocol.Config{}
		c.Inputs = []protocol.QueuedInput{{ID: protocol.InputID(fmt.Sprint("inp_", i)), State: protocol.InputQueued, Source: fmt.Sprint("src", i),
			Input: []protocol.InputPart{{Text: "text"}}, Wake: &protocol.QueuedWake{Stream: "s", Ordinal: int64(i)}, AtMs: 7}}
		c.Decisions = []protocol.Decision{{ID: protocol.DecisionID(fmt.Sprint("dec_", i)), TurnID: "trn_x"}}
		c.Effects = []Effect{{Turn: "trn_x", ID: uint64(i), Kind: "model", Hash: []byte("h"), Body: []byte(`{"b":1}`)}}
		c.Component = append(c.Component, Component{"large", bytes.Repeat([]byte{byte(i)}, 3000)})
		c.Pins = []Pin{{Node: protocol.NodeID(fmt.Sprint("trn_ses_a", i, "a")), Reason: "why"}}
		c.Blobs = []Blob{must(s.PrepareBlob(bytes.Repeat([]byte("x"), 10+i)))}
		commit(c)
	}
	commit(&Commit{Session: "ses_a", Save: "saved", Keep: []string{"state", "large"}, Blobs: []Blob{must(s.PrepareBlob(make([]byte, inlineBlob+1)))}})
	commit(&Commit{Session: "ses_a", Rewind: "trn_ses_a2b", Nodes: []protocol.Node{message("nod_after")}})
	commit(&Commit{Session: "ses_a", Effects: []Effect{{Turn: "trn_x", ID: 1, Kind: "model", Finished: true, Body: []byte(`{}`)}},
		Turns:  []Turn{{ID: "trn_open", State: protocol.TurnQueued, Incarnation: "a", Cancel: &protocol.CancelEvidence{}}},
		Inputs: []protocol.QueuedInput{{ID: "inp_1", State: protocol.InputCompleted, TurnID: "trn_open"}}})
	commit(&Commit{Session: "ses_a", Turns: []Turn{{ID: "trn_open", State: protocol.TurnFailed, Report: &protocol.TurnReport{}}}})
	commit(&Commit{Session: "ses_b", Usage: []Usage{{Operation: "o", Row: protocol.UsageRow{Source: "s", Model: "m"}}}, Receipt: &Receipt{Key: "b", Hash: []byte("h"), Result: []byte("{}")}})
	commit(&Commit{Session: "ses_b", Delete: true})
	commit(&Commit{Approve: []Approval{{Cwd: "/w", Tool: "shell", Subject: "subject", By: "me"}}, Facts: []PluginFact{{"good", "k", []byte("1")}}})
	commit(&Commit{Session: "ses_a", Tasks: []TaskChange{counted("ses_a", "tsk_1", 1)}})
	commit(&Commit{Session: "ses_a", Tasks: []TaskChange{counted("ses_a", "tsk_1", 2)}})
	commit(&Commit{Triggers: TriggerChange{Put: []Trigger{{Row: 1, TickedMs: 5, Trigger: protocol.Trigger{ID: "trg_a", Key: "k", SessionID: "ses_a"}}}}})
	commit(&Commit{Triggers: TriggerChange{Put: []Trigger{{Row: 1, TickedMs: 9, Trigger: protocol.Trigger{ID: "trg_a", Key: "k", SessionID: "ses_a"}}}}})
	commit(occur(happened("1", "trg_a", "trg_b")))
	commit(settled("1", "trg_a", protocol.DeliveryDelivered))
	commit(looked("one"))
	commit(pointed("fpt_1", 1, "one", "two"))
}

// probe reads a database that no other connection has open.
func probe(t *testing.T, dir, mode string) *Store {
	t.Helper()
	db := must(openCopy(filepath.Join(dir, "lashd.db"), mode))
	db.SetMaxOpenConns(1)
	return &Store{Reader: newReader(&readPool{db: db}, newBlobFiles(filepath.Join(dir, blobsName)))}
}

// problems returns the findings of a verification; errors about damage count as findings.
func (s *Store) problems(t *testing.T) []string {
	t.Helper()
	report, err := s.Verify(t.Context(), func(int, int) {})
	if err != nil && errors.Is(classify(err), ErrCorrupt) {
		return append(report.Problems, err.Error())
	}
	if err != nil {
		return append(report.Problems, "failed: "+err.Error())
	}
	return report.Problems
}

func TestFlipsOfColumns(t *testing.T) {
	t.Parallel()
	t.Run("outside/13 a change of any column of any row is found", func(t *testing.T) {
		dir := everyTable(t)
		s := probe(t, dir, "rw")
		defer s.pool.close()
		if found := s.problems(t); len(found) > 0 {
			t.Fatalf("an intact store: %q", found)
		}
		exec := func(query string, args ...any) error {
			_, err := s.pool.db.ExecContext(t.Context(), query, args...)
			return err
		}
		if err := errors.Join(exec("PRAGMA foreign_keys = 0"), exec("PRAGMA ignore_check_constraints = 1")); err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(13, 1))
		columns := storedColumns(t, s.pool.db)
		changed := map[string]int{}
		for i := range len(columns) + flips() { // each column, then any
			c := columns[i%len(columns)]
			if i >= len(columns) {
				c = columns[random.IntN(len(columns))]
			}
			if err := exec("BEGIN"); err != nil {
				t.Fatal(err)
			}
			what, err := c.change(t.Context(), s.pool.db, random)
			if err == nil {
				changed[c.table]++
				if found := s.problems(t); len(found) == 0 {
					t.Errorf("%s was not found", what)
				}
			} else if !errors.Is(classify(err), ErrExists) {
				t.Fatalf("%s: %v", what, err)
			}
			if err := exec("ROLLBACK"); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("changes by table: %v", changed)
	})
}

func TestFlipsOfBytes(t *testing.T) {
	t.Parallel()
	t.Run("outside/13 a flipped bit anywhere in the bytes of a row is found", func(t *testing.T) {
		dir := everyTable(t)
		file := filepath.Join(dir, "lashd.db")
		whole := must(os.ReadFile(file))
		before := probe(t, dir, "ro")
		want := dump(t, before.pool.db)
		if found := before.problems(t); len(found) > 0 {
			t.Fatalf("an intact store: %q", found)
		}
		rows := rowBytes(t, whole, before.pool.db)
		before.pool.close()
		random := rand.New(rand.NewPCG(13, 2))
		harmless := 0
		n := 2 * flips()
		for range n {
			at := rows[random.IntN(len(rows))]
			damaged := slices.Clone(whole)
			damaged[at] ^= 1 << random.IntN(8)
			if err := os.WriteFile(file, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			s := probe(t, dir, "ro")
			if found := s.problems(t); len(found) == 0 {
				if got := dump(t, s.pool.db); got == want {
					harmless++
				} else {
					t.Errorf("the flip at %d was not found: %#x became %#x", at, whole[at], damaged[at])
				}
			}
			s.pool.close()
		}
		t.Logf("%d flips among %d bytes of rows; %d changed nothing that is read", n, len(rows), harmless)
		if harmless > n/50 {
			t.Errorf("%d flips changed nothing that is read: the test misses the rows", harmless)
		}
	})
}

// storedColumn is a column of a table.
type storedColumn struct{ table, name, kind string }

// storedColumns are all columns of all tables. Each table must have rows.
func storedColumns(t *testing.T, db *sql.DB) []storedColumn {
	t.Helper()
	rows := must(db.QueryContext(t.Context(), `
SELECT m.name, c.name, c.type
FROM sqlite_schema m, pragma_table_info(m.name) c
WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'`))
	all := must(collect(rows, func(rows *sql.Rows, c *storedColumn) error { return rows.Scan(&c.table, &c.name, &c.kind) }))
	for _, c := range all {
		var n int
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+c.table).Scan(&n); err != nil || n == 0 {
			t.Fatalf("table %s has %d rows, %v: fill it in everyTable", c.table, n, err)
		}
	}
	return all
}

// change flips a bit of the column in one row. A NULL becomes a value, and a value may become NULL.
func (c storedColumn) change(ctx context.Context, db *sql.DB, random *rand.Rand) (what string, err error) {
	key := strings.Join(primaryKeys()[c.table], ", ")
	if key == "" {
		return c.table, errors.New("no primary key")
	}
	n := 0
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM "+c.table).Scan(&n); err != nil {
		return "", err
	}
	row := fmt.Sprintf("WHERE (%s) = (SELECT %[1]s FROM %s ORDER BY %[1]s LIMIT 1 OFFSET %[3]d)", key, c.table, random.IntN(n))
	var old any
	if err := db.QueryRowContext(ctx, fmt.Sprintf("SELECT %s FROM %s %s", c.name, c.table, row)).Scan(&old); err != nil {
		return "", err
	}
	now := c.flipped(old, random)
	_, err = db.ExecContext(ctx, fmt.Sprintf("UPDATE %s SET %s = ? %s", c.table, c.name, row), now)
	return fmt.Sprintf("%s.%s from %.60v to %.60v", c.table, c.name, old, now), err
}

func (c storedColumn) flipped(old any, random *rand.Rand) any {
	switch v := old.(type) {
	case int64:
		return v ^ 1<<random.IntN(63)
	case string:
		return string(flipBit([]byte(v), random, 7))
	case []byte:
		return flipBit(v, random, 8)
	}
	return map[string]any{"INTEGER": int64(1), "TEXT": "x", "BLOB": []byte("x")}[c.kind]
}

func flipBit(data []byte, random *rand.Rand, bits int) []byte {
	if len(data) == 0 {
		return []byte("x")
	}
	data = slices.Clone(data)
	i := random.IntN(len(data))
	if data[i] ^= 1 << random.IntN(bits); data[i] == 0 && bits == 7 {
		data[i] = 1 // the driver ends a text at a NUL
	}
	return data
}

// dump is the content of all tables, as SQLite reads it.
func dump(t *testing.T, db *sql.DB) string {
	var b strings.Builder
	for _, table := range slices.Sorted(maps.Keys(primaryKeys())) {
		rows, err := db.QueryContext(t.Context(), "SELECT * FROM "+table+" ORDER BY "+strings.Join(primaryKeys()[table], ", "))
		if err != nil {
			return err.Error()
		}
		names := must(rows.Columns())
		for rows.Next() {
			row := make([]any, len(names))
			into := make([]any, len(names))
			for i := range row {
				into[i] = &row[i]
			}
			if err := rows.Scan(into...); err != nil {
				return err.Error()
			}
			fmt.Fprintf(&b, "%s %s\n", table, must(json.Marshal(row)))
		}
		if err := rows.Err(); err != nil {
			return err.Error()
		}
	}
	return b.String()
}
