package pluginloader

import (
	"context"
	"errors"
	"maps"
	"slices"

	"lashd/pluginloader/child"
	"lashd/pluginloader/manifest"
	"lashd/pluginloader/mcp"
	"lashd/rpc/protocol"
)

// Guest is an MCP server that a client added to a session. It belongs to no plugin and no
// workspace, and its configuration is taken literally: no variables are replaced. Leave releases
// it.
type Guest struct {
	*mcp.Part
	loader *Loader
	tried  chan struct{} // closed after the first attempt to connect
}

// Connect starts to connect an MCP server of a client and returns at once. Equal servers share a
// process, also between sessions. tell is called on any goroutine: with nil after each change of
// the tools and when the server works again, and with an error if the server cannot be reached or
// fails too often. The caller calls Leave.
func (l *Loader) Connect(ctx context.Context, name string, s protocol.MCPServer, tell func(context.Context, error)) (*Guest, error) {
	g := &Guest{loader: l, tried: make(chan struct{})}
	life := context.WithoutCancel(ctx)
	confinement := (&manifest.Contributions{}).Confinement(l.config.Limits)
	part, err := l.servers.Part(mcp.Config{
		Plugin: "client", Literal: true, Confine: &confinement, Output: child.NewLog(l.config.Log.With("mcpServer", name)),
		Servers: map[string]manifest.Server{name: {
			Command: s.Command, Args: s.Args, Env: s.Env, URL: s.URL, Headers: s.Headers, TimeoutMs: s.TimeoutMs,
		}},
		Changed: func(ctx context.Context) { tell(ctx, nil) },
		Health: func() {
			l.inBackground("report the health of an MCP server", func() {
				<-g.tried // report the first attempt first
				tell(life, g.failing())
			})
		},
	})
	if err != nil {
		return nil, err
	}
	g.Part = part
	l.building.Go(func() {
		g.Resume(life) // adding a server again ends its quarantine
		g.Start(life)
		close(g.tried)
		tell(life, g.failure())
	})
	return g, nil
}

// failure returns why the server lists no tools; nil: it does, or has not failed. It describes the
// first attempt to connect.
func (g *Guest) failure() error {
	if s := g.Status()[0]; len(g.Known()) == 0 && s.LastError != "" {
		return errors.New(s.LastError)
	}
	return nil
}

// failing returns why the server stopped working; nil: it works, or lashd has not given up yet.
// Clients show the text, so it says what happens next.
func (g *Guest) failing() error {
	switch s := g.Status()[0]; s.State {
	case mcp.Quarantined:
		return errors.New("it failed too often, so lashd starts it only when a client adds it again. The last failure: " + s.LastError)
	case mcp.Unreachable:
		return errors.New("it is unreachable, and lashd keeps trying. The last failure: " + s.LastError)
	}
	return nil
}

// Tried is closed once the server has listed its tools or the first attempt has failed.
func (g *Guest) Tried() <-chan struct{} { return g.tried }

// Leave releases the server and returns at once. If nothing else uses the server, it ends.
func (g *Guest) Leave() {
	g.loader.building.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
		defer cancel()
		if err := g.Shutdown(ctx); err != nil {
			g.loader.config.Log.Warn("an MCP server of a client did not end", "error", err)
		}
	})
}

// Taken returns the name of a plugin with an MCP server whose tools would have the same names as
// those of a client's server called name, in sessions that work in cwd. It is empty if there is
// none.
func (l *Loader) Taken(ctx context.Context, cwd, name string) (string, error) {
	s, err := l.setOf(ctx, cwd)
	if err != nil {
		return "", err
	}
	l.mu.Lock()
	units := s.units
	l.mu.Unlock()
	for _, u := range units {
		for _, server := range slices.Sorted(maps.Keys(u.manifest.MCPServers)) {
			if mcp.Prefix(server) == mcp.Prefix(name) {
				return u.name(), nil
			}
		}
	}
	return "", nil
}
