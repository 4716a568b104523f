// Package presence tracks which clients are connected, and notifies code that waits for a client when it stays away. The engine
// uses it for work that only one client can do, such as tool calls that run in an editor.
package presence

import (
	"sync"
	"time"

	"lashd/rpc/protocol"
)

// clientReturn is how long a client may be disconnected before it counts as absent.
const clientReturn = 30 * time.Second

// Clients tracks the clients that are connected or watched. Safe for concurrent use.
type Clients struct {
	mu      sync.Mutex
	clients map[protocol.ClientID]*client
}

// Connected adds a connection of a client. It stops a running absence timer, so a client that reconnects in time never
// counts as absent. Call disconnected when the connection ends; only its first call counts.
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

// clientLocked returns the entry of a client and creates it if necessary. The caller holds p.mu.
func (p *Clients) clientLocked(id protocol.ClientID) *client {
	c, ok := p.clients[id]
	if !ok {
		c = &client{watchers: map[*Absence]struct{}{}}
		p.clients[id] = c
	}
	return c
}

// left removes a connection. The last one starts the absence timer.
func (p *Clients) left(id protocol.ClientID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clients[id]
	c.connections--
	if c.connections == 0 {
		p.awayLocked(id, c)
	}
}

// awayLocked starts the absence timer of a client without connections, or forgets the client if it has no watchers. The
// caller holds p.mu.
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

// Watch watches for the absence of a client. If the client is not connected, its time to return starts now. The caller
// must call Stop.
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

// New returns an empty set of clients.
func New() *Clients { return &Clients{clients: map[protocol.ClientID]*client{}} }

// client is the state of one client. Its timer runs only while it has watchers but no connections. An entry without
// both is removed, so the map does not grow with clients that never return.
type client struct {
	connections int
	watchers    map[*Absence]struct{}
	timer       *time.Timer
}

// Absence is a watch for a client's absence.
type Absence struct {
	Gone chan struct{} // closed when the client has been disconnected for clientReturn
	Stop func()        // ends the watch; safe to call twice
}
