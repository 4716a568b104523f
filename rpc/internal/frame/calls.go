package frame

import (
	"bytes"
	"sync"

	"lashd/internal/strictjson"
)

// call is a request in flight.
type call struct {
	id    []byte // as the peer wrote it
	key   string // idKey of id
	size  int    // of the request, in bytes
	batch *batch // nil if the request is not part of one
	place int    // index in the batch
}

// calls is the table of requests in flight of one connection. Peers choose any string or number as
// an id, but jsonrpc2 has no negative or fractional ids. The table therefore gives each request an
// internal number and keeps the peer's id as it was written. It is safe for concurrent use.
type calls struct {
	// max limits the number of requests, maxBytes their total size.
	max, maxBytes int

	mu    sync.Mutex
	last  uint64
	byNum map[uint64]call
	byKey map[string]uint64
	bytes int
	open  int           // requests whose response is not queued yet: those in the table, and those just taken from it
	idle  chan struct{} // closed when open is 0; nil if no goroutine waits for that
}

// add admits a request and returns its internal number, or the problem to respond with: its id is
// in use, or too many requests are in flight.
func (c *calls) add(in call) (uint64, *problem) {
	in.key = idKey(in.id)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch _, taken := c.byKey[in.key]; {
	case taken:
		return 0, invalidRequest("A request with this id is in flight; use each id once.")
	case len(c.byNum) >= c.max:
		return 0, overloaded("Too many requests are in flight on this connection; wait for answers and send it again.")
	case c.bytes > 0 && c.bytes+in.size > c.maxBytes:
		return 0, overloaded("The requests in flight on this connection are too large together; wait for answers and send it again.")
	}
	c.last++
	in.id = bytes.Clone(in.id)
	c.byNum[c.last] = in
	c.byKey[in.key] = c.last
	c.bytes += in.size
	c.open++
	return c.last, nil
}

// take removes a request whose response is about to be written; the caller must call sent
// afterwards. The id is free at once, because a peer may use it again as soon as it has the
// response.
func (c *calls) take(num uint64) (call, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in, ok := c.byNum[num]
	if !ok {
		return call{}, false
	}
	delete(c.byNum, num)
	delete(c.byKey, in.key)
	c.bytes -= in.size
	return in, true
}

// sent counts a response that has been queued.
func (c *calls) sent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open--; c.open == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// find returns the internal number of the request in flight with a peer's id.
func (c *calls) find(id []byte) (uint64, bool) {
	key := idKey(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	num, ok := c.byKey[key]
	return num, ok
}

// empty returns a channel that is closed when the responses to all requests have been queued.
func (c *calls) empty() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	if c.open == 0 {
		close(c.idle)
		c.idle = nil
	}
	return idle
}

// idKey returns a key for comparing ids. Strings are equal however they are escaped; numbers are
// equal if they are written the same way.
func idKey(id []byte) string {
	if s, ok := strictjson.Text(id); ok {
		return "s" + s
	}
	return "n" + string(id)
}
