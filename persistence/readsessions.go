package persistence

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// Session is a session's row. Key is its row number, which other methods of Reader take. Branch and
// Head say where the session's path ends.
type Session struct {
	protocol.Session
	Key    int64 // row number, never reused
	Branch int64
}

// sessionColumns are the columns that scanSession reads.
const sessionColumns = `
session, session_id, title, cwd, relation, config, authority, revision, branch, generation, leaf, frame, seq, turn_index, usage,
created_at, updated_at, archived, intact(sessions sessions)`

// scanSession scans a session and verifies its checksum. On damage s has at least Key and ID.
func scanSession(rows *sql.Rows, s *Session) error {
	var relation, config, authority, usage []byte
	var intact bool
	h := &s.Head
	err := rows.Scan(&s.Key, &s.ID, &s.Title, &s.Cwd, &relation, &config, &authority, &h.Revision, &s.Branch, &h.Generation, &h.Leaf,
		&h.Frame, &s.Seq, &s.TurnIndex, &usage, &s.CreatedAtMs, &s.UpdatedAtMs, &s.Archived, &intact)
	if err == nil {
		err = rowIntact(intact, "sessions", s.Key, s.ID)
	}
	if err != nil {
		return err
	}
	return errors.Join(decode(relation, &s.Relation, "relation"), decode(config, &s.Config, "config"),
		decode(authority, &s.Authority, "authority"), decode(usage, &s.Usage, "usage"))
}

// damagedTitle is the title that a list shows for a session with a damaged row.
const damagedTitle = "(damaged: run lash doctor)"

// scanListed scans a session of a list. A damaged one keeps only its id, so that the list can still
// show the others.
func scanListed(rows *sql.Rows, s *Session) error {
	err := scanSession(rows, s)
	if errors.Is(err, ErrCorrupt) {
		*s = Session{Key: s.Key, Session: protocol.Session{ID: s.ID, Title: damagedTitle, UpdatedAtMs: s.UpdatedAtMs}}
		return nil
	}
	return err
}

const selectSession = `SELECT ` + sessionColumns + ` FROM sessions WHERE session_id = ?`

// Session reads one session. It fails with ErrNotFound or ErrDeleted, or with *DamagedRowError.
func (r *Reader) Session(ctx context.Context, id protocol.SessionID) (Session, error) {
	found, err := list(ctx, r.pool, scanSession, selectSession, id)
	if e, ok := errors.AsType[*DamagedRowError](err); ok {
		return Session{}, e
	}
	if err != nil {
		return Session{}, fmt.Errorf("session %s: %w", id, err)
	}
	if len(found) == 0 {
		return Session{}, r.missing(ctx, id)
	}
	return found[0], nil
}

// missing returns ErrDeleted or ErrNotFound for a session without a row.
func (r *Reader) missing(ctx context.Context, id protocol.SessionID) error {
	var n int
	err := r.pool.row(ctx, "SELECT 1 FROM deleted_sessions WHERE session_id = ?", []any{id}, &n)
	if err == nil {
		err = ErrDeleted
	}
	return fmt.Errorf("session %s: %w", id, err)
}

// SessionQuery selects sessions, most recently updated first. To read the next page, set BeforeMs
// and BeforeKey to the last session's UpdatedAtMs and Key.
type SessionQuery struct {
	Archived  bool   // select archived sessions instead of the others
	Children  bool   // include sessions of subagents
	Cwd       string // empty: any
	BeforeMs  int64  // 0: from the newest
	BeforeKey int64
	Limit     int
}

// listSessions pages by (updated_at, session), the key of the index sessions_by_update. A page
// therefore continues correctly even if sessions share a time.
const listSessions = `
SELECT ` + sessionColumns + `
FROM sessions
WHERE archived = ? AND (? OR parent IS NULL) AND (? = '' OR cwd = ?) AND (updated_at, session) < (?, ?)
ORDER BY updated_at DESC, session DESC
LIMIT ?`

// Sessions reads a page of sessions with their first inputs. A damaged one is listed with its id and
// damagedTitle.
func (r *Reader) Sessions(ctx context.Context, q SessionQuery) ([]Session, error) {
	if q.BeforeMs == 0 {
		q.BeforeMs = math.MaxInt64
	}
	page, err := list(ctx, r.pool, scanListed, listSessions, q.Archived, q.Children, q.Cwd, q.Cwd, q.BeforeMs, q.BeforeKey, q.Limit)
	for i := range page {
		if err == nil {
			page[i].FirstInput, err = r.pool.firstInput(ctx, page[i].Key)
		}
	}
	return page, err
}

// selectFirstInput reads the beginning of the first input with a text that no plugin and no wake
// sent. It looks at eight inputs, because images can be sent without a text.
const selectFirstInput = `
SELECT substr(text, 1, 1000)
FROM (
  SELECT coalesce(json_extract(CAST(body AS TEXT), '$.input[0].text'), json_extract(CAST(body AS TEXT), '$.input[1].text')) AS text
  FROM inputs i
  WHERE session = ? AND source = '' AND intact(inputs i)
  ORDER BY input
  LIMIT 8)
WHERE text IS NOT NULL
LIMIT 1`

// firstInputLength is the maximum length of a first input, in characters.
const firstInputLength = 200

