package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// overlay is what a client adds to a session: tools that the client itself runs, and a text for the prompt.
type overlay struct {
	ClientID    protocol.ClientID     `json:"clientId,omitempty"`
	WithoutBase bool                  `json:"withoutBase,omitempty"`
	Tools       []protocol.ClientTool `json:"tools,omitempty"`
	Prompt      string                `json:"prompt,omitempty"`
	Passing     bool                  `json:"passing,omitempty"` // remove it when the client disconnects
}

// nothing tells whether the session is as it would be without any client.
func (o overlay) nothing() bool { return len(o.Tools) == 0 && o.Prompt == "" && !o.WithoutBase }

// sessionOverlay is what a client adds to a session, and the calls of its tools that wait for an answer. The session's actor owns it; the
// overlay changes only for the holder of the plugins' lock, who may therefore read it, too.
type sessionOverlay struct {
	overlay  overlay                         // as of the newest commit
	replaced chan struct{}                   // closed when the watch of the current overlay ends; nil: the overlay does not depend on a connection
	calls    map[protocol.CallID]*clientCall // unanswered calls of this and earlier overlays, by call id
}

// current returns the overlay that is stored.
func (o *sessionOverlay) current() overlay { return o.overlay }

// component is where the stored overlay is decoded.
func (o *sessionOverlay) component() any { return &o.overlay }

// provider returns the client whose tool has a name.
func (o *sessionOverlay) provider(name string) (id protocol.ClientID, ok bool) {
	return o.overlay.ClientID, slices.ContainsFunc(o.overlay.Tools, func(t protocol.ClientTool) bool { return t.Name == name })
}

// addCall adds a call that waits for its client.
func (o *sessionOverlay) addCall(id protocol.CallID, call *clientCall) { o.calls[id] = call }

// call returns a call that waits for a client.
func (o *sessionOverlay) call(id protocol.CallID, client protocol.ClientID) (call *clientCall, ok bool) {
	call, ok = o.calls[id]
	return call, ok && call.client == client
}

// removeCall removes a call that does not wait any more.
func (o *sessionOverlay) removeCall(id protocol.CallID) { delete(o.calls, id) }

// awaitsClient reports whether calls wait for their clients.
func (o *sessionOverlay) awaitsClient() bool { return len(o.calls) > 0 }

// othersVisit tells whether another client has added something that goes with it: then that is not for this one to take away.
func (k *pluginLock) othersVisit(client protocol.ClientID) bool {
	o, guests := k.owner.overlay.current(), k.owner.clientServers
	return o.Passing && o.ClientID != client || guests != nil && guests.client != client
}

// SetOverlay replaces what a client adds to a session. Setting what is set already changes nothing, unless there are MCP servers: these
// are brought anew. A client that adds nothing leaves what another one adds while it is there. What stands in servers is not stored, so a
// repetition that has other ones is the same request.
func (ss *Sessions) SetOverlay(ctx context.Context, client protocol.ClientID, p *protocol.SessionOverlayParams) (*protocol.SessionOverlayResult, error) {
	if err := cmp.Or(param.CheckOverlay(p), ss.checkOverlayServers(ctx, p)); err != nil {
		return nil, err
	}
	g, err := ss.connect(ctx, client, p.SessionID, p.MCPServers)
	if err != nil {
		return nil, err
	}
	defer g.closeUnused()
	asked := *p
	asked.MCPServers = serverNames(p.MCPServers)
	result, err := mutatePlugins(ctx, ss.eng, p.SessionID, "session/setOverlay", p.Key(), &asked, func(k *pluginLock, rc receipt.Request) (*protocol.SessionOverlayResult, error) {
		t, err := k.open(k.row().Config)
		if err != nil {
			return nil, err
		}
		st := k.owner // its overlay and its servers change only under the lock
		next := overlay{ClientID: client, Tools: p.Tools, Prompt: p.Prompt, WithoutBase: p.IncludeBaseTools != nil && !*p.IncludeBaseTools, Passing: p.WhileConnected}
		same := st.clientServers == nil && bytes.Equal(encode(next), encode(st.overlay.current()))
		if g == nil && (same || next.nothing() && k.othersVisit(client)) {
			return &protocol.SessionOverlayResult{Tools: t.composer.Base().State(), Seq: k.row().Seq}, nil
		}
		return k.setOverlay(t, next, g, rc)
	})
	if err == nil && result.Duplicate {
		err = ss.adoptServers(ctx, p.SessionID, g)
	}
	return result, err
}

