package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"lashd/rpc/protocol"
)

// KeptOccurrences is the number of newest occurrences that are kept of each type. A repetition of
// an older occurrence may not be recognized.
const KeptOccurrences = 10_000

// TriggerChange is the part of a commit about triggers.
type TriggerChange struct {
	Put      []Trigger // created or replaced
	Delete   []protocol.TriggerID
	Occurred []Occurred // new occurrences; one that is stored already fails with ErrExists
	Settled  []Settled  // outcomes of reserved deliveries; one that is not reserved fails with ErrExists
}

// Trigger is a trigger's row.
type Trigger struct {
	protocol.Trigger
	Row      int64 // order of creation
	TickedMs int64 // newest time of its schedule that was handled, in milliseconds since 1970
}

// Occurred is an occurrence with its deliveries. Actions is parallel to Deliveries and says what
// each will do, even if its trigger changes or is deleted first.
type Occurred struct {
	protocol.Occurrence
	Actions []protocol.TriggerAction
}

// Settled is the outcome of a delivery.
type Settled struct {
	Occurrence protocol.OccurrenceID
	protocol.TriggerDelivery
}

// Reserved is a delivery that has no outcome yet.
type Reserved struct {
	Occurrence protocol.Occurrence // without its deliveries
	Delivery   protocol.TriggerDelivery
	Action     protocol.TriggerAction
}

// triggerBodies holds the JSON of a TriggerChange's parts, parallel to its slices.
type triggerBodies struct {
	put, occurred, settled [][]byte
	reserved, actions      [][][]byte // by occurrence
}

// triggers encodes the trigger part of a commit. Deliveries get rows of their own, so they are left
// out of their occurrence.
func (e *encoder) triggers(c TriggerChange) (b triggerBodies) {
	for _, t := range c.Put {
		b.put = append(b.put, e.json(t.Trigger))
	}
	for _, s := range c.Settled {
		b.settled = append(b.settled, e.json(s.TriggerDelivery))
	}
	for _, o := range c.Occurred {
		var reserved, actions [][]byte
		for i, d := range o.Deliveries {
			reserved, actions = append(reserved, e.json(d)), append(actions, e.json(o.Actions[i]))
		}
		o.Deliveries = nil // they have rows of their own
		b.occurred = append(b.occurred, e.json(o.Occurrence))
		b.reserved, b.actions = append(b.reserved, reserved), append(b.actions, actions)
	}
	return b
}

// applyTriggers stores the trigger changes of a commit.
func applyTriggers(ctx context.Context, t *tx, c *change) error {
	for i, p := range c.Triggers.Put {
		if err := putTrigger(ctx, t, p, c.triggers.put[i]); err != nil {
			return fmt.Errorf("trigger %s: %w", p.ID, err)
		}
	}
	for _, id := range c.Triggers.Delete {
		if err := t.exec(ctx, "DELETE FROM triggers WHERE trigger_id = ?", id); err != nil {
			return err
		}
	}
	for i, o := range c.Triggers.Occurred {
		if err := insertOccurred(ctx, t, o, i, c.triggers); err != nil {
			return fmt.Errorf("occurrence %s: %w", o.ID, err)
		}
	}
	for i, s := range c.Triggers.Settled {
		err := t.changed(ctx, fmt.Errorf("its outcome: %w", ErrExists), settleDelivery, s.State, c.triggers.settled[i], s.Occurrence, s.TriggerID)
		if err != nil {
			return fmt.Errorf("delivery of %s to %s: %w", s.Occurrence, s.TriggerID, err)
		}
	}
	return nil
}

// Statements for triggers. settleDelivery changes only a reserved delivery, so the first outcome
// counts.
const (
	upsertTrigger = `
INSERT INTO triggers (trigger, trigger_id, session, key, ticked_at, body)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (trigger_id) DO UPDATE SET ticked_at = excluded.ticked_at, body = excluded.body`
	insertOccurrence = `
INSERT INTO occurrences (occurrence, occurrence_id, type, body)
VALUES (` + nextOccurrence + `, ?, ?, ?)`
	insertDelivery = `
INSERT INTO deliveries (occurrence, trigger_id, state, body, action)
VALUES (?, ?, ?, ?, ?)`
	settleDelivery = `
UPDATE deliveries
SET state = ?, body = ?, action = NULL
WHERE occurrence = (SELECT occurrence FROM occurrences WHERE occurrence_id = ?) AND trigger_id = ? AND state = 'reserved'`
	// SQLite counts an OFFSET row by row, so this runs only once in trimEvery occurrences. Reserved deliveries keep theirs.
	trimOccurrences = `
DELETE FROM occurrences
WHERE type = ?1
  AND occurrence < (SELECT occurrence FROM occurrences WHERE type = ?1 ORDER BY occurrence DESC LIMIT 1 OFFSET ?2)
  AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.occurrence = occurrences.occurrence AND state = 'reserved')`
	trimEvery = 100
)

