package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"lashd/engine/clientserver"
	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// overlay is what one client adds to a session: tools that the client runs itself, prompt text, and whether the
// plugins' tools are hidden. A session has at most one; it is stored as a component and survives restarts.
type overlay struct {
	ClientID    protocol.ClientID     `json:"clientId,omitempty"`
	WithoutBase bool                  `json:"withoutBase,omitempty"`
	Tools       []protocol.ClientTool `json:"tools,omitempty"`
	Prompt      string                `json:"prompt,omitempty"`
	Passing     bool                  `json:"passing,omitempty"` // remove it when the client disconnects
}

// nothing reports whether the overlay is empty, so that the session is as it would be without a client.
func (o overlay) nothing() bool { return len(o.Tools) == 0 && o.Prompt == "" && !o.WithoutBase }

// sessionOverlay keeps the overlay of a session and the calls of client tools that wait for an answer. The
// session's actor owns it. The overlay changes only while the caller holds the plugin lock, so the holder may also
// read it from another goroutine. Calls survive a change of the overlay.
type sessionOverlay struct {
	overlay  overlay                         // as of the newest commit
	replaced chan struct{}                   // closed when the watch of the current overlay ends; nil: the overlay does not depend on a connection
	calls    map[protocol.CallID]*clientCall // unanswered calls of this and earlier overlays, by call id
}

// current returns the stored overlay; the zero value if there is none.
func (o *sessionOverlay) current() overlay { return o.overlay }

// component returns the pointer into which a load decodes the stored overlay.
func (o *sessionOverlay) component() any { return &o.overlay }

// provider returns the client of the overlay, and whether the overlay has a tool with this name.
func (o *sessionOverlay) provider(name string) (id protocol.ClientID, ok bool) {
	return o.overlay.ClientID, slices.ContainsFunc(o.overlay.Tools, func(t protocol.ClientTool) bool { return t.Name == name })
}

// addCall adds a call that waits for its client's answer.
func (o *sessionOverlay) addCall(id protocol.CallID, call *clientCall) { o.calls[id] = call }

// call returns a waiting call if it belongs to the client: one client cannot answer for another.
func (o *sessionOverlay) call(id protocol.CallID, client protocol.ClientID) (call *clientCall, ok bool) {
	call, ok = o.calls[id]
	return call, ok && call.client == client
}

// removeCall removes a call that was answered or no longer waits.
func (o *sessionOverlay) removeCall(id protocol.CallID) { delete(o.calls, id) }

// awaitsClient reports whether calls wait for their clients.
func (o *sessionOverlay) awaitsClient() bool { return len(o.calls) > 0 }

// othersVisit reports whether another client has added something that is tied to its connection. A client that
// sets an empty overlay must not remove that.
func (k *pluginLock) othersVisit(client protocol.ClientID) bool {
	o, guests := k.owner.overlay.current(), k.owner.clientServers.Load()
	return o.Passing && o.ClientID != client || guests != nil && guests.Client != client
}

// SetOverlay replaces what a client adds to a session. Setting the same overlay again changes nothing, unless it
// has MCP servers: these are connected again. An empty overlay leaves that of another connected client in place.
// The receipt does not store the settings of servers, so a repetition with other settings counts as the same
// request.
func (ss *Sessions) SetOverlay(ctx context.Context, client protocol.ClientID, p *protocol.SessionOverlayParams) (*protocol.SessionOverlayResult, error) {
	if err := cmp.Or(param.CheckOverlay(p), ss.checkOverlayServers(ctx, p)); err != nil {
		return nil, err
	}
	g, err := ss.connect(ctx, client, p.SessionID, p.MCPServers)
	if err != nil {
		return nil, err
	}
	defer g.CloseUnused()
	asked := *p
	asked.MCPServers = clientserver.Names(p.MCPServers)
	result, err := mutatePlugins(ctx, ss.eng, p.SessionID, "session/setOverlay", p.Key(), &asked, func(k *pluginLock, rc receipt.Request) (*protocol.SessionOverlayResult, error) {
		t, err := k.open(k.row().Config)
		if err != nil {
			return nil, err
		}
		st := k.owner // its overlay and its servers change only under the lock
		next := overlay{ClientID: client, Tools: p.Tools, Prompt: p.Prompt, WithoutBase: p.IncludeBaseTools != nil && !*p.IncludeBaseTools, Passing: p.WhileConnected}
		same := st.clientServers.Load() == nil && bytes.Equal(encode(next), encode(st.overlay.current()))
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

// setOverlay commits an overlay and new MCP servers with the resulting catalog. The catalog is built first,
// because building it may fail. After an error the tools, servers and catalog are as before.
func (k *pluginLock) setOverlay(t *pluginSet, next overlay, g *clientserver.Set, rc receipt.Request) (*protocol.SessionOverlayResult, error) {
	base, old := t.composer.Base(), k.owner.clientServers.Load()
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
		g.Disconnect()
		base.Rollback(before)
		return nil, errors.Join(err, t.overlay(k.owner.overlay.current(), old), k.refresh(t))
	}
	t.catalog.Store(catalog)
	t.prompt.Store(&next.Prompt)
	return result, nil
}

// store commits an overlay with the resulting tools and makes it current. others reports that the tools of the
// base changed, because servers came or went: then they are stored, too. It runs on the actor. A client that has
// given up its servers in the meantime fails it.
func (o *sessionOverlay) store(ctx context.Context, st *state, next overlay, tools protocol.ToolState, others bool, g *clientserver.Set, rc receipt.Request) (*protocol.SessionOverlayResult, error) {
	c := st.change(persistence.Commit{Component: []persistence.Component{{Name: componentOverlay, Body: encode(next)}}})
	if others {
		st.stored.storeTools(c, tools)
	}
	c.TellOf(protocol.Event{Type: protocol.EventToolsChanged, Tools: &tools})
	result := &protocol.SessionOverlayResult{Tools: tools, Seq: c.Seq()}
	c.Receipt = rc.With(result)
	if err := g.Adopt(); err != nil {
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

// watch removes the overlay when its client disconnects, if the overlay asks for that. It ends the watch of the
// previous overlay. It runs on the actor after each change of the overlay and after a load.
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

// dropOverlayLater removes an overlay whose client disconnected; replaced is closed when another overlay took its
// place. It retries until the removal is stored. Calls of the overlay's tools fail in the meantime.
func (ss *Sessions) dropOverlayLater(ctx context.Context, id protocol.SessionID, replaced <-chan struct{}) {
	ss.dropClientAddition(ctx, id, "an overlay", func(k *pluginLock) error { return k.dropOverlay(replaced) })
}

// dropOverlay commits an empty overlay, unless the overlay was replaced before the caller got the lock.
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
