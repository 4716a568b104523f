package persistence

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"

	"lashd/rpc/protocol"
)

// StoredTurn is a turn's row with its session. Order grows in the order of acceptance.
type StoredTurn struct {
	Turn
	Session protocol.SessionID
	Order   int64 // of acceptance
}

// turnColumns is the start of every query for turns; scanTurn reads its columns.
const turnColumns = `
SELECT t.turn, t.turn_id, s.session_id, t.state, t.incarnation, t.cancel, t.report, t.accepted_at, t.started_at, intact(turns t)
FROM turns t JOIN sessions s USING (session) `

// scanTurn scans a row of turnColumns and verifies its checksum.
func scanTurn(rows *sql.Rows, t *StoredTurn) error {
	var cancel, report []byte
	var intact bool
	err := rows.Scan(&t.Order, &t.ID, &t.Session, &t.State, &t.Incarnation, &cancel, &report, &t.AcceptedMs, &t.StartedMs, &intact)
	if err == nil {
		err = rowIntact(intact, "turns", t.ID, t.Session)
	}
	if err == nil && cancel != nil {
		err = decode(cancel, &t.Cancel, "cancel evidence")
	}
	if err == nil && report != nil {
		err = decode(report, &t.Report, "turn report")
	}
	return err
}

// Turn reads one turn of any session, or fails with ErrNotFound.
func (r *Reader) Turn(ctx context.Context, id protocol.TurnID) (StoredTurn, error) {
	found, err := list(ctx, r.pool, scanTurn, turnColumns+"WHERE t.turn_id = ?", id)
	if err != nil {
		return StoredTurn{}, err
	}
	if len(found) == 0 {
		return StoredTurn{}, &NotFoundError{What: "turn", ID: string(id)}
	}
	return found[0], nil
}

// Turns reads a page of a session's turns, newest first. before is the Order of the last turn of
// the previous page, or 0.
func (r *Reader) Turns(ctx context.Context, session int64, before int64, limit int) ([]StoredTurn, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	return list(ctx, r.pool, scanTurn, turnColumns+"WHERE t.session = ? AND t.turn < ? ORDER BY t.turn DESC LIMIT ?", session, before, limit)
}

// OpenTurns reads the turns of a session that have not ended, in order of acceptance.
func (r *Reader) OpenTurns(ctx context.Context, session int64) ([]StoredTurn, error) {
	return list(ctx, r.pool, scanTurn, turnColumns+whereOpen, session)
}

// whereOpen repeats the condition of the index turns_open, word for word. SQLite would not use the
// index otherwise.
const whereOpen = "WHERE t.session = ? AND (t.state = 'queued' OR t.state = 'running' OR t.state = 'waiting') ORDER BY t.turn"

// unfinished repeats the condition of turns_open as well.
const unfinished = `
SELECT s.session_id
FROM turns t JOIN sessions s USING (session)
WHERE t.state = 'queued' OR t.state = 'running' OR t.state = 'waiting'
GROUP BY s.session
ORDER BY min(t.turn)`

// Unfinished lists the sessions with an open turn, oldest turn first. A restart continues them.
func (r *Reader) Unfinished(ctx context.Context) ([]protocol.SessionID, error) {
	return list(ctx, r.pool, func(rows *sql.Rows, id *protocol.SessionID) error { return rows.Scan(id) }, unfinished)
}

// inputColumns is the start of every query for inputs; scanInput reads its columns.
const inputColumns = `
SELECT input_id, turn_id, state, boundary, source, refused, body, plugin_inputs, at, intact(inputs inputs)
FROM inputs `

// scanInput scans a row of inputColumns and verifies its checksum.
func scanInput(rows *sql.Rows, in *protocol.QueuedInput) error {
	var body, forPlugins []byte
	var intact bool
	if err := rows.Scan(&in.ID, &in.TurnID, &in.State, &in.Boundary, &in.Source, &in.Refused, &body, &forPlugins, &in.AtMs, &intact); err != nil {
		return err
	}
	if err := rowIntact(intact, "inputs", in.ID, ""); err != nil {
		return err
	}
	if forPlugins != nil {
		if err := decode(forPlugins, &in.PluginInputs, "plugin inputs of "+string(in.ID)); err != nil {
			return err
		}
	}
	b := inputBody{}
	err := decode(body, &b, "input "+string(in.ID))
	in.Input, in.TurnOptions, in.Switches, in.Wake, in.Ceiling = b.Input, b.TurnOptions, b.Switches, b.Wake, b.Ceiling
	in.Effort, in.Iterations, in.Schema = b.Effort, b.Iterations, b.Schema
	return err
}

// PendingInputs reads the inputs of a session that no committed turn has used, oldest first.
func (r *Reader) PendingInputs(ctx context.Context, session int64) ([]protocol.QueuedInput, error) {
	return list(ctx, r.pool, scanInput, inputColumns+wherePending, session)
}

