package engine

import (
	"context"
	"errors"

	"lashd/engine/plugin"
	"lashd/engine/receipt"
	"lashd/engine/workgroup"
	"lashd/rpc/protocol"
)

// What others than a session's turns add to its history its protocol is told of before it is stored, if the session's plugins
// are open and it wants to know. It is told in the order in which things are stored, on no actor, and may refuse.

// appendAnnounced adds nodes to a session, after its protocol was told of them.
func (e *Engine) appendAnnounced(ctx context.Context, operation string, p *protocol.GraphAppendParams, rc receipt.Request) (*protocol.GraphAppendResult, error) {
	result, err := do(ctx, e, p.SessionID, func(ctx context.Context, st *state) (_ *protocol.GraphAppendResult, err error) {
		if t := st.plugins.opened(); t == nil || !t.plugins.Protocol().Appends() {
			return st.history.append(ctx, operation, p, rc)
		}
		return nil, nil
	})
	if err != nil || result != nil {
		return result, err
	}
	l, err := e.lend(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	defer l.release()
	stored, err := l.announce(l.ctx, p.Nodes)
	if err != nil {
		return nil, err
	}
	result, err = onState(l.owner, func(ctx context.Context, st *state) (*protocol.GraphAppendResult, error) {
		return st.history.append(ctx, operation, p, rc)
	})
	stored(err == nil && result.Status == protocol.Appended)
	return result, err
}

// announce tells the protocol of nodes. If it takes them, nobody else's are told of until stored is called, which says
// whether they are history now.
func (l *lease) announce(ctx context.Context, nodes []protocol.NodeBody) (stored func(bool), err error) {
	p, t := l.plugins.Protocol(), l.set
	if len(nodes) == 0 || !p.Appends() {
		return func(bool) {}, nil
	}
	select {
	case t.appends <- struct{}{}:
	case <-l.owner.closed:
		return nil, ErrReloaded
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	_, err = workgroup.CallPlugin(ctx, l.eng.group, func(ctx context.Context) (struct{}, error) { return struct{}{}, p.AppendNodes(ctx, nodes) })
	if err != nil {
		<-t.appends
		return nil, err
	}
	return func(are bool) {
		if !are {
			l.eng.restoreProtocol(context.WithoutCancel(ctx), l.owner, p)
		}
		<-t.appends
	}, nil
}

// restoreProtocol has the protocol take up the session as it is, because what it was told of did not become history. If it cannot, the
// session is loaded again.
func (e *Engine) restoreProtocol(ctx context.Context, owner *state, p plugin.Protocol) {
	mine := func(f func(*state) (*plugin.View, error)) (*plugin.View, error) {
		return onState(owner, func(_ context.Context, st *state) (*plugin.View, error) { return f(st) })
	}
	view, err := mine(viewOf)
	if err == nil {
		_, err = workgroup.CallPlugin(ctx, e.group, func(ctx context.Context) (struct{}, error) { return struct{}{}, p.Restore(ctx, view) })
	}
	if err == nil || owner.ctx.Err() != nil {
		return
	}
	e.Log.Error("the session protocol could not drop nodes that were not stored; reloading the session", "session", owner.id, "error", err)
	// An error means that the session is gone, and its protocol with it.
	_, _ = mine(func(st *state) (*plugin.View, error) {
		st.broken = errors.Join(err, st.broken)
		return nil, nil
	})
}