// firstInput returns the beginning of the first text that a person sent to a session, in one line;
// empty: there is none.
func (p *readPool) firstInput(ctx context.Context, session int64) (string, error) {
	var text string
	err := p.row(ctx, selectFirstInput, []any{session}, &text)
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	runes := []rune(strings.Join(strings.Fields(text), " "))
	return string(runes[:min(len(runes), firstInputLength)]), err
}

// CountSessions returns the number of stored sessions.
func (r *Reader) CountSessions(ctx context.Context) (int, error) {
	var n int
	err := r.pool.row(ctx, "SELECT count(*) FROM sessions", nil, &n)
	return n, err
}

// StoredEvent is an event as stored in the log.
type StoredEvent struct {
	Seq   protocol.Seq
	Type  protocol.EventType
	Body  []byte
	chain []byte // hash of this event and all before it
}

// eventPage is the maximum number of events that one read returns. A long read would keep SQLite
// from reusing the log.
const eventPage = 512

// selectEvents reads events between two places, both exclusive.
const selectEvents = `
SELECT place & 0xffffffff, type, body, chain
FROM events
WHERE place > ? AND place < ?
ORDER BY place
LIMIT ?`

// Events reads up to limit (at most 512) events of a session after a seq, in order. It verifies
// their hash chain: a changed event is a *DamagedRowError.
func (r *Reader) Events(ctx context.Context, session int64, after protocol.Seq, limit int) ([]StoredEvent, error) {
	limit = min(limit, eventPage)
	if after == 0 {
		page, err := r.pool.events(ctx, session, 0, limit)
		return page, errors.Join(err, r.checkLinks(ctx, session, StoredEvent{chain: make([]byte, 32)}, page))
	}
	page, err := r.pool.events(ctx, session, after-1, limit+1)
	if err != nil || len(page) == 0 {
		return nil, err
	}
	if page[0].Seq != after { // the previous event is missing, so there is no hash to compare with; Verify reports it
		return page[:min(len(page), limit)], nil
	}
	return page[1:], r.checkLinks(ctx, session, page[0], page[1:])
}

// checkLinks verifies the hash chain of a page of events that follows the event before.
func (r *Reader) checkLinks(ctx context.Context, session int64, before StoredEvent, page []StoredEvent) error {
	if len(page) == 0 {
		return nil
	}
	var id protocol.SessionID
	if err := r.pool.row(ctx, "SELECT session_id FROM sessions WHERE session = ?", []any{session}, &id); err != nil {
		if errors.Is(err, ErrNotFound) {
			return nil // deleted in between
		}
		return err
	}
	chain := before.chain
	for _, e := range page {
		chain = chainLink(chain, id, e.Seq, Event{Type: e.Type, Body: e.Body})
		if !bytes.Equal(chain, e.chain) {
			return &DamagedRowError{Table: "events", Row: fmt.Sprint(e.Seq), Session: id}
		}
	}
	return nil
}

// events reads up to limit events of a session after a seq, without verifying them.
// events reads events as Events does, without a look at the hash chain. No event is after a seq that a place cannot hold.
func (r *readPool) events(ctx context.Context, session int64, after protocol.Seq, limit int) ([]StoredEvent, error) {
	if after > math.MaxUint32 {
		return nil, nil
	}
	return list(ctx, r, scanEvent, selectEvents, place(session, int64(after)), place(session+1, 0), limit)
}

func scanEvent(rows *sql.Rows, e *StoredEvent) error {
	return rows.Scan(&e.Seq, &e.Type, &e.Body, &e.chain)
}

// traceWindow is how many events TurnEvents searches in one read. A longer read would block
// checkpoints.
const traceWindow = 8192

// selectTurnEvents searches the JSON text of events for a turn.
const selectTurnEvents = `
SELECT place & 0xffffffff, type, body, chain
FROM events
WHERE place > ? AND place <= ? AND instr(body, ?) > 0
ORDER BY place
LIMIT ?`

// TurnEvents reads up to limit events that name a turn, in order, after a seq and up to the turn's
// end. It finds them by text search in windows of the log, since events have no index by turn.
func (r *Reader) TurnEvents(ctx context.Context, session Session, turn protocol.TurnID, after protocol.Seq, limit int) ([]StoredEvent, error) {
	var all []StoredEvent
	named := []byte(`"turnId":"` + string(turn) + `"`)
	for from := after; from < session.Seq && len(all) < limit; from += traceWindow {
		low, high := place(session.Key, int64(from)), place(session.Key, int64(min(from+traceWindow, session.Seq)))
		page, err := list(ctx, r.pool, scanEvent, selectTurnEvents, low, high, named, limit-len(all))
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if slices.ContainsFunc(page, func(e StoredEvent) bool { return e.Type == protocol.EventTurnCompleted }) {
			break
		}
	}
	return all, nil
}

// Receipt returns the result that is stored under an idempotency key; it is empty if the request
// has only begun. It fails with ErrNotFound, with ErrReceiptConflict if the hash differs, or with
// ErrDeleted if the result was deleted with its session.
func (r *Reader) Receipt(ctx context.Context, key string, hash []byte) ([]byte, error) {
	var known, result []byte
	var gone, intact bool
	err := r.pool.row(ctx, selectReceipt, []any{key}, &known, &result, &gone, &intact)
	if err == nil {
		err = rowIntact(intact, "receipts", key, "")
	}
	if err == nil {
		err = checkReceipt(known, hash, gone)
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}