// putTrigger creates or updates a trigger. It fails if the trigger's session is deleted, or if
// another trigger of the session has the same key.
func putTrigger(ctx context.Context, t *tx, p Trigger, body []byte) error {
	var session any
	if p.SessionID != "" {
		var key int64
		err := t.row(ctx, "SELECT session FROM sessions WHERE session_id = ?", []any{p.SessionID}, &key)
		if errors.Is(err, sql.ErrNoRows) {
			return missingSession(ctx, t, p.SessionID)
		}
		if err != nil {
			return err
		}
		session = key
	}
	return t.exec(ctx, upsertTrigger, p.Row, p.ID, session, p.Key, p.TickedMs, body)
}

// insertOccurred stores an occurrence with its deliveries, and now and then removes old ones of its
// type.
func insertOccurred(ctx context.Context, t *tx, o Occurred, at int, b triggerBodies) error {
	res, err := t.run(ctx, insertOccurrence, o.ID, o.Type, b.occurred[at])
	if err != nil {
		return err
	}
	row, err := res.LastInsertId()
	if err != nil {
		return err
	}
	for i, d := range o.Deliveries {
		if err := t.exec(ctx, insertDelivery, row, d.TriggerID, d.State, b.reserved[at][i], b.actions[at][i]); err != nil {
			return err
		}
	}
	if row%trimEvery != 0 {
		return nil
	}
	return t.exec(ctx, trimOccurrences, o.Type, KeptOccurrences-1)
}

// Triggers reads all triggers, oldest first.
func (r *Reader) Triggers(ctx context.Context) ([]Trigger, error) {
	return list(ctx, r.pool, func(rows *sql.Rows, t *Trigger) error {
		var body []byte
		if err := rows.Scan(&t.Row, &t.TickedMs, &body); err != nil {
			return err
		}
		return decode(body, &t.Trigger, "trigger")
	}, "SELECT trigger, ticked_at, body FROM triggers ORDER BY trigger")
}

// selectReserved uses the partial index deliveries_reserved.
const selectReserved = `
SELECT o.body, d.body, d.action
FROM deliveries d JOIN occurrences o USING (occurrence)
WHERE d.state = 'reserved'
ORDER BY occurrence, trigger_id`

// ReservedDeliveries reads all deliveries without an outcome, oldest occurrence first.
func (r *Reader) ReservedDeliveries(ctx context.Context) ([]Reserved, error) {
	return list(ctx, r.pool, func(rows *sql.Rows, r *Reserved) error {
		var occurrence, body, action []byte
		if err := rows.Scan(&occurrence, &body, &action); err != nil {
			return err
		}
		return errors.Join(decode(occurrence, &r.Occurrence, "occurrence"), decode(body, &r.Delivery, "delivery"), decode(action, &r.Action, "action"))
	}, selectReserved)
}

// StoredOccurrence is an occurrence with its row number, which gives the order of all occurrences.
type StoredOccurrence struct {
	protocol.Occurrence
	Row int64
}

// occurrenceColumns is the start of every query for occurrences; scanOccurrence reads its columns.
const occurrenceColumns = `
SELECT o.occurrence, o.body, (SELECT json_group_array(json(d.body) ORDER BY trigger_id) FROM deliveries d WHERE d.occurrence = o.occurrence)
FROM occurrences o `

// scanOccurrence scans a row of occurrenceColumns. Deliveries are one JSON array.
func scanOccurrence(rows *sql.Rows, o *StoredOccurrence) error {
	var body, deliveries []byte
	if err := rows.Scan(&o.Row, &body, &deliveries); err != nil {
		return err
	}
	if err := decode(body, &o.Occurrence, "occurrence"); err != nil {
		return err
	}
	return decode(deliveries, &o.Deliveries, "deliveries")
}

// Occurrence reads one occurrence with the current state of its deliveries, or fails with
// ErrNotFound.
func (r *Reader) Occurrence(ctx context.Context, id protocol.OccurrenceID) (protocol.Occurrence, error) {
	found, err := list(ctx, r.pool, scanOccurrence, occurrenceColumns+"WHERE occurrence_id = ?", id)
	if err != nil {
		return protocol.Occurrence{}, err
	}
	if len(found) == 0 {
		return protocol.Occurrence{}, &NotFoundError{What: "occurrence", ID: string(id)}
	}
	return found[0].Occurrence, nil
}

// OccurrenceQuery selects occurrences, newest first.
type OccurrenceQuery struct {
	Trigger protocol.TriggerID // only those with a delivery of this trigger; empty: all
	Type    string             // empty: any
	Before  int64              // row number of the last occurrence of the previous page; 0: from the newest
	Limit   int
}

// Occurrences reads a page of occurrences.
func (r *Reader) Occurrences(ctx context.Context, q OccurrenceQuery) ([]StoredOccurrence, error) {
	if q.Before == 0 {
		q.Before = 1<<63 - 1
	}
	where := "WHERE o.occurrence < ?2 AND (?3 = '' OR o.type = ?3) AND ?1 = '' ORDER BY o.occurrence DESC LIMIT ?4"
	if q.Trigger != "" {
		where = "JOIN deliveries w USING (occurrence) WHERE w.trigger_id = ?1 AND w.occurrence < ?2 AND (?3 = '' OR o.type = ?3) ORDER BY w.occurrence DESC LIMIT ?4"
	}
	return list(ctx, r.pool, scanOccurrence, occurrenceColumns+where, q.Trigger, q.Before, q.Type, q.Limit)
}
