package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"lashd/engine/param"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// scan is how many events one page of the audit searches at most.
const scan = 20_000

// List returns a page of the audit records of a session, in order. It searches the log, so a page may have fewer records than the limit, or none,
// before the last one. It fails if an event that it reads was changed.
func List(ctx context.Context, store *persistence.Store, p *protocol.AuditListParams) (*protocol.AuditListResult, error) {
	row, err := store.Session(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	after, err := param.ParseCursor(p.Cursor, pages(row.Key), 1)
	if err != nil {
		return nil, err
	}
	limit, err := param.PageSize(p.Limit, 200, 500)
	if err != nil {
		return nil, err
	}
	if p.Kind != "" && !slices.Contains([]protocol.AuditKind{protocol.AuditOutside, protocol.AuditAllowed, protocol.AuditRefused}, p.Kind) {
		return nil, param.Bad("/kind", "must be outside, allowed or refused")
	}
	result := &protocol.AuditListResult{Data: []protocol.AuditEntry{}}
	at := protocol.Seq(after[0])
	for end := at + scan; at < end; {
		page, err := store.Events(ctx, row.Key, at, 500)
		if err != nil || len(page) == 0 {
			return result, err
		}
		for _, e := range page {
			at = e.Seq
			entry, err := entryOf(row.ID, e)
			if err != nil {
				return nil, err
			}
			if entry != nil && entry.AtMs >= p.SinceMs && (p.Kind == "" || p.Kind == entry.Kind) {
				result.Data = append(result.Data, *entry)
			}
			if len(result.Data) == limit {
				end = at
				break
			}
		}
	}
	result.NextCursor = param.Cursor(pages(row.Key), int64(at))
	return result, nil
}

// entryOf returns the audit record in an event; nil if it is another event.
func entryOf(id protocol.SessionID, e persistence.StoredEvent) (*protocol.AuditEntry, error) {
	if e.Type != protocol.EventAuditRecorded {
		return nil, nil
	}
	var event protocol.Event
	if err := json.Unmarshal(e.Body, &event); err != nil {
		return nil, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	return &protocol.AuditEntry{SessionID: id, Seq: e.Seq, AtMs: event.AtMs, TurnID: event.TurnID, AuditRecord: *event.Audit}, nil
}

// pages names the cursors of one session's audit, so that a cursor of another list is rejected.
func pages(session int64) string { return "a" + strconv.FormatInt(session, 36) }

// Verify follows the hash chain of a session's log from its first event to its last.
func Verify(ctx context.Context, store *persistence.Store, p *protocol.SessionParams) (*protocol.AuditVerifyResult, error) {
	row, err := store.Session(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	n, err := store.VerifyLog(ctx, row.Key)
	result := &protocol.AuditVerifyResult{Events: n}
	if errors.Is(err, persistence.ErrCorrupt) {
		result.Problem, err = err.Error(), nil
	}
	return result, err
}
