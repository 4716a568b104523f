package engine

import (
	"context"
	"sync"
	"time"

	"lashd/engine/param"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Turns is the API of turns, for clients and for the rest of the engine.
type Turns struct{ eng *Engine }

// waits delivers the reports of ended turns to goroutines that wait for them, so that they need not
// poll the store. Turns without a waiter have no entry. It is safe for concurrent use.
type waits struct {
	mu    sync.Mutex
	turns map[protocol.TurnID]*waiting
}

// waiting is the entry of one turn, shared by all its waiters.
type waiting struct {
	over   chan struct{}
	report *protocol.TurnReport // set before over is closed; nil: read the turn again
}

// of returns the entry of a turn and creates it if needed. To miss no end, a caller gets the entry
// first and reads the turn then: if the turn ended in between, the read shows it.
func (w *waits) of(id protocol.TurnID) *waiting {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.turns[id] == nil {
		w.turns[id] = &waiting{over: make(chan struct{})}
	}
	return w.turns[id]
}

// end wakes the waiters of a turn and removes its entry. A nil report makes them read the turn
// again.
func (w *waits) end(id protocol.TurnID, report *protocol.TurnReport) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.turns[id]; t != nil {
		t.report = report
		close(t.over)
		delete(w.turns, id)
	}
}

// Wait waits until a turn has ended, the timeout has passed or ctx is done, and returns the turn's
// report at that time. With p.Follow it waits for the last of the turns that follow each other in
// new frames. Any client may call it, any number of times, also long after the end.
func (ts *Turns) Wait(ctx context.Context, p *protocol.TurnWaitParams) (*protocol.TurnReport, error) {
	if err := param.CheckWait("/timeoutMs", p.TimeoutMs); err != nil {
		return nil, err
	}
	timeout, stop := after(p.TimeoutMs)
	defer stop()
	for id := p.TurnID; ; {
		report, err := ts.wait(ctx, id, timeout)
		if err != nil || !p.Follow || report.FollowedBy == "" {
			return report, err
		}
		id = report.FollowedBy
	}
}

// wait is Wait for a single turn with a timeout channel; nil never fires. On a timeout it returns
// the report as it is, without an error.
func (ts *Turns) wait(ctx context.Context, id protocol.TurnID, timeout <-chan time.Time) (*protocol.TurnReport, error) {
	for {
		turn := ts.eng.waits.of(id)
		report, err := ts.Read(ctx, &protocol.TurnParams{TurnID: id})
		if err != nil || report.State.Terminal() {
			ts.eng.waits.end(id, nil) // the turn may have ended before the wait began; remove the entry, as no end will
			return report, err
		}
		select {
		case <-turn.over:
			if turn.report != nil {
				return turn.report, nil
			}
		case <-timeout:
			return ts.Read(ctx, &protocol.TurnParams{TurnID: id})
		case <-ts.eng.done():
			return nil, ErrShuttingDown
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// after returns a channel that fires after some milliseconds, or never for 0 and less. The caller
// calls the returned function to release the timer.
func after(ms int64) (<-chan time.Time, func()) {
	if ms <= 0 {
		return nil, func() {}
	}
	t := time.NewTimer(time.Duration(ms) * time.Millisecond)
	return t.C, func() { t.Stop() }
}

// Read returns the report of a turn as it is now.
func (ts *Turns) Read(ctx context.Context, p *protocol.TurnParams) (*protocol.TurnReport, error) {
	t, err := ts.eng.store.Turn(ctx, p.TurnID)
	if err != nil {
		return nil, err
	}
	return reportOf(t), nil
}

// reportOf returns the stored report of a turn, or a short one with its state if it has not ended.
func reportOf(t persistence.StoredTurn) *protocol.TurnReport {
	if t.Report != nil {
		return t.Report
	}
	return &protocol.TurnReport{
		TurnID: t.ID, SessionID: t.Session, State: t.State, AcceptedAtMs: t.AcceptedMs, StartedAtMs: t.StartedMs,
	}
}

// List lists a session's turns, newest first, in pages of 50 by default and 200 at most.
func (ts *Turns) List(ctx context.Context, p *protocol.TurnListParams) (*protocol.TurnListResult, error) {
	row, err := ts.eng.store.Session(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	before, err := param.ParseCursor(p.Cursor, param.TurnPages(row.Key), 1)
	if err != nil {
		return nil, err
	}
	limit, err := param.PageSize(p.Limit, 50, 200)
	if err != nil {
		return nil, err
	}
	turns, err := ts.eng.store.Turns(ctx, row.Key, before[0], limit)
	if err != nil {
		return nil, err
	}
	result := &protocol.TurnListResult{Data: []protocol.TurnReport{}}
	for _, t := range turns {
		result.Data = append(result.Data, *reportOf(t))
	}
	if len(turns) == limit {
		result.NextCursor = param.Cursor(param.TurnPages(row.Key), turns[limit-1].Order)
	}
	return result, nil
}
