// Package presence knows which clients have a connection, and tells those who wait for one when it stays away.
package presence

import (
	"sync"
	"time"

	"lashd/rpc/protocol"
)

// clientReturn is how long a client that went away may take to come back before it counts as absent.
const clientReturn = 30 * time.Second

// Clients are the clients that have a connection, or are waited for. It is safe for concurrent use.
type Clients struct {
	mu      sync.Mutex
	clients map[protocol.ClientID]*client
}

// Connected counts one more connection of a client; the returned function counts one less.
func (p *Clients) Connected(id protocol.ClientID) (disconnected func()) {
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

func (p *Clients) clientLocked(id protocol.ClientID) *client {
	c, ok := p.clients[id]
	if !ok {
		c = &client{watchers: map[*Absence]struct{}{}}
		p.clients[id] = c
	}
	return c
}

func (p *Clients) left(id protocol.ClientID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clients[id]
	c.connections--
	if c.connections == 0 {
		p.awayLocked(id, c)
	}
}

// awayLocked gives an absent client time to come back before those who wait for it are told.
func (p *Clients) awayLocked(id protocol.ClientID, c *client) {
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
			close(w.Gone)
		}
		delete(p.clients, id)
	})
}

// Watch watches for the absence of a client, which may be away already. The caller calls Stop.
func (p *Clients) Watch(id protocol.ClientID) *Absence {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clientLocked(id)
	w := &Absence{Gone: make(chan struct{})}
	c.watchers[w] = struct{}{}
	if c.connections == 0 && c.timer == nil {
		p.awayLocked(id, c)
	}
	w.Stop = func() {
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

// New returns no clients.
func New() *Clients { return &Clients{clients: map[protocol.ClientID]*client{}} }

type client struct {
	connections int
	watchers    map[*Absence]struct{}
	timer       *time.Timer
}

// Absence tells when a client has been away for too long.
type Absence struct {
	Gone chan struct{} // closed then
	Stop func()        // ends the watch
}
