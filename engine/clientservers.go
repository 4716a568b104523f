package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"lashd/engine/change"
	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/engine/tool"
	"lashd/engine/workgroup"
	"lashd/rpc/protocol"
)

// Servers connects the MCP servers that clients add to sessions. The plugin loader implements it.
// Its methods are safe for concurrent use.
type Servers interface {
	// Taken returns the plugin that already has a server of this name in sessions of directory cwd, or
	// "" if there is none.
	Taken(ctx context.Context, cwd, name string) (plugin string, err error)
	// Connect starts to connect a server and returns at once. It calls tell after each change of the
	// server's tools, and with an error when the server cannot be reached. It keeps trying then.
	Connect(ctx context.Context, name string, s protocol.MCPServer, tell func(context.Context, error)) (Server, error)
}

// Server is a connected MCP server of a client. As a tool provider it offers the tools that the
// server listed last. The caller of Connect must call Leave.
type Server interface {
	tool.Provider
	// Tried is closed once the server has listed its tools, or could not be reached.
	Tried() <-chan struct{}
	// Leave disconnects the server without waiting. Later calls fail.
	Leave()
}

// ServerTakenError means that a client adds an MCP server under a name that a plugin's server has.
type ServerTakenError struct{ Server, Plugin string }

func (e *ServerTakenError) Error() string {
	return fmt.Sprintf("plugin %[2]s already provides an MCP server %[1]q; choose another name", e.Server, e.Plugin)
}

// clientServers are the MCP servers that one client added to one session. They stay until the
// client adds others or disconnects. Nothing about them is stored, because their settings can
// contain secrets.
//
// A set is created by connect, and then either adopted by the session or closed by closeUnused. mu
// decides that race. A nil *clientServers means no servers: adopt, closeUnused, disconnect, sources
// and register accept it.
type clientServers struct {
	// client is the client that added the servers. Its disconnection removes them.
	client protocol.ClientID
	// servers maps names, as the client chose them, to connections. It does not change after
	// connect.
	servers map[string]Server
	// closed is closed once the servers are disconnected.
	closed chan struct{}
	// closeOnce makes disconnect idempotent.
	closeOnce sync.Once

	mu sync.Mutex
	// adopted is set once the session has the servers, even if it has dropped them since.
	adopted bool
	// abandoned is set once the request that connected the servers has ended. The session can no
	// longer adopt them.
	abandoned bool
	// failed has the servers that the session last reported as unreachable.
	failed map[string]bool
}

// connectWait is how long a request that adds servers waits for their tools. Tools that arrive
// later come with tools/changed.
const connectWait = 2 * time.Second

// connect starts connecting servers and waits up to connectWait for their tools. The caller must
// have the session adopt the result, and must call closeUnused in any case. It returns nil for no
// servers.
func (ss *Sessions) connect(ctx context.Context, client protocol.ClientID, id protocol.SessionID, wanted protocol.MCPServers) (*clientServers, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	g := &clientServers{client: client, servers: map[string]Server{}, closed: make(chan struct{}), failed: map[string]bool{}}
	for name, s := range wanted {
		server, err := ss.eng.Servers.Connect(ctx, name, s, func(ctx context.Context, failed error) { ss.serverChanged(ctx, id, g, name, failed) })
		if err != nil {
			g.disconnect()
			return nil, err
		}
		g.servers[name] = server
	}
	moment := time.NewTimer(connectWait)
	defer moment.Stop()
	for _, s := range g.servers {
		select {
		case <-s.Tried():
		case <-moment.C:
			return g, nil
		case <-ctx.Done():
			g.disconnect()
			return nil, context.Cause(ctx)
		}
	}
	return g, nil
}

// serverChanged is called on a change of a server. It refreshes the session's tools, or publishes
// that the server failed or recovered. A recovery without an earlier failure is not published.
func (ss *Sessions) serverChanged(ctx context.Context, id protocol.SessionID, g *clientServers, name string, failed error) {
	select {
	case <-g.closed:
		return
	default:
	}
	before := g.setFailed(name, failed != nil)
	event := change.Event{Event: protocol.Event{Type: protocol.EventPluginStatus, Name: protocol.ServerRecovered, Text: "MCP server " + name + " is available again"}}
	if failed != nil {
		event = issueEvent("", protocol.Issue{Kind: "mcpServer", Code: protocol.ServerFailed, Message: fmt.Sprintf("MCP server %s is not available: %v", name, failed)})
	} else if ss.eng.ToolsChanged(ctx, id); !before {
		return
	}
	if err := ss.eng.publish(ctx, id, event); err != nil {
		ss.eng.Log.Warn("could not publish the state of an MCP server", "session", id, "server", name, "error", err)
	}
}

// setFailed records whether a server is unreachable now, and returns whether it was before.
func (g *clientServers) setFailed(name string, now bool) (before bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before = g.failed[name]
	g.failed[name] = now
	return before
}

// adopt makes the session the owner of the servers. It fails if the request that connected them has
// already ended.
func (g *clientServers) adopt() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.abandoned {
		return context.Canceled
	}
	g.adopted = true
	return nil
}

// closeUnused disconnects the servers unless a session adopted them. The function that called
// connect defers it.
func (g *clientServers) closeUnused() {
	if g == nil {
		return
	}
	g.mu.Lock()
	g.abandoned = true
	taken := g.adopted
	g.mu.Unlock()
	if !taken {
		g.disconnect()
	}
}

