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

// lease is the use of a session's plugins by somebody beside the actor. Until it is back they are not closed; until then, or
// until it trails, no others take their place. Whoever has it gives it back. Nil is no lease.
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

// leaseCounter counts who uses a pluginSet.
type leaseCounter struct {
	mu          sync.Mutex
	out         int
	replaceable int           // leases among them that allow a replacement
	free        chan struct{} // closed after the last release; nil until retire is called
}

// lend lends the newest plugins of a session.
func (e *Engine) lend(ctx context.Context, id protocol.SessionID) (*lease, error) {
	k, err := lockPlugins(ctx, e, id)
	if err != nil {
		return nil, err
	}
	return k.lend(ctx, nil)
}

// lend is Engine.lend for work that belongs to this state of the session, and for some settings; nil: for those that the session has.
func (p *sessionPlugins) lend(ctx context.Context, settings *protocol.Config) (*lease, error) {
	k, err := p.lock(ctx)
	if err != nil {
		return nil, err
	}
	return k.lend(ctx, settings)
}

// lend lends the newest plugins for some settings, and releases the lock.
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

// newLease lends what the session has open.
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

// matches tells whether a turn of the session may begin with what was lent.
func (l *lease) matches(st *state) bool {
	return l.owner == st && l.set == st.plugins.opened() && bytes.Equal(settingsOf(l.row.Config), settingsOf(st.row.Config))
}

// leaseRevoked is why the context of a lease ends, and what a client is told of that. To what runs it is that the daemon stops.
type leaseRevoked struct{ cause error }

func (t *leaseRevoked) Error() string        { return t.cause.Error() }
func (t *leaseRevoked) Unwrap() error        { return t.cause }
func (t *leaseRevoked) Is(target error) bool { return target == errStopped }

// allowReplace lets others take the plugins' place, while these stay open.
func (l *lease) allowReplace() {
	l.set.leases.mu.Lock()
	defer l.set.leases.mu.Unlock()
	if !l.replaceable && !l.returned {
		l.replaceable = true
		l.set.leases.replaceable++
	}
}

// release gives the plugins release. Once is enough.
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

// retire ends the lending. What it gives is closed once the last lease is back.
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

// inUse tells whether no others may take the plugins' place.
func (n *leaseCounter) inUse() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.out > n.replaceable
}

// checkInputs refuses inputs for plugins that no turn can begin with. Without plugins it refuses nothing.
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
