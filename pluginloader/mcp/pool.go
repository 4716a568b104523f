// Package mcp provides the tools of MCP servers, over stdio and streamable HTTP. The plugin loader
// calls it.
//
// A Pool belongs to the daemon and holds all connections. A Part belongs to one plugin, or to a
// server that a client added, and offers the tools of its servers to sessions. All sessions, and
// all plugins with the same configuration of a server, share one connection:
//
//   - endpoint is a server's complete configuration. Equal endpoints share a server.
//   - box is the sandbox of an endpoint. Sessions with another mode or workspace get another one, and so another process.
//   - server is one server with its users, its supervisor, its login and its list of tools.
//   - life is one connection or process of a server. program and remote are its two transports.
//
// The list of tools is stored with the plugin. After a restart, the tools are available at once,
// and a server starts only when one of them is called.
//
// A misbehaving server fails only its own calls, each with a typed error and within its time limit.
// lashd never repeats a call unless the server reported that it did not take it. Secrets of the
// configuration appear in no error and in no log. All types are safe for concurrent use.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lashd/engine/provider/keystore"
	"lashd/engine/sandbox"
	"lashd/pluginloader/child"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// PoolConfig configures a Pool.
type PoolConfig struct {
	Environ []string // lashd's environment; servers get a part of it
	Nonce   string   // prefix of the mark of processes, for proc.Sweep
	Version string   // of lashd, sent to servers
	Log     *slog.Logger
	Times   Times

	// Sandboxes has the places for the sandboxes of servers.
	Sandboxes sandbox.Places
	// Default is the sandbox mode of new sessions. If it has a sandbox, servers list their tools in one.
	Default protocol.SandboxMode
	// Settings are those of the user's configuration, by server. They apply to servers of the user's plugins and of clients.
	Settings map[string]manifest.ServerSandbox
	// Sampling has the servers that may use the models of sessions, with their limits. As Settings, it is the user's configuration.
	Sampling map[string]Sampling
	// Logins keeps OAuth logins; nil: they end with the daemon.
	Logins *keystore.Store
	// Denied returns the hosts that rules of a session deny, for requests that are not calls of tools; nil: none.
	Denied func(context.Context, protocol.SessionID) ([]string, error)
}

// Times are time limits. Zero means the default.
type Times struct {
	Connect   time.Duration // start, handshake and list of tools; default 10 s
	Call      time.Duration // a tool call, if the server has no own limit; default 10 min
	Stop      time.Duration // from the end of stdin to SIGTERM; default 2 s
	Terminate time.Duration // from SIGTERM to SIGKILL; default 1 s
	Idle      time.Duration // how long a server in a sandbox runs without a call; default 30 min
}

// Pool holds the connections of the daemon, one for each distinct endpoint. A server is ended when
// its last user leaves. All methods are safe for concurrent use.
type Pool struct {
	config PoolConfig
	seal   []byte       // key of the hashes, because they cover secrets
	starts atomic.Int64 // processes started, for their marks

	mu       sync.Mutex
	servers  map[hash]*server
	accounts map[string]*account // by the name of their address
	attempts map[string]*Attempt // logins in progress, by ID
	closed   bool                // Shutdown was called
}

// errNoPool rejects new users after Shutdown.
var errNoPool = errors.New("lashd is shutting down")

// use returns the server of an endpoint and registers by as a user.
func (p *Pool) use(e *endpoint, by *Part) (*server, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errNoPool
	}
	s := p.servers[e.key]
	if s == nil {
		s = newServer(p, e, by.config.Output)
		p.servers[e.key] = s
	}
	s.join(by)
	return s, nil
}

// leave removes a user. After the last one it ends the server and returns when nothing of it is
// left, or soon after ctx ends.
func (p *Pool) leave(ctx context.Context, s *server, by *Part) {
	p.mu.Lock()
	last := s.left(by)
	if last && p.servers[s.end.key] == s {
		delete(p.servers, s.end.key)
	}
	p.mu.Unlock()
	if last {
		s.close(ctx)
	}
}

// Shutdown ends all servers at once, also those in use. Later calls of Part fail.
func (p *Pool) Shutdown(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	all := slices.Collect(maps.Values(p.servers))
	clear(p.servers)
	p.mu.Unlock()
	var ending sync.WaitGroup
	for _, s := range all {
		ending.Go(func() { s.close(ctx) })
	}
	ending.Wait()
	return nil
}

// Part returns the servers of one plugin. It starts nothing. The caller calls Part.Shutdown.
func (p *Pool) Part(c Config) (*Part, error) {
	if c.Plugin == "" || c.Root == "" && !c.Literal {
		return nil, errors.New("mcp servers: plugin ID and directory are required")
	}
	if c.Output == nil {
		c.Output = child.NewLog(p.config.Log)
	}
	part := &Part{config: c, pool: p}
	for _, name := range slices.Sorted(maps.Keys(c.Servers)) {
		e, err := p.endpoint(&c, name)
		if err == nil {
			err = part.add(name, e)
		}
		if err != nil {
			part.release(context.Background()) // returns at once, because nothing has started
			return nil, fmt.Errorf("mcp server %q of plugin %s: %w", name, c.Plugin, err)
		}
	}
	part.compose()
	return part, nil
}