// setOverlay commits an overlay, and other servers, with the catalog that they make; if that fails, everything is as before.
func (k *pluginLock) setOverlay(t *pluginSet, next overlay, g *clientServers, rc receipt.Request) (*protocol.SessionOverlayResult, error) {
	base, old := t.composer.Base(), k.owner.clientServers
	before, generation := base.Checkpoint(), base.Generation()
	err := k.replaceServerTools(base, g)
	if err == nil {
		err = t.overlay(next, g)
	}
	var catalog *tool.Catalog
	if err == nil {
		catalog, err = k.catalog(t)
	}
	var result *protocol.SessionOverlayResult
	if err == nil {
		result, err = onState(k.owner, func(ctx context.Context, st *state) (*protocol.SessionOverlayResult, error) {
			return st.overlay.store(ctx, st, next, base.State(), base.Generation() != generation, g, rc)
		})
	}
	if err != nil {
		g.disconnect()
		base.Rollback(before)
		return nil, errors.Join(err, t.overlay(k.owner.overlay.current(), old), k.refresh(t))
	}
	t.catalog.Store(catalog)
	t.prompt.Store(&next.Prompt)
	return result, nil
}

// store commits an overlay, and the tools that the session has with it, if these are others.
func (o *sessionOverlay) store(ctx context.Context, st *state, next overlay, tools protocol.ToolState, others bool, g *clientServers, rc receipt.Request) (*protocol.SessionOverlayResult, error) {
	c := st.change(persistence.Commit{Component: []persistence.Component{{Name: componentOverlay, Body: encode(next)}}})
	if others {
		st.stored.storeTools(c, tools)
	}
	c.TellOf(protocol.Event{Type: protocol.EventToolsChanged, Tools: &tools})
	result := &protocol.SessionOverlayResult{Tools: tools, Seq: c.Seq()}
	c.Receipt = rc.With(result)
	if err := g.adopt(); err != nil {
		return nil, err
	}
	if err := st.commit(ctx, c); err != nil {
		return nil, err
	}
	o.overlay = next
	o.watch(st)
	st.setServers(st.ctx, g)
	return result, nil
}

// watch sees to it that an overlay goes with its client, if it is to. The one before is not watched any more.
func (o *sessionOverlay) watch(st *state) {
	if o.replaced != nil {
		close(o.replaced)
		o.replaced = nil
	}
	if !o.overlay.Passing {
		return
	}
	replaced, ctx := make(chan struct{}), context.WithoutCancel(st.ctx)
	o.replaced = replaced
	away := st.eng.Clients.Watch(o.overlay.ClientID)
	st.eng.group.GoActor(func() {
		defer away.Stop()
		select {
		case <-away.Gone:
			st.eng.Sessions.dropOverlayLater(ctx, st.id, replaced)
		case <-replaced:
		case <-st.closed: // the next load of the session watches again
		case <-st.eng.done():
		}
	})
}

// dropOverlayLater takes an overlay out of a session, because its client is gone; over is closed once another one is there. If that cannot be
// stored it is tried again: until then, calls of its tools fail.
func (ss *Sessions) dropOverlayLater(ctx context.Context, id protocol.SessionID, replaced <-chan struct{}) {
	ss.dropClientAddition(ctx, id, "an overlay", func(k *pluginLock) error { return k.dropOverlay(replaced) })
}

func (k *pluginLock) dropOverlay(replaced <-chan struct{}) error {
	select {
	case <-replaced:
		return nil
	default:
	}
	t, err := k.open(k.row().Config)
	if err != nil {
		return err
	}
	_, err = k.setOverlay(t, overlay{}, nil, receipt.Request{}) // also removes the servers that came with it
	return err
}
