package engine

import (
	"context"
	"errors"

	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Wait waits until a session is idle: nothing runs, is queued or waits for a decision. It returns
// the state that it finds. A timeout is no error: it returns the state as it is then; 0 waits
// without limit. It loads the session if it is not in memory. It fails with ErrShuttingDown when
// the daemon stops.
func (ss *Sessions) Wait(ctx context.Context, p *protocol.SessionWaitParams) (*protocol.SessionWaitResult, error) {
	if err := param.CheckWait("/timeoutMs", p.TimeoutMs); err != nil {
		return nil, err
	}
	timeout, stop := after(p.TimeoutMs)
	defer stop()
	for late := false; ; {
		again := ss.eng.sessionIdle.Next()
		result, err := do(ctx, ss.eng, p.SessionID, func(_ context.Context, st *state) (*protocol.SessionWaitResult, error) {
			return &protocol.SessionWaitResult{State: st.public().State, Seq: st.row.Seq}, nil
		})
		if err != nil || late || result.State == protocol.SessionIdle {
			return result, err
		}
		select {
		case <-again:
		case <-timeout:
			late = true // look once more and return that state
		case <-ss.eng.done():
			return nil, ErrShuttingDown
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Delete removes a session permanently; its id is never used again. A running turn is stopped.
// Tasks move to the parent session unless their policy says cancel or there is no parent; then they
// are stopped. Deleting a deleted session succeeds.
func (ss *Sessions) Delete(ctx context.Context, p *protocol.SessionMutationParams) (*protocol.SeqResult, error) {
	return receipt.Once(ctx, ss.eng.receipts, "session/delete", p.Key(), p, func(rc receipt.Request) (*protocol.SeqResult, error) {
		return ss.delete(ctx, p.SessionID, rc)
	})
}

// delete is Delete without the receipt check. First it moves tasks to the parent. Then it commits
// the deletion on the actor, with the withdrawal of questions that parent sessions show. Then it
// stops the remaining work and removes its outputs and triggers. After the first step, ctx no
// longer stops it.
func (ss *Sessions) delete(ctx context.Context, id protocol.SessionID, rc receipt.Request) (*protocol.SeqResult, error) {
	result := &protocol.SeqResult{}
	gone := func(ctx context.Context) error { return ss.commitDeleted(ctx, id, rc.With(result)) }
	tasks, err := ss.eng.Tasks.moveBeforeDelete(ctx, id)
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx) // once the session is deleted, its work and outputs must be removed too
	loaded := false
	_, err = do(ctx, ss.eng, id, func(ctx context.Context, st *state) (struct{}, error) {
		loaded = true
		tell := st.published.withdrawFromParents(ctx, st.row.Relation, st.decisions.All())
		if err := gone(ctx); err != nil {
			return struct{}{}, err
		}
		tell()
		st.broken = persistence.ErrDeleted
		for _, t := range st.queue.Turns() {
			st.eng.waits.end(t.ID, nil)
		}
		ss.eng.sessionIdle.Notify()
		return struct{}{}, nil
	})
	if err != nil && !loaded && !errors.Is(err, ErrShuttingDown) && !errors.Is(err, ErrReloaded) {
		err = gone(ctx) // a session that cannot be loaded can still be deleted
	}
	switch {
	case errors.Is(err, persistence.ErrDeleted):
		return result, nil
	case err != nil:
		return nil, err
	}
	ss.eng.Tasks.endWork(ctx, id, tasks)
	ss.eng.Triggers.Forget(ctx, id)
	ss.eng.Events.SessionDeleted(id)
	return result, nil
}

// commitDeleted deletes a session in the store. If it was deleted before, it stores only the
// receipt and returns persistence.ErrDeleted.
func (ss *Sessions) commitDeleted(ctx context.Context, id protocol.SessionID, rc *persistence.Receipt) error {
	res, err := ss.eng.store.Commit(ctx, &persistence.Commit{Session: id, Delete: true, Receipt: rc, AtMs: now()})
	if errors.Is(err, persistence.ErrDeleted) && rc != nil {
		var failed error
		if res, failed = ss.eng.store.Commit(ctx, &persistence.Commit{Receipt: rc, AtMs: now()}); failed != nil {
			err = failed
		}
	}
	if res.Replayed {
		return receipt.ErrReplayed
	}
	return err
}

// Close unloads an idle session from memory; the next use loads it again. It fails with
// ErrSessionInUse if a turn is queued or a plugin is in use. A session with subscribers or with
// plugins that work on tasks stays in memory. Tasks follow their close policy either way: they move
// to the parent, are cancelled, or keep running.
func (ss *Sessions) Close(ctx context.Context, p *protocol.SessionMutationParams) (*protocol.SeqResult, error) {
	idle := func(_ context.Context, st *state) (struct{}, error) { return struct{}{}, st.checkIdle() }
	if _, err := do(ctx, ss.eng, p.SessionID, idle); err != nil {
		return nil, err
	}
	if err := ss.eng.Tasks.moveToParent(ctx, p.SessionID, movesOnClose); err != nil {
		return nil, err
	}
	k, err := lockPlugins(ctx, ss.eng, p.SessionID) // wait for a goroutine that opens or changes the plugins
	if err != nil {
		return nil, err
	}
	closes := false
	defer func() {
		if !closes { // otherwise the end of the state releases the plugins, and requests wait for the next state
			k.unlock()
		}
	}()
	return onState(k.owner, func(ctx context.Context, st *state) (*protocol.SeqResult, error) {
		if err := st.checkIdle(); err != nil {
			return nil, err
		}
		if err := st.tasks.cancelClosing(ctx); err != nil {
			return nil, err
		}
		if !st.feed.Watched() && !st.plugins.haveTasks() {
			closes, st.plugins.ending, st.broken = true, true, errClosed
		}
		return &protocol.SeqResult{Seq: st.row.Seq}, nil
	})
}

// checkIdle rejects closing a session with turns or with plugins in use.
func (st *state) checkIdle() error {
	if len(st.queue.Turns()) > 0 || st.plugins.inUse() {
		return ErrSessionInUse
	}
	return nil
}

// errClosed marks a state that Close unloads. The actor ends without loading the session again.
var errClosed = errors.New("closed")
