package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// damage is a list of changes to an intact store, each with the invariant that it breaks.
var damage = []struct{ invariant, sql string }{
	{"I2: session", "DELETE FROM events WHERE place = (SELECT max(place) - 3 FROM events)"},
	{"I2: session", "UPDATE events SET body = CAST(body || ' ' AS BLOB) WHERE place = (SELECT max(place) FROM events)"},
	{"I2: session", "UPDATE sessions SET seq = seq + 1"},
	{"I2: session", "UPDATE sessions SET chain = zeroblob(32)"},
	{"I3: turns that are open", "UPDATE turns SET state = 'running'"},
	{"I3: turns that ended without a report", "UPDATE turns SET report = NULL"},
	{"I3: reports of another state", "UPDATE turns SET state = 'failed'"},
	{"I3: effects", "INSERT INTO effects SELECT session, turn_id, 1, 0, 'call', 'started', x'', x'', 0 FROM turns LIMIT 1"},
	{"I3: inputs", "UPDATE inputs SET state = 'accepted'"},
	{"I3: decisions", "UPDATE decisions SET open = 1"},
	{"I3: nodes", "UPDATE turns SET state = 'queued'"},
	{"B1: ended tasks without", "UPDATE tasks SET body = CAST(json_remove(CAST(body AS TEXT), '$.outcome') AS BLOB)"},
	{"B1: outcomes of running tasks", "UPDATE tasks SET ended = 0"},
	{"B1: states that differ", "UPDATE tasks SET ended = 0"},
	{"B1: tasks in another session", "UPDATE tasks SET body = CAST(json_set(CAST(body AS TEXT), '$.sessionId', 'ses_lost') AS BLOB)"},
	{"B1: abandoned tasks", "UPDATE tasks SET body = CAST(json_set(CAST(body AS TEXT), '$.state', 'abandoned') AS BLOB)"},
	{"B1: task tsk_witness is failed", "UPDATE tasks SET body = CAST(json_set(CAST(body AS TEXT), '$.state', 'failed') AS BLOB)"},
	{"B1: task tsk_witness is completed in ses_0-0, attempt 2", "UPDATE tasks SET body = CAST(json_set(CAST(body AS TEXT), '$.attempt', 2) AS BLOB)"},
	{"B1: task tsk_witness: event 2", "DELETE FROM task_events WHERE ordinal = 2"},
	{"B1: task tsk_witness: its events", "DELETE FROM task_events"},
	{"B7: who started", "DELETE FROM task_viewers"},
	{"B7: who sees", "INSERT INTO task_viewers SELECT 'ses_other', task, 0 FROM tasks"},
	{"I7", "UPDATE blobs SET size = size + 1 WHERE body IS NULL"},
	{"I13: integrity_check", "PRAGMA ignore_check_constraints = 1; UPDATE turns SET state = 'odd'; PRAGMA ignore_check_constraints = 0"},
	{"I13: foreign_key_check", "UPDATE turns SET session = 1000000"},
}

// TestInvariantsCanFail checks that each check of the campaign detects the violation that it is meant
// for.
func TestInvariantsCanFail(t *testing.T) {
	c := newCampaign(t)
	d := c.serve()
	c.db = c.database("rw")
	w := newWitness(c.dial(""), "0-0", c.work)
	w.big = true
	w.work1(t)
	p := c.dial("")
	all, turns := c.replay(w.id()), c.turnsOf(w.id())
	if err := errors.Join(w.kept(p), w.repeated(all, turns)); err != nil {
		t.Fatal("an intact daemon:", err)
	}
	t.Run("events that clients received", func(t *testing.T) { lies(t, w, p, all, turns) })
	d.stop()
	if err := (&inspection{db: c.db, dir: c.dir}).all(); err != nil {
		t.Fatal("an intact store:", err)
	}
	for _, x := range damage {
		t.Run(x.sql, func(t *testing.T) { expect(t, c.damaged(x.sql), x.invariant) })
	}
	expect(t, c.undone("UPDATE tasks SET ended = 0", over), "B1: tasks that have not ended: [tsk_witness]")
	expect(t, c.undone("UPDATE tasks SET ended = 0", func(db database) error {
		all, err := column[string](db, "SELECT json_extract(CAST(body AS TEXT), '$.incarnation') FROM tasks")
		return errors.Join(err, ownerless(db, map[string]bool{all[0]: true}))
	}), "B2: task tsk_witness is running although its daemon has died")
	t.Run("a file whose contents do not match its name", func(t *testing.T) {
		files, err := filepath.Glob(filepath.Join(c.dir, "blobs", "*", "*"))
		if err != nil || len(files) == 0 {
			t.Fatalf("files: %v, %v", files, err)
		}
		c.write(files[0], "other bytes")
		expect(t, (&inspection{db: c.db, dir: c.dir}).all(), "I7")
		if err := os.Remove(files[0]); err != nil {
			t.Fatal(err)
		}
		expect(t, (&inspection{db: c.db, dir: c.dir}).all(), "I7")
	})
}

