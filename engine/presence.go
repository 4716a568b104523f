package engine

import (
	"sync"
	"time"

	"lashd/rpc/protocol"
)

// clientReturn is how long a client that went away may take to come back before its calls are settled without it.
const clientReturn = 30 * time.Second

// presence knows which clients have a connection.
type presence struct {
	mu      sync.Mutex
	clients map[protocol.ClientID]*clientState
}

type clientState struct {
	connections int
	watchers    map[*absence]struct{}
	timer       *time.Timer
}

// absence tells that a client has been away for too long.
type absence struct {
	gone chan struct{}
	stop func()
}

// Connected says that a client has one more connection; the returned function that it has one less.
func (e *Engine) Connected(id protocol.ClientID) (disconnected func()) {
	p := &e.presence
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clientLocked(id)
	c.connections++
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	return sync.OnceFunc(func() { p.left(id) })
}

func (p *presence) clientLocked(id protocol.ClientID) *clientState {
	c, ok := p.clients[id]
	if !ok {
		c = &clientState{watchers: map[*absence]struct{}{}}
		p.clients[id] = c
	}
	return c
}

func (p *presence) left(id protocol.ClientID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clients[id]
	c.connections--
	if c.connections == 0 {
		p.awayLocked(id, c)
	}
}

// awayLocked gives an absent client time to come back before those who wait for it are told.
func (p *presence) awayLocked(id protocol.ClientID, c *clientState) {
	if len(c.watchers) == 0 {
		delete(p.clients, id)
		return
	}
	c.timer = time.AfterFunc(clientReturn, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.clients[id] != c || c.connections > 0 {
			return
		}
		for w := range c.watchers {
			close(w.gone)
		}
		delete(p.clients, id)
	})
}

// watch tells when a client is away for too long. The caller stops watching.
func (p *presence) watch(id protocol.ClientID) *absence {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clientLocked(id)
	w := &absence{gone: make(chan struct{})}
	c.watchers[w] = struct{}{}
	if c.connections == 0 && c.timer == nil {
		p.awayLocked(id, c)
	}
	w.stop = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(c.watchers, w)
		if len(c.watchers) == 0 && c.connections == 0 {
			if c.timer != nil {
				c.timer.Stop()
			}
			if p.clients[id] == c {
				delete(p.clients, id)
			}
		}
	}
	return w
}
