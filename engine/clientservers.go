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

// Servers connects the MCP servers that clients bring to sessions.
type Servers interface {
	// Taken is the plugin that has a server of a name already where sessions work in a directory; empty: none has.
	Taken(ctx context.Context, cwd, name string) (plugin string, err error)
	// Connect begins to connect a server, and returns at once. It tells of each change of its tools, and of an error if it
	// cannot be reached, which it goes on to try.
	Connect(ctx context.Context, name string, s protocol.MCPServer, tell func(context.Context, error)) (Server, error)
}

// Server is an MCP server that a client has brought. Its tools are those that it has listed.
type Server interface {
	tool.Provider
	// Tried is closed once the server has listed its tools, or could not be reached.
	Tried() <-chan struct{}
	// Leave lets go of the server, and returns at once. Calls fail from then on.
	Leave()
}

// ServerTakenError means that a client brings an MCP server whose name one of a plugin's has.
type ServerTakenError struct{ Server, Plugin string }

func (e *ServerTakenError) Error() string {
	return fmt.Sprintf("plugin %[2]s already provides an MCP server %[1]q; choose another name", e.Server, e.Plugin)
}

// clientServers are the MCP servers that a client has brought to a session. They are there until it brings others, or is gone. Nothing of
// them is stored.
type clientServers struct {
	client    protocol.ClientID
	servers   map[string]Server
	closed    chan struct{} // closed once they are let go
	closeOnce sync.Once

	mu        sync.Mutex
	adopted   bool            // the session has them, or has had them
	abandoned bool            // up, by who has brought them
	failed    map[string]bool // those of which the session was told that they are not there
}

// connectWait is how long a client that brings servers waits for their tools. What comes later comes with tools/changed.
const connectWait = 2 * time.Second

// connect has servers begin, and waits a moment for their tools. Whoever asks either has the session take them, or lets them go.
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

// serverChanged brings other tools of a server into the session, or tells that it is not there, or is there again.
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

// setFailed notes whether a server is there, and tells how it was before.
func (g *clientServers) setFailed(name string, now bool) (before bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before = g.failed[name]
	g.failed[name] = now
	return before
}

// adopt has the session keep the servers, unless who has brought them has given up.
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

// closeUnused gives servers up that no session has taken.
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

// disconnect lets go of the servers. Once is enough.
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

// sources are the ids of the sources of tools that the servers are.
func (g *clientServers) sources() (ids []string) {
	if g == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(g.servers)) {
		ids = append(ids, g.source(name))
	}
	return ids
}

func (g *clientServers) source(name string) string { return "client:" + string(g.client) + "/" + name }

// register registers the tools of the servers. One that has a tool whose name is taken is left out.
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

// unregister makes orphans of the tools.
func (g *clientServers) unregister(r *tool.Registry) {
	for _, id := range g.sources() {
		_ = r.Upsert(id) // nothing is in nobody's way
	}
}

// BringServers connects the MCP servers that a client brings to a session which it has just created. Those that somebody has
// brought meanwhile stay.
func (ss *Sessions) BringServers(ctx context.Context, client protocol.ClientID, id protocol.SessionID, servers protocol.MCPServers) error {
	g, err := ss.connect(ctx, client, id, servers)
	if err != nil {
		return err
	}
	defer g.closeUnused()
	return ss.adoptServers(ctx, id, g)
}

// checkOverlayServers refuses servers that cannot be in a session.
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

// adoptServers gives servers to a session that has none.
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

// replaceServers puts servers in the place of those that are there. If the session's plugins are not open, their tools come with these.
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

// setServers lets the servers before go, and watches the client of these.
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

// dropServersLater takes servers out of a session, because their client is gone. If that cannot be stored their calls fail until it can.
func (ss *Sessions) dropServersLater(ctx context.Context, id protocol.SessionID, g *clientServers) {
	g.disconnect()
	ss.dropClientAddition(ctx, id, "tools", func(k *pluginLock) error {
		if k.owner.clientServers != g {
			return nil
		}
		return k.replaceServers(nil)
	})
}

// dropClientAddition has a session let go of what a client that is gone has left in it. If that cannot be stored it is tried again.
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

// replaceServerTools registers the tools of servers in the place of those that are there.
func (k *pluginLock) replaceServerTools(r *tool.Registry, g *clientServers) error {
	st, old := k.owner, k.owner.clientServers
	_, err := workgroup.CallPlugin(k.ctx, k.eng.group, func(context.Context) (struct{}, error) {
		old.unregister(r)
		g.register(r, st.logSkippedServer)
		return struct{}{}, nil
	})
	return err
}

// logSkippedServer tells of a server whose tools a session does not have.
func (s *session) logSkippedServer(server string, why error) {
	s.eng.Log.Warn("skipped the tools of a client's MCP server", "session", s.id, "server", server, "error", why)
}

// publish tells a session's observers of something.
func (e *Engine) publish(ctx context.Context, id protocol.SessionID, event change.Event) error {
	_, err := do(ctx, e, id, func(ctx context.Context, st *state) (struct{}, error) { return struct{}{}, st.commitEvents(ctx, event) })
	return err
}

// checkServers refuses servers that cannot be, or whose name a plugin's server has.
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

// serverNames are servers without what stands in them, for a receipt: that is stored.
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
