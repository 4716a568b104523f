package engine

import (
	"context"
	"errors"

	"lashd/engine/plugin"
	"lashd/engine/receipt"
	"lashd/engine/workgroup"
	"lashd/rpc/protocol"
)

// Nodes can enter a session's history from outside its turns: graph/append, or a compaction. If the
// session's plugins are open and its protocol plugin wants to know, the engine announces such nodes to
// it before they are stored. Announcements come in the order of the commits and never on the actor. The
// protocol may reject them.

// appendAnnounced adds nodes to a session. It announces them to the protocol plugin first, if the
// plugins are open and the protocol implements AppendNodes. Otherwise it only stores them, without
// opening plugins for it. It checks their attachments first and stores the large ones with the nodes.
func (e *Engine) appendAnnounced(ctx context.Context, operation string, asked *protocol.GraphAppendParams, rc receipt.Request) (*protocol.GraphAppendResult, error) {
	p, blobs, err := e.attachments().Append(ctx, asked)
	if err != nil {
		return nil, err
	}
	result, err := do(ctx, e, p.SessionID, func(ctx context.Context, st *state) (_ *protocol.GraphAppendResult, err error) {
		if t := st.plugins.opened(); t == nil || !t.plugins.Protocol().Appends() {
			return st.history.append(ctx, operation, p, blobs, rc)
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
		return st.history.append(ctx, operation, p, blobs, rc)
	})
	stored(err == nil && result.Status == protocol.Appended)
	return result, err
}

// announce passes nodes to the session's protocol before they are stored. An error means that the
// protocol rejected them, or that the announcement could not be made; then nothing may be stored.
//
// On success the caller must call stored with true after the commit, or with false if the nodes
// were not stored. Until then no other nodes of the session are announced.
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

// restoreProtocol gives the protocol the session as it is stored, because announced nodes did not
// become history. If the protocol fails over it, restoreProtocol marks the state broken, and the
// actor loads the session again.
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
