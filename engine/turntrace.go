package engine

import (
	"context"
	"fmt"
	"strconv"

	"lashd/engine/param"
	"lashd/rpc/protocol"
)

// Trace returns a page of a turn's durable events in order, while the turn runs or any time later.
// Pages have 200 events by default and 500 at most.
//
// The store selects events whose text names the turn. Trace leaves out those that only mention it,
// so a page may be short or even empty before the last one. The cursor is empty once the page
// contains the end of the turn. The items of a turn that is about to resume are complete only after
// it did, so the call waits for that.
func (ts *Turns) Trace(ctx context.Context, p *protocol.TurnTraceParams) (*protocol.TurnTraceResult, error) {
	report, err := ts.Read(ctx, &protocol.TurnParams{TurnID: p.TurnID})
	if err != nil {
		return nil, err
	}
	row, err := ts.eng.store.Session(ctx, report.SessionID)
	if err != nil {
		return nil, err
	}
	after, err := param.ParseCursor(p.Cursor, tracePages(row.Key), 1)
	if err != nil {
		return nil, err
	}
	limit, err := param.PageSize(p.Limit, 200, 500)
	if err != nil {
		return nil, err
	}
	page, err := ts.eng.store.TurnEvents(ctx, row, p.TurnID, protocol.Seq(after[0]), limit)
	if err != nil {
		return nil, err
	}
	s, err := ts.eng.lookup(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	result := &protocol.TurnTraceResult{Turn: *report, Data: []protocol.Event{}}
	refs := newReferences(s, row.Key)
	for _, row := range page {
		event, err := s.event(ctx, row, refs)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", row.Seq, err)
		}
		if event.TurnID == p.TurnID {
			result.Data = append(result.Data, event)
		}
	}
	if len(page) == limit && page[limit-1].Type != protocol.EventTurnCompleted {
		result.NextCursor = param.Cursor(tracePages(row.Key), int64(page[limit-1].Seq))
	}
	return result, nil
}

// tracePages names the cursors of one session's traces, so that a cursor of another list is
// rejected.
func tracePages(session int64) string { return "e" + strconv.FormatInt(session, 36) }