// disconnect disconnects all servers without waiting for them. Later calls do nothing.
func (g *clientServers) disconnect() {
	if g == nil {
		return
	}
	g.closeOnce.Do(func() {
		close(g.closed)
		for _, s := range g.servers {
			s.Leave()
		}
	})
}

// sources returns the ids under which the servers are registered as tool sources, sorted by name.
func (g *clientServers) sources() (ids []string) {
	if g == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(g.servers)) {
		ids = append(ids, g.source(name))
	}
	return ids
}

// source returns the tool source id of a server. It includes the client, so that it differs from
// every plugin's source.
func (g *clientServers) source(name string) string { return "client:" + string(g.client) + "/" + name }

// register adds the tools of the servers to r. If a server has a tool whose name is already taken,
// all its tools are skipped and skipped is called with the reason.
func (g *clientServers) register(r *tool.Registry, skipped func(server string, why error)) {
	if g == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(g.servers)) {
		if err := r.Upsert(g.source(name), g.servers[name]); err != nil {
			skipped(name, err)
		}
	}
}

// unregister removes the providers of the tools from r. The tools stay known, but without a
// provider.
func (g *clientServers) unregister(r *tool.Registry) {
	for _, id := range g.sources() {
		_ = r.Upsert(id) // without tools there can be no conflict
	}
}

// BringServers connects the MCP servers of a client to a session that the client has just created.
// If another client has added servers since, those stay and these are closed.
func (ss *Sessions) BringServers(ctx context.Context, client protocol.ClientID, id protocol.SessionID, servers protocol.MCPServers) error {
	g, err := ss.connect(ctx, client, id, servers)
	if err != nil {
		return err
	}
	defer g.closeUnused()
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
	return ss.checkServers(ctx, row.Cwd, p.MCPServers)
}

// adoptServers adds servers to a session that has none. If it has some, it does nothing.
func (ss *Sessions) adoptServers(ctx context.Context, id protocol.SessionID, g *clientServers) error {
	if g == nil {
		return nil
	}
	_, err := lockedPlugins(ctx, ss.eng, id, func(k *pluginLock) (struct{}, error) {
		if k.owner.clientServers != nil {
			return struct{}{}, nil
		}
		return struct{}{}, k.replaceServers(g)
	})
	return err
}

// replaceServers replaces the client servers of the session with g; nil removes them. If the
// plugins are open, their tools change and the overlay is stored. Otherwise the tools are
// registered when the plugins open.
func (k *pluginLock) replaceServers(g *clientServers) error {
	if t := k.owner.plugins.opened(); t != nil {
		_, err := k.setOverlay(t, k.owner.overlay.current(), g, receipt.Request{})
		return err
	}
	if err := g.adopt(); err != nil {
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
func (s *session) setServers(ctx context.Context, g *clientServers) {
	s.clientServers.disconnect()
	s.clientServers = g
	if g == nil {
		return
	}
	away := s.eng.Clients.Watch(g.client)
	ctx = context.WithoutCancel(ctx)
	s.eng.group.GoActor(func() {
		defer away.Stop()
		select {
		case <-away.Gone:
			s.eng.Sessions.dropServersLater(ctx, s.id, g)
		case <-g.closed:
		case <-s.eng.done():
		}
	})
}

// dropServersLater removes the servers of a client that has disconnected. It disconnects them
// first, so their calls fail even while the removal cannot be stored.
func (ss *Sessions) dropServersLater(ctx context.Context, id protocol.SessionID, g *clientServers) {
	g.disconnect()
	ss.dropClientAddition(ctx, id, "tools", func(k *pluginLock) error {
		if k.owner.clientServers != g {
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
func (k *pluginLock) replaceServerTools(r *tool.Registry, g *clientServers) error {
	st, old := k.owner, k.owner.clientServers
	_, err := workgroup.CallPlugin(k.ctx, k.eng.group, func(context.Context) (struct{}, error) {
		old.unregister(r)
		g.register(r, st.logSkippedServer)
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

// checkServers validates the MCP servers of a request. It refuses malformed ones, too many of them,
// and names that a server of a plugin has.
func (ss *Sessions) checkServers(ctx context.Context, cwd string, wanted protocol.MCPServers) error {
	switch {
	case len(wanted) == 0:
		return nil
	case ss.eng.Servers == nil:
		return param.Bad("/mcpServers", "must be empty: this lashd accepts no MCP servers from clients")
	case len(wanted) > param.MaxServers:
		return param.Bad("/mcpServers", "has %d servers, at most %d", len(wanted), param.MaxServers)
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		pointer := "/mcpServers/" + param.Escape(name)
		if len(name) == 0 || len(name) > 64 || strings.ContainsFunc(name, func(c rune) bool { return !param.IsIDRune(c) }) {
			return param.Bad(pointer, "must have a name of 1 to 64 letters, digits, - and _")
		}
		if err := param.CheckServer(pointer, wanted[name]); err != nil {
			return err
		}
		plugin, err := ss.eng.Servers.Taken(ctx, cwd, name)
		if err != nil {
			return err
		}
		if plugin != "" {
			return &ServerTakenError{name, plugin}
		}
	}
	return nil
}

// serverNames returns the servers without their settings. The receipt of the request uses it,
// because it is stored and the settings can contain secrets.
func serverNames(servers protocol.MCPServers) protocol.MCPServers {
	if len(servers) == 0 {
		return nil
	}
	names := protocol.MCPServers{}
	for name := range servers {
		names[name] = protocol.MCPServer{}
	}
	return names
}