// wherePending names the index inputs_pending, whose condition it repeats. SQLite would otherwise
// read all inputs of the session.
const wherePending = `INDEXED BY inputs_pending
WHERE session = ? AND (state = 'pendingActive' OR state = 'deferredNextTurn' OR state = 'queued' OR state = 'accepted')
ORDER BY input`

// Inputs reads the newest inputs of a session, used and cancelled ones included, oldest first.
func (r *Reader) Inputs(ctx context.Context, session int64, limit int) ([]protocol.QueuedInput, error) {
	newest, err := list(ctx, r.pool, scanInput, inputColumns+"WHERE session = ? ORDER BY input DESC LIMIT ?", session, limit)
	slices.Reverse(newest)
	return newest, err
}

// Effects reads the journal of a turn in the order in which it is replayed.
func (r *Reader) Effects(ctx context.Context, turn protocol.TurnID) ([]Effect, error) {
	scan := func(rows *sql.Rows, e *Effect) error {
		var intact bool
		if err := rows.Scan(&e.Turn, &e.ID, &e.Ordinal, &e.Kind, &e.Finished, &e.Hash, &e.Body, &intact); err != nil {
			return err
		}
		return rowIntact(intact, "effects", fmt.Sprintf("%d of turn %s", e.ID, e.Turn), "")
	}
	return list(ctx, r.pool, scan, `
SELECT turn_id, effect, ordinal, kind, state = 'finished', hash, body, intact(effects e)
FROM effects e
WHERE turn_id = ?
ORDER BY effect, ordinal`, turn)
}

// Ancestors lists the ancestors of a session, nearest first: its parent, its parent's parent, and so
// on.
func (r *Reader) Ancestors(ctx context.Context, session int64) ([]protocol.SessionID, error) {
	scan := func(rows *sql.Rows, id *protocol.SessionID) error { return rows.Scan(id) }
	return list(ctx, r.pool, scan, `
WITH RECURSIVE above (session, parent, session_id, distance) AS (
  SELECT session, parent, session_id, 0 FROM sessions WHERE session = ?
  UNION
  SELECT s.session, s.parent, s.session_id, a.distance + 1 FROM sessions s JOIN above a ON s.session = a.parent)
SELECT session_id
FROM above
WHERE distance > 0
ORDER BY distance`, session)
}

const (
	// A model server can report any number. Each is limited to 10^12 tokens, so that a wrong one cannot overflow the sum.
	least, most = `sum(min(max(`, `, 0), 1000000000000))`
	sumsOfUsage = `model, ` + least + `input` + most + `, ` + least + `output` + most + `, ` + least + `cache_read` + most + `, ` +
		least + `cache_write` + most + `, ` + least + `reasoning` + most + `, sum(cost), sum(calls), sum(unknown)`
	sumUsageOfAll = `
SELECT source, ` + sumsOfUsage + `
FROM usage
GROUP BY source, model
ORDER BY source, model`
	// Usage of a descendant counts under the label of the direct child through which it descends.
	sumUsageOfOne = `
WITH RECURSIVE family (session, label) AS (
  SELECT ?, NULL
  UNION ALL
  SELECT s.session, coalesce(f.label, s.usage_label) FROM sessions s JOIN family f ON s.parent = f.session)
SELECT coalesce(label, source) AS shown, ` + sumsOfUsage + `
FROM family JOIN usage USING (session)
GROUP BY shown, model
ORDER BY shown, model`
)

// Usage sums the ledger of a session by source and model, including its descendants. With session 0
// it sums all ledgers and counts each call once.
func (r *Reader) Usage(ctx context.Context, session int64) ([]protocol.UsageRow, error) {
	scan := func(rows *sql.Rows, r *protocol.UsageRow) error {
		u := &r.Usage
		return rows.Scan(&r.Source, &r.Model, &u.Input, &u.Output, &u.CacheRead, &u.CacheWrite, &u.Reasoning, &u.Cost, &r.Calls, &r.Unknown)
	}
	if session == 0 {
		return list(ctx, r.pool, scan, sumUsageOfAll)
	}
	return list(ctx, r.pool, scan, sumUsageOfOne, session)
}

// selectComponents reads a component with its body, from the row or from a blob in the database.
// The last two columns say that the body is in a file and that the row is intact. selectWhole
// leaves out parts; selectParts reads only the parts of one component.
const (
	selectComponents = `
SELECT c.name, c.digest, iif(c.body IS NULL, b.body, c.body), c.body IS NULL AND b.body IS NULL, intact(components c)
FROM components c LEFT JOIN blobs b USING (digest)
WHERE c.session = ? AND c.snapshot = ?`
	selectWhole = selectComponents + " AND instr(c.name, '/') = 0"
	selectParts = selectComponents + " AND c.name BETWEEN ? || '/' AND ? || '/~'"
	selectOne   = selectComponents + " AND c.name = ?"

	selectPartNames = "SELECT name FROM components WHERE session = ? AND snapshot = '' AND name BETWEEN ? || '/' AND ? || '/~' ORDER BY name"
)

