package engine

import (
	"context"
	"errors"

	"lashd/engine/receipt"
	"lashd/rpc/protocol"
)

// pluginLock is held by whoever opens, replaces, changes or captures the plugins of a session, on a goroutine of its own: the actor waits
// for no plugin. What the holder reads of the session, and what it commits, it does on the actor. Only a holder gives leases, so that
// nobody begins to work with plugins that are being replaced or captured. Nobody waits for a lease while holding it.
type pluginLock struct {
	eng   *Engine
	owner *state
	ctx   context.Context // for calls of plugins; done when the session is unloaded or the engine stops
}

// lockPlugins waits until nobody else holds the lock of a session's plugins. It loads the session if need be.
func lockPlugins(ctx context.Context, e *Engine, id protocol.SessionID) (*pluginLock, error) {
	for {
		st, err := loadedState(ctx, e, id)
		if err != nil {
			return nil, err
		}
		k, err := st.plugins.lock(ctx)
		if err == nil || ctx.Err() != nil {
			return k, err
		}
	} // the session was unloaded or loaded again: use the new state
}

// loadedState is the state of a session, which is loaded if need be.
func loadedState(ctx context.Context, e *Engine, id protocol.SessionID) (*state, error) {
	s, err := e.lookup(ctx, id)
	if err != nil {
		return nil, err
	}
	if st := s.live.Load(); st != nil {
		return st, nil
	}
	return do(ctx, e, id, func(_ context.Context, st *state) (*state, error) { return st, nil })
}

// lock is lockPlugins for work that belongs to this state of the session.
func (p *sessionPlugins) lock(ctx context.Context) (*pluginLock, error) {
	st := p.owner
	select {
	case p.locked <- struct{}{}:
	case <-st.closed:
		return nil, st.refusal()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	k := &pluginLock{eng: st.eng, owner: st, ctx: st.ctx}
	if st.ctx.Err() != nil {
		k.unlock()
		return nil, st.refusal()
	}
	return k, nil
}

func (k *pluginLock) unlock() { <-k.owner.plugins.locked }

// row is the session as it was after its newest commit.
func (k *pluginLock) row() *protocol.Session { return k.owner.newestRow.Load() }

// lockedPlugins has f work beside the actor while it holds the lock of a session's plugins. Once f runs it runs to its end, even if the caller
// returns because ctx is done. The caller does not wait then: requests of a connection run one after the other, so a cancelled request
// would hold up the next ones while plugins load, or do not answer.
func lockedPlugins[T any](ctx context.Context, e *Engine, id protocol.SessionID, f func(*pluginLock) (T, error)) (v T, err error) {
	k, err := lockPlugins(ctx, e, id)
	if err != nil {
		return v, err
	}
	return runLocked(ctx, k, func() (T, error) { return f(k) }, func(T) {})
}

// mutatePlugins is mutate for a change that needs the session's plugins: f makes it while it holds their lock.
func mutatePlugins[T any, P receipt.Result[T]](ctx context.Context, e *Engine, id protocol.SessionID, method, key string, params any,
	f func(*pluginLock, receipt.Request) (*T, error),
) (*T, error) {
	rc, err := receipt.For(method, key, params)
	if err != nil {
		return nil, err
	}
	result, err := lockedPlugins(ctx, e, id, func(k *pluginLock) (*T, error) {
		if result, hit, err := receipt.Find[T, P](k.ctx, e.store, rc); hit || err != nil {
			return result, err
		}
		return f(k, rc)
	})
	return receipt.First[T, P](ctx, e.store, rc, result, err)
}

// runLocked runs f on a goroutine of its own, which releases the lock, and waits for it until ctx is done. What f comes to after that is
// discarded.
func runLocked[T any](ctx context.Context, k *pluginLock, f func() (T, error), discard func(T)) (v T, err error) {
	calls, cancel := context.WithCancelCause(k.owner.ctx)
	stop := context.AfterFunc(k.eng.leaseCtx, func() { cancel(&leaseRevoked{ErrShuttingDown}) })
	k.ctx = calls
	done := make(chan answer[T], 1)
	k.eng.group.GoCall(func() {
		var a answer[T]
		defer func() {
			if p := recover(); p != nil {
				a.err = k.eng.group.Recovered("plugins", k.owner.id, p)
			}
			stop()
			cancel(nil)
			k.unlock()
			done <- a
		}()
		a.v, a.err = f()
	})
	select {
	case a := <-done:
		return a.v, a.err
	case <-ctx.Done():
	}
	if a, ok := ready(done); ok {
		return a.v, a.err
	}
	go func() {
		if a := <-done; a.err == nil {
			discard(a.v)
		}
	}()
	return v, context.Cause(ctx)
}

// errHeadMoved means that plugins were opened with what the session is not any more.
var errHeadMoved = errors.New("the session was changed while its plugins were opened")
