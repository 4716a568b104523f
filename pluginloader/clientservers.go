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

// Guest is an MCP server that a client has brought.
type Guest struct {
	*mcp.Part
	loader *Loader
	tried  chan struct{}
}

// Connect begins to connect an MCP server that a client brings, and returns at once. Those that are equal share a process, also between
// sessions. Tell is told of each change of its tools, of an error if the server cannot be reached or fails too often later, and of nil when it
// works again.
func (l *Loader) Connect(ctx context.Context, name string, s protocol.MCPServer, tell func(context.Context, error)) (*Guest, error) {
	g := &Guest{loader: l, tried: make(chan struct{})}
	life := context.WithoutCancel(ctx)
	held := (&manifest.Contributions{}).Confinement(l.config.Limits)
	part, err := l.servers.Part(mcp.Config{
		Plugin: "client", Literal: true, Confine: &held, Output: child.NewLog(l.config.Log.With("mcpServer", name)),
		Servers: map[string]manifest.Server{name: {
			Command: s.Command, Args: s.Args, Env: s.Env, URL: s.URL, Headers: s.Headers, TimeoutMs: s.TimeoutMs,
		}},
		Changed: func(ctx context.Context) { tell(ctx, nil) },
		Health: func() {
			l.beside("report the health of an MCP server", func() {
				<-g.tried // what comes of the first attempt is reported first
				tell(life, g.failing())
			})
		},
	})
	if err != nil {
		return nil, err
	}
	g.Part = part
	l.building.Go(func() {
		g.Resume(life) // whoever brings it again wants it tried again
		g.Start(life)
		close(g.tried)
		tell(life, g.failure())
	})
	return g, nil
}

// failure is why there are no tools; nil: there are.
func (g *Guest) failure() error {
	if s := g.Status()[0]; len(g.Known()) == 0 && s.LastError != "" {
		return errors.New(s.LastError)
	}
	return nil
}

// failing is why the server that was there does not work any more; nil: it works, or is tried on for now.
func (g *Guest) failing() error {
	switch s := g.Status()[0]; s.State {
	case mcp.Quarantined:
		return errors.New("it failed too often; it starts again when a client adds it again: " + s.LastError)
	case mcp.Unreachable:
		return errors.New("it is unreachable; lashd keeps retrying: " + s.LastError)
	}
	return nil
}

// Tried is closed once the server has listed its tools, or could not be reached.
func (g *Guest) Tried() <-chan struct{} { return g.tried }

// Leave lets go of the server, and returns at once. If nobody else has it, it is ended.
func (g *Guest) Leave() {
	g.loader.building.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
		defer cancel()
		if err := g.Shutdown(ctx); err != nil {
			g.loader.config.Log.Warn("an MCP server of a client did not end", "error", err)
		}
	})
}

// Taken is the plugin that has an MCP server whose tools would be named like those of a server of that name, in sessions that work in
// a directory; empty: none has.
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
