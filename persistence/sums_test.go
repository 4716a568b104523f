package persistence

import (
	"errors"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

func TestDamagedRows(t *testing.T) {
	fill := func(t *testing.T) string {
		s, stop := start(t, quiet(t.TempDir()))
		for _, id := range []protocol.SessionID{"ses_a", "ses_b"} {
			commit(t, s, rootCommit(id))
			for i := range 3 {
				commit(t, s, turnLike(id, i))
			}
		}
		stop()
		return s.Dir()
	}
	whole := func(s *Store, id protocol.SessionID) error {
		row, err := s.Session(t.Context(), id)
		if err != nil {
			return err
		}
		_, _, path := s.Path(t.Context(), Cursor{Branch: row.Branch, Generation: row.Head.Generation}, 100)
		_, events := s.Events(t.Context(), row.Key, 0, 100)
		_, more := s.Events(t.Context(), row.Key, 4, 100)
		_, turns := s.Turns(t.Context(), row.Key, 0, 100)
		_, receipt := s.Receipt(t.Context(), "trn_"+string(id)+"1", []byte("h"))
		_, state := s.Components(t.Context(), row.Key, "")
		return errors.Join(path, events, more, turns, receipt, state)
	}
	for damage, want := range map[string]string{
		"UPDATE nodes SET turn_id = 'x' WHERE node_id = 'trn_ses_a1a'":                                            "session ses_a: row trn_ses_a1a of table nodes",
		"UPDATE events SET body = CAST(body || ' ' AS BLOB) WHERE place = (1 << 32) + 6":                          "session ses_a: row 6 of table events",
		"UPDATE sessions SET turn_index = 7 WHERE session_id = 'ses_a'":                                           "session ses_a: row 1 of table sessions",
		"UPDATE sessions SET config = x'7b' WHERE session_id = 'ses_a'":                                           "session ses_a: row 1 of table sessions",
		"UPDATE turns SET accepted_at = 1 WHERE turn_id = 'trn_ses_a1'":                                           "session ses_a: row trn_ses_a1 of table turns",
		"UPDATE receipts SET result = x'7b' WHERE key = 'trn_ses_a1'":                                             "row trn_ses_a1 of table receipts",
		"UPDATE components SET body = CAST(body || '1' AS BLOB) WHERE session = 1":                                "row state of table components",
		"UPDATE nodes SET sum = sum + 1 WHERE node_id = 'trn_ses_a1a'":                                            "session ses_a: row trn_ses_a1a of table nodes",
		"UPDATE branches SET parent_branch = branch, parent_generation = 0 WHERE branch = 1; PRAGMA user_version": "branch 1 continues from branch 1",
	} {
		t.Run("outside/13 a read finds "+damage, func(t *testing.T) {
			dir := fill(t)
			tamper(t, dir, damage)
			s := open(t, dir)
			if err := whole(s, "ses_a"); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), want) {
				t.Errorf("read: %v, want %s", err, want)
			}
			if err := whole(s, "ses_b"); err != nil {
				t.Errorf("the other session: %v", err)
			}
			commit(t, s, turnLike("ses_b", 9))
			if all, err := s.Sessions(t.Context(), SessionQuery{Limit: 9}); err != nil || len(all) != 2 {
				t.Errorf("%d sessions listed, %v", len(all), err)
			}
		})
	}
	for damage, c := range map[string]*Commit{
		"UPDATE receipts SET result = x'7b' WHERE key = 'trn_ses_a1'":   turnLike("ses_a", 1),
		"UPDATE sessions SET turn_index = 7 WHERE session_id = 'ses_a'": turnLike("ses_a", 8),
	} {
		t.Run("issue/29 a commit is rejected after "+damage, func(t *testing.T) {
			dir := fill(t)
			tamper(t, dir, damage)
			refuse(t, open(t, dir), c, ErrCorrupt)
		})
	}
	t.Run("outside/13 an update does not turn a damaged row into a valid one", func(t *testing.T) {
		dir := fill(t)
		tamper(t, dir, "UPDATE inputs SET stream = 'x'; UPDATE plugin_facts SET at = 77")
		s, stop := start(t, quiet(dir))
		commit(t, s, &Commit{Facts: []PluginFact{{"k", "k", []byte("1")}}})
		stop()
		tamper(t, dir, "UPDATE plugin_facts SET kind = 'l'")
		s = open(t, dir)
		commit(t, s, &Commit{Facts: []PluginFact{{"l", "k", []byte("2")}}})
		report, err := s.Verify(t.Context(), func(int, int) {})
		if err != nil || len(report.Problems) != 1 || !strings.Contains(report.Problems[0], "row kind l, key k of table plugin_facts") {
			t.Errorf("found %q, %v", report.Problems, err)
		}
	})
}

func TestSummed(t *testing.T) {
	for query, want := range map[string]string{
		"INSERT INTO pins (session, node_id) VALUES (?, ?)":       "sets 2 columns of pins, which has 5",
		"INSERT INTO pins VALUES (?, ?, ?, ?, ?, ?)":              "no list of columns",
		"UPDATE pins SET (at, reason) = (?, ?) WHERE session = ?": "does not set one column",
		"UPDATE pins SET at=? WHERE session = ?":                  "does not set one column",
	} {
		t.Run("outside/13 a statement with a wrong checksum is rejected: "+query, func(t *testing.T) {
			if _, err := summed(query); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
		})
	}
	s := open(t, t.TempDir())
	for _, call := range []string{
		"row_sum()", "row_sum(1)", "row_sum(1, 2)", "row_sum('pins(at)')", "row_sum('pins(at)', 1, 2)",
		"row_resum()", "row_resum('pins(at)')", "row_resum('pins(at)', 'x', 1, 2)", "row_resum('pins(at)', 1, 1)", "row_resum(1, 1, 1, 1)",
	} {
		t.Run("issue/29 an invalid call of a checksum function fails: "+call, func(t *testing.T) {
			if err := s.pool.db.QueryRowContext(t.Context(), "SELECT "+call).Scan(new(any)); err == nil {
				t.Error("it has a result")
			}
		})
	}
	for query, want := range map[string]string{
		"DELETE FROM pins WHERE session = ?":                                                                     "DELETE FROM pins WHERE session = ?",
		"INSERT INTO events (place) VALUES (?)":                                                                  "INSERT INTO events (place) VALUES (?)",
		"UPDATE pins SET at = (SELECT max(at) FROM pins WHERE at < ?) WHERE session = ?":                         "UPDATE pins SET at = (SELECT max(at) FROM pins WHERE at < ?1), sum = row_resum('pins(at)', pins.sum, pins.at, (SELECT max(at) FROM pins WHERE at < ?1))\nWHERE session = ?2",
		"UPDATE pins SET at = ? WHERE session = ?":                                                               "UPDATE pins SET at = ?1, sum = row_resum('pins(at)', pins.sum, pins.at, ?1)\nWHERE session = ?2",
		"INSERT INTO workspaces (workspace, root)\nVALUES ((SELECT 1 FROM x), ?)\nON CONFLICT (root) DO NOTHING": "INSERT INTO workspaces (workspace, root, sum)\nVALUES ((SELECT 1 FROM x), ?1, row_sum('workspaces(workspace,root)', (SELECT 1 FROM x), ?1))\nON CONFLICT (root) DO NOTHING",
	} {
		if got, err := summed(query); got != want || err != nil {
			t.Errorf("%s\ngave %s, %v\nwant %s", query, got, err, want)
		}
	}
}
