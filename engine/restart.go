package engine

import (
	"context"
	"slices"
	"sync"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// recoveries is the number of sessions that the daemon loads at once when it starts, so that a slow
// session does not delay all others.
const recoveries = 8

// recover loads every session with an unfinished turn, task or rewind; loading a session resumes
// its work. It runs once when the daemon starts, recoveries sessions at a time, and returns when
// all of them are loaded or failed to load. Failures of single sessions are logged and affect no
// other session. It returns nil when ctx is done.
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

// resumeSession loads a session that an earlier daemon left busy. A temporary session is deleted
// instead: the request that created it ended with that daemon, so nothing waits for its result.
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

// load loads a session into memory with a function that does nothing. The new state resumes its own
// work. A session that cannot be loaded is logged; the next request to it tries again.
func (e *Engine) load(ctx context.Context, id protocol.SessionID) {
	_, err := do(ctx, e, id, func(context.Context, *state) (struct{}, error) { return struct{}{}, nil })
	if err != nil && ctx.Err() == nil {
		e.Log.Error("cannot resume session", "session", id, "error", err)
	}
}

// unlessDone returns err, or nil if ctx is done: a daemon that stops during recovery is no failure.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
