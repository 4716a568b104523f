package persistence

import (
	"context"
	"database/sql"
	"math"

	"lashd/rpc/protocol"
)

// SearchReader reads what people look for across sessions. Its methods are safe for concurrent use.
type SearchReader struct {
	// Changes notes what commits change. It is nil in a store that is only inspected.
	Changes *Changes
	pool    *readPool
}

// SentInput is an input with the session that received it. Row orders inputs by the time at which
// lashd stored them.
type SentInput struct {
	protocol.QueuedInput
	Row     int64
	Session protocol.SessionID
}

// Queries for a page of inputs, newest first. The inner SELECT reads only indexes, so that the sort
// does not carry the bodies.
const (
	sentInputs = `
SELECT input, session_id, input_id, turn_id, source, body, at, intact(inputs inputs)
FROM inputs JOIN sessions ON sessions.session = inputs.session
WHERE input IN (`
	numbersInCwd = `
  SELECT i.input
  FROM sessions s CROSS JOIN inputs i ON i.session = s.session
  WHERE s.cwd = ? AND s.parent IS NULL AND i.input < ?
  ORDER BY i.input DESC LIMIT ?)
ORDER BY input DESC`
	numbersAnywhere = `
  SELECT i.input
  FROM inputs i JOIN sessions s ON s.session = i.session
  WHERE ? = '' AND s.parent IS NULL AND i.input < ?
  ORDER BY i.input DESC LIMIT ?)
ORDER BY input DESC`
)

// Inputs reads up to limit inputs of the sessions that work in a directory, newest first, in any
// state. It leaves out sessions of subagents. An empty cwd selects all directories. before is the
// Row of the last input of the page before; 0 starts with the newest. A damaged input has no Input.
func (s *SearchReader) Inputs(ctx context.Context, cwd string, before int64, limit int) ([]SentInput, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	query := sentInputs + numbersAnywhere
	if cwd != "" {
		query = sentInputs + numbersInCwd
	}
	return list(ctx, s.pool, scanSent, query, cwd, before, limit)
}

// scanSent scans a row of sentInputs.
func scanSent(rows *sql.Rows, in *SentInput) error {
	var body []byte
	var intact bool
	err := rows.Scan(&in.Row, &in.Session, &in.ID, &in.TurnID, &in.Source, &body, &in.AtMs, &intact)
	if err != nil || !intact {
		return err
	}
	var b inputBody
	if decode(body, &b, "input") == nil {
		in.Input, in.Wake, in.Ceiling = b.Input, b.Wake, b.Ceiling
	}
	return nil
}
