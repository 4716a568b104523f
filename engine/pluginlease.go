package engine

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// lease lets a turn or a request use a session's plugins outside the actor. Until it is released, the plugins are
// not closed, and no other set replaces them unless allowReplace was called. The holder must release it exactly
// when its work with the plugins has ended; release may be called more than once. A nil lease is valid and holds
// nothing. Only a holder of the plugin lock creates leases.
type lease struct {
	*session
	row         protocol.Session // the session when the lease began
	plugins     *plugin.Session
	catalog     *tool.Catalog   // the tools when the lease began
	ctx         context.Context // the borrower's, which also ends when the session is unloaded or the engine stops
	end         func()
	owner       *state
	set         *pluginSet
	replaceable bool // guarded by set.leases.mu
	returned    bool // guarded by set.leases.mu
}

// leaseCounter counts the leases of one pluginSet. Its mutex may be held for a moment on any goroutine.
type leaseCounter struct {
	mu          sync.Mutex
	out         int
	replaceable int           // leases among them that allow a replacement
	free        chan struct{} // closed after the last release; nil until retire is called
}

// lend returns a lease of the newest plugins of a session, with the session's settings. It loads the session and
// opens plugins if needed, which can take as long as workgroup allows a plugin. It must not run on an actor.
func (e *Engine) lend(ctx context.Context, id protocol.SessionID) (*lease, error) {
	k, err := lockPlugins(ctx, e, id)
	if err != nil {
		return nil, err
	}
	return k.lend(ctx, nil)
}

// lend is Engine.lend for work that belongs to this state of the session: it fails once the state is dropped.
// Plugins are opened with the given settings, or with those of the session if settings is nil.
func (p *sessionPlugins) lend(ctx context.Context, settings *protocol.Config) (*lease, error) {
	k, err := p.lock(ctx)
	if err != nil {
		return nil, err
	}
	return k.lend(ctx, settings)
}

// lend returns a lease and releases the lock. If suitable plugins are open it does so at once; otherwise it opens
// them on a goroutine of its own, and a caller whose ctx ends does not wait for that.
func (k *pluginLock) lend(ctx context.Context, settings *protocol.Config) (*lease, error) {
	cfg := k.row().Config
	if settings != nil {
		cfg = *settings
	}
	if t := k.current(ctx, cfg); t != nil {
		defer k.unlock()
		if err := k.refresh(t); err != nil {
			return nil, err
		}
		return k.newLease(ctx, t), nil
	}
	return runLocked(ctx, k, func() (*lease, error) {
		t, err := k.open(cfg)
		if err != nil {
			return nil, err
		}
		return k.newLease(ctx, t), nil
	}, (*lease).release)
}

// newLease adds a lease of an open set. ctx is the borrower's.
func (k *pluginLock) newLease(ctx context.Context, t *pluginSet) *lease {
	st := k.owner
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(st.ctx, func() { cancel(&leaseRevoked{refusal(context.Cause(st.ctx))}) })
	unhookStop := context.AfterFunc(st.eng.leaseCtx, func() { cancel(&leaseRevoked{ErrShuttingDown}) })
	l := &lease{session: st.session, row: *k.row(), plugins: t.plugins, catalog: t.catalog.Load(), ctx: ctx, owner: st, set: t}
	l.end = func() { unhook(); unhookStop(); cancel(nil) }
	t.leases.mu.Lock()
	defer t.leases.mu.Unlock()
	t.leases.out++
	return l
}

// matches reports whether the lease still fits the session, so that a turn may start with it. It runs on the
// actor.
func (l *lease) matches(st *state) bool {
	return l.owner == st && l.set == st.plugins.opened() && l.set.builtWith(st.row.Config) && bytes.Equal(settingsOf(l.row.Config), settingsOf(st.row.Config))
}

// leaseRevoked is the cause with which the context of a lease ends when the session is unloaded or the engine
// stops. Its message and Unwrap say which of them, for clients. It also matches errStopped, so that a turn treats
// it as a suspension.
type leaseRevoked struct{ cause error }

func (t *leaseRevoked) Error() string        { return t.cause.Error() }
func (t *leaseRevoked) Unwrap() error        { return t.cause }
func (t *leaseRevoked) Is(target error) bool { return target == errStopped }

// allowReplace lets other plugins replace those of the lease while these stay open. A turn calls it once its end
// is stored; a plugin task, which may run long, calls it at the start.
func (l *lease) allowReplace() {
	l.set.leases.mu.Lock()
	defer l.set.leases.mu.Unlock()
	if !l.replaceable && !l.returned {
		l.replaceable = true
		l.set.leases.replaceable++
	}
}

// release ends the lease and its context. It is safe on a nil lease and when called again. The last release of a
// retired set lets the set close.
func (l *lease) release() {
	if l == nil {
		return
	}
	l.end()
	l.set.leases.mu.Lock()
	defer l.set.leases.mu.Unlock()
	if l.returned {
		return
	}
	l.returned = true
	l.set.leases.out--
	if l.replaceable {
		l.set.leases.replaceable--
	}
	if l.set.leases.out == 0 && l.set.leases.free != nil {
		close(l.set.leases.free)
	}
}

// retire marks a set that gets no more leases. The returned channel is closed after the last release; every call
// returns the same channel.
func (n *leaseCounter) retire() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.free == nil {
		n.free = make(chan struct{})
		if n.out == 0 {
			close(n.free)
		}
	}
	return n.free
}

// inUse reports whether a lease prevents other plugins from replacing this set.
func (n *leaseCounter) inUse() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.out > n.replaceable
}

// checkInputs refuses plugin inputs that a turn could not start with, as an error of the request's pluginInputs. A
// nil lease refuses nothing: the turn then fails because its plugins did not open.
func (l *lease) checkInputs(in protocol.PluginInputs) error {
	if l == nil {
		return nil
	}
	err := l.plugins.CheckInputs(in)
	if e, ok := errors.AsType[*plugin.InputError](err); ok {
		return param.Bad("/pluginInputs/"+param.Escape(e.Plugin), "%s", e.Reason)
	}
	return err
}
