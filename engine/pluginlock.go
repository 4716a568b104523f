package engine

import (
	"context"
	"errors"

	"lashd/engine/receipt"
	"lashd/rpc/protocol"
)

// pluginLock is the exclusive right to open, replace, change or capture the plugins of a session. Its holder works
// on its own goroutine, so the actor never waits for a plugin. The holder uses the actor to read the session and
// to commit. Only a holder gives leases: no work starts with plugins that are being replaced. A holder must not
// wait for a lease, because the lease's holder may wait for the lock. unlock or runLocked releases it.
type pluginLock struct {
	eng   *Engine
	owner *state
	ctx   context.Context // for calls of plugins; done when the session is unloaded or the engine stops
}

// lockPlugins waits for the lock of a session's plugins, and loads the session if needed. If the session is
// unloaded during the wait, it starts again with the new state.
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

// loadedState returns the state of a session, loading it if needed. The caller is not on the actor and may only
// use parts of the state that are safe there.
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

// lock is lockPlugins for work that belongs to this state of the session: it fails once the state is dropped.
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

// row returns the session as of its newest commit. The result is shared and must not be changed.
func (k *pluginLock) row() *protocol.Session { return k.owner.newestRow.Load() }

// lockedPlugins runs f on its own goroutine while it holds the lock. Once started, f runs to its end, but the
// caller returns as soon as ctx is done. A connection handles requests one after the other, so a cancelled request
// must not block the next ones while plugins load.
func lockedPlugins[T any](ctx context.Context, e *Engine, id protocol.SessionID, f func(*pluginLock) (T, error)) (v T, err error) {
	k, err := lockPlugins(ctx, e, id)
	if err != nil {
		return v, err
	}
	return runLocked(ctx, k, func() (T, error) { return f(k) }, func(T) {})
}

// mutatePlugins is mutate for a change that needs the session's plugins. f runs while it holds their lock, not on
// the actor. A repeated key returns the stored answer without calling f.
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

// runLocked runs f on its own goroutine, releases the lock when f returns, and waits for f until ctx is done.
// If the wait ended first, discard gets the result. A panic in f becomes an error.
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

// errHeadMoved means that the session's history or settings changed while its plugins were opened, so that they no
// longer fit. Callers open the plugins again.
var errHeadMoved = errors.New("the session was changed while its plugins were opened")
