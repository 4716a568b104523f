package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lashd/engine/change"
	"lashd/engine/clientserver"
	"lashd/engine/receipt"
	"lashd/engine/tool"
	"lashd/engine/workgroup"
	"lashd/rpc/protocol"
)

// connect connects the servers that a client adds to a session. See clientserver.Connect.
func (ss *Sessions) connect(ctx context.Context, client protocol.ClientID, id protocol.SessionID, wanted protocol.MCPServers) (*clientserver.Set, error) {
	return clientserver.Connect(ctx, ss.eng.Servers, client, wanted, func(ctx context.Context, c clientserver.Change) { ss.serverChanged(ctx, id, c) })
}

// serverChanged refreshes the session's tools after a change of a server, or publishes
// that the server failed or recovered. A recovery without an earlier failure is not published.
func (ss *Sessions) serverChanged(ctx context.Context, id protocol.SessionID, c clientserver.Change) {
	event := change.Event{Event: protocol.Event{Type: protocol.EventPluginStatus, Name: protocol.ServerRecovered, Text: "MCP server " + c.Server + " is available again"}}
	if c.Failed != nil {
		event = issueEvent("", protocol.Issue{Kind: "mcpServer", Code: protocol.ServerFailed, Message: fmt.Sprintf("MCP server %s is not available: %v", c.Server, c.Failed)})
	} else if ss.eng.ToolsChanged(ctx, id); !c.Recovered {
		return
	}
	if err := ss.eng.publish(ctx, id, event); err != nil {
		ss.eng.Log.Warn("could not publish the state of an MCP server", "session", id, "server", c.Server, "error", err)
	}
}

// BringServers connects the MCP servers of a client to a session that the client has just created.
// If another client has added servers since, those stay and these are closed.
func (ss *Sessions) BringServers(ctx context.Context, client protocol.ClientID, id protocol.SessionID, servers protocol.MCPServers) error {
	g, err := ss.connect(ctx, client, id, servers)
	if err != nil {
		return err
	}
	defer g.CloseUnused()
	return ss.adoptServers(ctx, id, g)
}

// checkOverlayServers validates the MCP servers of an overlay request against the session's
// directory.
func (ss *Sessions) checkOverlayServers(ctx context.Context, p *protocol.SessionOverlayParams) error {
	if len(p.MCPServers) == 0 {
		return nil
	}
	row, err := ss.eng.store.Session(ctx, p.SessionID)
	if err != nil {
		return err
	}
	return clientserver.Check(ctx, ss.eng.Servers, row.Cwd, p.MCPServers)
}

// adoptServers adds servers to a session that has none. If it has some, it does nothing.
func (ss *Sessions) adoptServers(ctx context.Context, id protocol.SessionID, g *clientserver.Set) error {
	if g == nil {
		return nil
	}
	_, err := lockedPlugins(ctx, ss.eng, id, func(k *pluginLock) (struct{}, error) {
		if k.owner.clientServers.Load() != nil {
			return struct{}{}, nil
		}
		return struct{}{}, k.replaceServers(g)
	})
	return err
}

// replaceServers replaces the client servers of the session with g; nil removes them. If the
// plugins are open, their tools change and the overlay is stored. Otherwise the tools are
// registered when the plugins open.
func (k *pluginLock) replaceServers(g *clientserver.Set) error {
	if t := k.owner.plugins.opened(); t != nil {
		_, err := k.setOverlay(t, k.owner.overlay.current(), g, receipt.Request{})
		return err
	}
	if err := g.Adopt(); err != nil {
		return err
	}
	_, err := onState(k.owner, func(_ context.Context, st *state) (struct{}, error) {
		st.setServers(st.ctx, g)
		return struct{}{}, nil
	})
	return err
}

// setServers disconnects the previous servers, stores g in the session and watches g's client. It
// runs on the actor.
func (s *session) setServers(ctx context.Context, g *clientserver.Set) {
	s.clientServers.Replace(g)
	if g == nil {
		return
	}
	away := s.eng.Clients.Watch(g.Client)
	ctx = context.WithoutCancel(ctx)
	s.eng.group.GoActor(func() {
		defer away.Stop()
		select {
		case <-away.Gone:
			s.eng.Sessions.dropServersLater(ctx, s.id, g)
		case <-g.Closed():
		case <-s.eng.done():
		}
	})
}

// dropServersLater removes the servers of a client that has disconnected. It disconnects them
// first, so their calls fail even while the removal cannot be stored.
func (ss *Sessions) dropServersLater(ctx context.Context, id protocol.SessionID, g *clientserver.Set) {
	g.Disconnect()
	ss.dropClientAddition(ctx, id, "tools", func(k *pluginLock) error {
		if k.owner.clientServers.Load() != g {
			return nil
		}
		return k.replaceServers(nil)
	})
}

// dropClientAddition removes what a disconnected client added to a session, and retries every
// spaceCheck until that is stored, the session is gone, or the engine stops. what names the
// addition in the log.
func (ss *Sessions) dropClientAddition(ctx context.Context, id protocol.SessionID, what string, drop func(*pluginLock) error) {
	for {
		_, err := lockedPlugins(ctx, ss.eng, id, func(k *pluginLock) (struct{}, error) { return struct{}{}, drop(k) })
		if err == nil || isGone(err) || errors.Is(err, ErrShuttingDown) {
			return
		}
		ss.eng.Log.Warn("could not remove the "+what+" of a disconnected client; retrying", "session", id, "error", err)
		select {
		case <-time.After(spaceCheck):
		case <-ss.eng.done():
			return
		}
	}
}

// replaceServerTools replaces the tools of the session's present servers in r with those of g.
func (k *pluginLock) replaceServerTools(r *tool.Registry, g *clientserver.Set) error {
	st, old := k.owner, k.owner.clientServers.Load()
	_, err := workgroup.CallPlugin(k.ctx, k.eng.group, func(context.Context) (struct{}, error) {
		old.Unregister(r)
		g.Register(r, st.logSkippedServer)
		return struct{}{}, nil
	})
	return err
}

// logSkippedServer logs that the tools of a client's MCP server were not registered.
func (s *session) logSkippedServer(server string, why error) {
	s.eng.Log.Warn("skipped the tools of a client's MCP server", "session", s.id, "server", server, "error", why)
}

// publish commits an event in a session, and so sends it to the session's subscribers.
func (e *Engine) publish(ctx context.Context, id protocol.SessionID, event change.Event) error {
	_, err := do(ctx, e, id, func(ctx context.Context, st *state) (struct{}, error) { return struct{}{}, st.commitEvents(ctx, event) })
	return err
}
