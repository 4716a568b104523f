// Package clientserver connects the MCP servers that a client adds to one session, and offers them while the client is connected. The
// engine decides which session has which set. Nothing about the servers is stored, because their settings can contain secrets.
package clientserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"lashd/engine/param"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// Host connects the MCP servers that clients add to sessions. The plugin loader implements it.
// Its methods are safe for concurrent use.
type Host interface {
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

// TakenError means that a client adds an MCP server under a name that a plugin's server has.
type TakenError struct{ Server, Plugin string }

func (e *TakenError) Error() string {
	return fmt.Sprintf("plugin %[2]s already provides an MCP server %[1]q; choose another name", e.Server, e.Plugin)
}

// Set has the MCP servers that one client added to one session. They stay until the client adds
// others or disconnects.
//
// Connect creates a set. Then either a session adopts it, or CloseUnused disconnects it; mu decides
// that race. A nil *Set means no servers: every method but Client and Closed accepts it.
type Set struct {
	// Client is the client that added the servers. Its disconnection removes them.
	Client protocol.ClientID
	// servers maps names, as the client chose them, to connections. It does not change after
	// Connect.
	servers map[string]Server
	// closed is closed once the servers are disconnected.
	closed chan struct{}
	// closeOnce makes Disconnect idempotent.
	closeOnce sync.Once

	mu sync.Mutex
	// adopted is set once the session has the servers, even if it has dropped them since.
	adopted bool
	// abandoned is set once the request that connected the servers has ended. The session can no
	// longer adopt them.
	abandoned bool
	// failed has the servers that were last reported as unreachable.
	failed map[string]bool
}

// Change is a change of a server of a set.
type Change struct {
	Server string
	// Failed is why the server cannot be reached; nil: its tools changed, or it can be reached again.
	Failed error
	// Recovered means that the server could not be reached before.
	Recovered bool
}

// connectWait is how long a request that adds servers waits for their tools. Tools that arrive
// later come with tools/changed.
const connectWait = 2 * time.Second

// Connect starts connecting servers and waits up to connectWait for their tools. The caller must
// have a session adopt the result, and must call CloseUnused in any case. It returns nil for no
// servers. changed is called on each change of a server until the set is disconnected, from any goroutine.
func Connect(ctx context.Context, host Host, client protocol.ClientID, wanted protocol.MCPServers, changed func(context.Context, Change)) (*Set, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	g := &Set{Client: client, servers: map[string]Server{}, closed: make(chan struct{}), failed: map[string]bool{}}
	for name, s := range wanted {
		server, err := host.Connect(ctx, name, s, func(ctx context.Context, failed error) { g.tell(ctx, name, failed, changed) })
		if err != nil {
			g.Disconnect()
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
			g.Disconnect()
			return nil, context.Cause(ctx)
		}
	}
	return g, nil
}

// tell passes a change of a server on, unless the set is disconnected.
func (g *Set) tell(ctx context.Context, name string, failed error, changed func(context.Context, Change)) {
	select {
	case <-g.closed:
		return
	default:
	}
	before := g.setFailed(name, failed != nil)
	changed(ctx, Change{Server: name, Failed: failed, Recovered: before && failed == nil})
}

// Closed returns a channel that is closed once the servers are disconnected.
func (g *Set) Closed() <-chan struct{} { return g.closed }

// setFailed records whether a server is unreachable now, and returns whether it was before.
func (g *Set) setFailed(name string, now bool) (before bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before = g.failed[name]
	g.failed[name] = now
	return before
}

// Adopt makes the session the owner of the servers. It fails if the request that connected them has
// already ended.
func (g *Set) Adopt() error {
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

// CloseUnused disconnects the servers unless a session adopted them. The function that called
// Connect defers it.
func (g *Set) CloseUnused() {
	if g == nil {
		return
	}
	g.mu.Lock()
	g.abandoned = true
	taken := g.adopted
	g.mu.Unlock()
	if !taken {
		g.Disconnect()
	}
}

// Disconnect disconnects all servers without waiting for them. Later calls do nothing.
func (g *Set) Disconnect() {
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

// Sources returns the ids under which the servers are registered as tool sources, sorted by name.
func (g *Set) Sources() (ids []string) {
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
func (g *Set) source(name string) string { return "client:" + string(g.Client) + "/" + name }

// Register adds the tools of the servers to r. If a server has a tool whose name is already taken,
// all its tools are skipped and skipped is called with the reason.
func (g *Set) Register(r *tool.Registry, skipped func(server string, why error)) {
	if g == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(g.servers)) {
		if err := r.Upsert(g.source(name), g.servers[name]); err != nil {
			skipped(name, err)
		}
	}
}

// Unregister removes the providers of the tools from r. The tools stay known, but without a
// provider.
func (g *Set) Unregister(r *tool.Registry) {
	for _, id := range g.Sources() {
		_ = r.Upsert(id) // without tools there can be no conflict
	}
}

// Check validates the MCP servers of a request of a session in directory cwd. It refuses malformed ones, too many of them,
// and names that a server of a plugin has. Without a host it accepts none.
func Check(ctx context.Context, host Host, cwd string, wanted protocol.MCPServers) error {
	switch {
	case len(wanted) == 0:
		return nil
	case host == nil:
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
		plugin, err := host.Taken(ctx, cwd, name)
		if err != nil {
			return err
		}
		if plugin != "" {
			return &TakenError{name, plugin}
		}
	}
	return nil
}

// Names returns the servers without their settings. The receipt of the request uses it,
// because it is stored and the settings can contain secrets.
func Names(servers protocol.MCPServers) protocol.MCPServers {
	if len(servers) == 0 {
		return nil
	}
	names := protocol.MCPServers{}
	for name := range servers {
		names[name] = protocol.MCPServer{}
	}
	return names
}
