// Package mcp provides the tools of MCP servers, over stdio and streamable HTTP. The plugin loader calls it. All sessions, and all
// plugins with the same configuration of a server, share one connection.
//
// A misbehaving server fails only its own calls, each with a typed error and within its time limit. All types are safe for
// concurrent use.
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

	"lashd/pluginloader/child"
)

// PoolConfig is what a Pool needs.
type PoolConfig struct {
	Environ []string // of the daemon; servers get what is allowed of it
	Nonce   string   // of the daemon: begins the mark of the processes, for proc.Sweep
	Version string   // of lashd, which servers are told
	Log     *slog.Logger
	Times   Times
}

// Times are how long things may take. Zero means the default.
type Times struct {
	Connect   time.Duration // to start a server, to shake hands and to list its tools; default 10 s
	Call      time.Duration // of a tool whose server has no limit of its own; default 10 min
	Stop      time.Duration // from the end of its stdin to SIGTERM; default 2 s
	Terminate time.Duration // from SIGTERM to SIGKILL; default 1 s
}

// Pool holds the connections of a daemon. What is equal is there once.
type Pool struct {
	config PoolConfig
	seal   []byte       // key of the hashes, as what is hashed has secrets in it
	starts atomic.Int64 // processes started

	mu      sync.Mutex
	servers map[hash]*server
	closed  bool
}

var errNoPool = errors.New("the pool is closed")

// use gives the server of an endpoint, which counts the part as one of its users.
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

// leave takes a user away. When the last one has left, the server is ended; leave returns when nothing is left of it, or soon
// after ctx is done.
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

// Shutdown ends all servers that are still in use, at once.
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

// Part makes the part of one plugin. It starts nothing.
func (p *Pool) Part(c Config) (*Part, error) {
	if c.Plugin == "" || c.Root == "" && !c.Literal {
		return nil, errors.New("mcp servers: no plugin, or no directory")
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
			part.release(context.Background()) // nothing has started: it does not wait
			return nil, fmt.Errorf("mcp server %q of plugin %s: %w", name, c.Plugin, err)
		}
	}
	part.compose()
	return part, nil
}
