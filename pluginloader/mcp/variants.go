package mcp

import (
	"context"
	"sync"
	"time"
)

// variants are the servers of a member for sessions with different modes and workspaces, by the key of their endpoints. They start with
// the first call, and end after Times.Idle without one. The zero value has none. mu protects the fields below it.
type variants struct {
	ending sync.WaitGroup // goroutines that end a server

	mu     sync.Mutex
	closed bool
	all    map[hash]*variant
}

// variant is a server that runs for the sessions with one mode in one workspace.
type variant struct {
	server *server
	calls  int         // in progress
	idle   *time.Timer // ends the server; nil: it never was idle
}

// use returns the server of an endpoint for one call. The caller calls left when the call has ended.
func (v *variants) use(p *Part, e *endpoint) (s *server, left func(), err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return nil, nil, errNoPool
	}
	one := v.all[e.key]
	if one == nil {
		if s, err = p.pool.use(e, p); err != nil {
			return nil, nil, err
		}
		if v.all == nil {
			v.all = map[hash]*variant{}
		}
		one = &variant{server: s}
		v.all[e.key] = one
	}
	if one.idle != nil {
		one.idle.Stop()
	}
	one.calls++
	return one.server, func() { v.left(p, one) }, nil
}

// left ends a call, and lets the server end later if it was the last one.
func (v *variants) left(p *Part, one *variant) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if one.calls--; one.calls == 0 && !v.closed {
		one.idle = time.AfterFunc(p.pool.config.Times.Idle, func() { v.drop(p, one) })
	}
}

// drop ends a server that is idle.
func (v *variants) drop(p *Part, one *variant) {
	v.mu.Lock()
	if one.calls > 0 || v.closed {
		v.mu.Unlock()
		return
	}
	delete(v.all, one.server.end.key)
	v.ending.Add(1)
	v.mu.Unlock()
	defer v.ending.Done()
	p.pool.leave(context.Background(), one.server, p)
}

// servers returns the servers that run or ran last.
func (v *variants) servers() (all []*server) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range v.all {
		all = append(all, one.server)
	}
	return all
}

// close ends all servers and returns when nothing is left of them, or soon after ctx ends.
func (v *variants) close(ctx context.Context, p *Part) {
	v.mu.Lock()
	v.closed = true
	all := v.all
	v.all = nil
	v.mu.Unlock()
	for _, one := range all {
		if one.idle != nil {
			one.idle.Stop()
		}
		v.ending.Go(func() { p.pool.leave(ctx, one.server, p) })
	}
	v.ending.Wait()
}