// Components reads the components of a session, or those that the named snapshot holds. It leaves
// out parts (names with a slash).
func (r *Reader) Components(ctx context.Context, session int64, snapshot string) (map[string][]byte, error) {
	return r.components(ctx, selectWhole, session, snapshot)
}

// Component reads one current component of a session; nil: it does not exist.
func (r *Reader) Component(ctx context.Context, session int64, name string) ([]byte, error) {
	all, err := r.components(ctx, selectOne, session, "", name)
	return all[name], err
}

// Parts reads the parts of a component. The keys are their full names (name/part).
func (r *Reader) Parts(ctx context.Context, session int64, snapshot, name string) (map[string][]byte, error) {
	return r.components(ctx, selectParts, session, snapshot, name, name)
}

// PartNames reads the full names of the current parts of a component, in order.
func (r *Reader) PartNames(ctx context.Context, session int64, name string) ([]string, error) {
	scan := func(rows *sql.Rows, part *string) error { return rows.Scan(part) }
	return list(ctx, r.pool, scan, selectPartNames, session, name, name)
}

// components reads the bodies of components from their rows or blobs, and verifies their digests.
func (r *Reader) components(ctx context.Context, query string, args ...any) (map[string][]byte, error) {
	type row struct {
		Component
		digest protocol.Digest
		inFile bool
	}
	scan := func(rows *sql.Rows, c *row) error {
		var intact bool
		if err := rows.Scan(&c.Name, &c.digest, &c.Body, &c.inFile, &intact); err != nil {
			return err
		}
		return rowIntact(intact && (c.inFile || protocol.DigestOf(c.Body) == c.digest), "components", c.Name, "")
	}
	all, err := list(ctx, r.pool, scan, query, args...)
	if err != nil {
		return nil, err
	}
	m := make(map[string][]byte, len(all))
	for _, c := range all {
		if c.inFile { // the content is in a file, shared with an artifact, or it is lost
			if c.Body, err = r.Blob(ctx, c.digest); err != nil {
				return nil, fmt.Errorf("component %s has no body: %w: %w", c.Name, ErrCorrupt, err)
			}
		}
		m[c.Name] = nonNil(c.Body)
	}
	return m, nil
}

// Approvals lists the approval rules of a workspace, or of all workspaces if none is given.
func (r *Reader) Approvals(ctx context.Context, cwd ...string) ([]Approval, error) {
	query, args := "SELECT cwd, tool, subject, by FROM approvals ORDER BY cwd, at, tool, subject", []any{}
	if len(cwd) > 0 {
		query, args = "SELECT cwd, tool, subject, by FROM approvals WHERE cwd = ? ORDER BY at, tool, subject", []any{cwd[0]}
	}
	return list(ctx, r.pool, func(rows *sql.Rows, a *Approval) error { return rows.Scan(&a.Cwd, &a.Tool, &a.Subject, &a.By) }, query, args...)
}

// PluginFacts lists all plugin facts, by kind and key.
func (r *Reader) PluginFacts(ctx context.Context) ([]PluginFact, error) {
	return list(ctx, r.pool, func(rows *sql.Rows, f *PluginFact) error { return rows.Scan(&f.Kind, &f.Key, &f.Body) },
		"SELECT kind, key, body FROM plugin_facts ORDER BY kind, key")
}

// Input reads one input of a session in any state, or fails with ErrNotFound.
func (r *Reader) Input(ctx context.Context, session int64, id protocol.InputID) (protocol.QueuedInput, error) {
	return r.input(ctx, "WHERE session = ? AND input_id = ?", session, string(id))
}

// SourceInput reads the input of a session with this source, or fails with ErrNotFound. A source is
// unique within its session, so a repeated wake finds the first one.
func (r *Reader) SourceInput(ctx context.Context, session int64, source string) (protocol.QueuedInput, error) {
	return r.input(ctx, "WHERE session = ? AND source = ? AND source <> ''", session, source)
}

// NewestOrdinal returns the highest ordinal of a session's wakes from a stream. 0: there is none.
func (r *Reader) NewestOrdinal(ctx context.Context, session int64, stream string) (int64, error) {
	found, err := list(ctx, r.pool, func(rows *sql.Rows, n *int64) error { return rows.Scan(n) },
		"SELECT ordinal FROM inputs WHERE session = ? AND stream = ? AND stream <> '' ORDER BY ordinal DESC LIMIT 1", session, stream)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	return found[0], nil
}

// input reads the one input that the condition which selects.
func (r *Reader) input(ctx context.Context, which string, session int64, id string) (protocol.QueuedInput, error) {
	found, err := list(ctx, r.pool, scanInput, inputColumns+which, session, id)
	if err != nil {
		return protocol.QueuedInput{}, err
	}
	if len(found) == 0 {
		return protocol.QueuedInput{}, &NotFoundError{What: "input", ID: id}
	}
	return found[0], nil
}
