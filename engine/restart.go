package engine

import (
	"context"
	"slices"
	"sync"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// recoveries is how many sessions are loaded at once when the daemon starts: one that takes long does not hold up the others.
const recoveries = 8

// recover loads every session that has a turn, a task or a rewind which has not ended; loading it drives them on.
func (e *Engine) recover(ctx context.Context) error {
	ids, err := e.store.Unfinished(ctx)
	if err != nil {
		return unlessDone(ctx, err)
	}
	tasked, err := e.store.SessionsWithTasks(ctx)
	if err != nil {
		return unlessDone(ctx, err)
	}
	rewinding, err := e.store.Files.RewindingSessions(ctx)
	if err != nil {
		return unlessDone(ctx, err)
	}
	for _, id := range append(tasked, rewinding...) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	next := make(chan protocol.SessionID)
	var loading sync.WaitGroup
	for range min(recoveries, len(ids)) {
		loading.Go(func() {
			for id := range next {
				e.resumeSession(ctx, id)
			}
		})
	}
	for _, id := range ids {
		next <- id
	}
	close(next)
	loading.Wait()
	return nil
}

// goOn goes on with a session. One that was only there for a moment is deleted: nobody waits any more for what comes of it.
func (e *Engine) resumeSession(ctx context.Context, id protocol.SessionID) {
	row, err := e.store.Session(ctx, id)
	if err == nil && row.Relation.Temporary {
		_, err = e.store.Commit(ctx, &persistence.Commit{Session: id, Delete: true, AtMs: now()})
	}
	switch {
	case err != nil && ctx.Err() == nil:
		e.Log.Error("cannot read session at startup", "session", id, "error", err)
	case !row.Relation.Temporary:
		e.load(ctx, id)
	}
}

func (e *Engine) load(ctx context.Context, id protocol.SessionID) {
	_, err := do(ctx, e, id, func(context.Context, *state) (struct{}, error) { return struct{}{}, nil })
	if err != nil && ctx.Err() == nil {
		e.Log.Error("cannot resume session", "session", id, "error", err)
	}
}

func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