func expect(t *testing.T, err error, invariant string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), invariant) {
		t.Errorf("found %v, want %s", err, invariant)
	}
}

// damaged checks the store with a change, and reverts the change.
func (c *campaign) damaged(change string) error {
	return c.undone(change, func(db database) error { return (&inspection{db: db, dir: c.dir}).all() })
}

// undone runs a check with a change, and reverts the change.
func (c *campaign) undone(change string, look func(database) error) error {
	tx, err := c.db.BeginTx(c.t.Context(), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(c.t.Context(), change); err != nil {
		c.t.Fatalf("%s: %v", change, err)
	}
	return look(tx)
}

// work1 has the witness run one task, run one turn and answer one question.
func (w *witness) work1(t *testing.T) {
	w.person = true
	r, err := w.create(w.peer)
	if err != nil {
		t.Fatal(err)
	}
	w.created = &r
	spec := protocol.TaskSpec{Kind: protocol.TaskCommand, Recovery: protocol.RecoverOwner, Command: &protocol.TaskShell{Script: "true"}}
	ask[protocol.TaskResult](w.peer, "task/start", protocol.TaskStartParams{SessionID: w.id(), TaskID: "tsk_witness", Spec: spec})
	ask[protocol.TaskWaitResult](w.peer, "task/wait", protocol.TaskWaitParams{SessionID: w.id(), TaskIDs: []protocol.TaskID{"tsk_witness"}})
	c := w.claim()
	w.claims = append(w.claims, c)
	started := ask[protocol.TurnStartResult](w.peer, "turn/start", c.params)
	c.acked = &started
	if !w.allow(started.TurnID) {
		t.Fatal("the question was not answered")
	}
	w.completed(started.TurnID)
	w.told = w.peer.log(w.id())
}

// lies gives witnesses false memories.
func lies(t *testing.T, w *witness, p *peer, all []told, turns []protocol.TurnID) {
	saw := func(change func(*told)) error {
		liar := &witness{peer: p, name: w.name, told: slices.Clone(w.told)}
		change(&liar.told[len(liar.told)-1])
		return liar.repeated(all, turns)
	}
	expect(t, saw(func(e *told) { e.raw += " " }), "I9")
	expect(t, saw(func(e *told) { e.Seq += 5 }), "I9")
	expect(t, w.repeated(slices.Delete(slices.Clone(all), 1, 2), turns), "I2")
	expect(t, w.repeated(append(slices.Clone(all), all[len(all)-1]), turns), "I3")
	expect(t, w.repeated(all, append(turns, "trn_lost")), "I3")

	expect(t, twice([]string{"a", "b", "a"}), "I4")

	other, never := *w.claims[0].acked, *w.claims[0]
	other.TurnID = "trn_lost"
	expect(t, (&claim{w.claims[0].params, &other}).kept(p), "I8")
	never.params.Input = text("other content")
	expect(t, never.kept(p), "I8")
	made := *w.created
	made.Seq++
	expect(t, (&witness{peer: p, name: w.name, cwd: w.cwd, person: true, created: &made}).kept(p), "I8")
	answer := w.answers[0]
	answer.Answer.By = "cli_other"
	expect(t, answer.kept(p), "I1")
	expect(t, w.ended(p, &claim{acked: &protocol.TurnStartResult{TurnID: "trn_lost"}}), "I1")
	expect(t, (&witness{name: "lost"}).oneMore(p), "ses_lost") // I14
}
