package persistence

import (
	"context"
	"database/sql"
	"errors"

	"lashd/rpc/protocol"
)

// Decision reads one decision, open or answered, or fails with ErrNotFound.
func (r *Reader) Decision(ctx context.Context, id protocol.DecisionID) (protocol.Decision, error) {
	var body []byte
	var d protocol.Decision
	var intact bool
	if err := r.pool.row(ctx, "SELECT body, intact(decisions d) FROM decisions d WHERE decision_id = ?", []any{id}, &body, &intact); err != nil {
		if errors.Is(err, ErrNotFound) {
			err = &NotFoundError{What: "decision", ID: string(id)}
		}
		return d, err
	}
	return d, errors.Join(rowIntact(intact, "decisions", id, ""), decode(body, &d, "decision "+string(id)))
}

// OpenDecisions reads the open decisions of a session, or of all sessions if session is 0.
func (r *Reader) OpenDecisions(ctx context.Context, session int64) ([]protocol.Decision, error) {
	if session == 0 {
		return list(ctx, r.pool, scanDecision, "SELECT body FROM decisions WHERE open = 1 ORDER BY decision_id")
	}
	return list(ctx, r.pool, scanDecision, "SELECT body FROM decisions WHERE open = 1 AND session = ? ORDER BY decision_id", session)
}

// FamilyDecisions reads the open decisions of a session and of all its descendants. A client that
// attaches to a session also gets those of its subagents.
func (r *Reader) FamilyDecisions(ctx context.Context, session int64) ([]protocol.Decision, error) {
	return list(ctx, r.pool, scanDecision, `
WITH RECURSIVE family (session) AS (
  SELECT ?
  UNION
  SELECT s.session FROM sessions s JOIN family f ON s.parent = f.session)
SELECT body
FROM family CROSS JOIN decisions USING (session)
WHERE open = 1
ORDER BY decision_id`, session)
}

// TurnDecisions reads all decisions of a turn, open and answered. After a restart the turn finds the
// questions that an earlier run of the daemon has asked.
func (r *Reader) TurnDecisions(ctx context.Context, turn protocol.TurnID) ([]protocol.Decision, error) {
	return list(ctx, r.pool, scanDecision, "SELECT body FROM decisions WHERE turn_id = ? ORDER BY decision_id", turn)
}

// scanDecision scans a row with the body of a decision.
func scanDecision(rows *sql.Rows, d *protocol.Decision) error {
	var body []byte
	if err := rows.Scan(&body); err != nil {
		return err
	}
	return decode(body, d, "decision")
}
