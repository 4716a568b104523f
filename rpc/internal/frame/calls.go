package frame

import (
	"bytes"
	"sync"

	"lashd/internal/strictjson"
)

// call is a request in flight.
type call struct {
	id    []byte // as it came
	key   string
	size  int
	batch *batch // nil if it came alone
	place int    // in the batch
}

// calls is the table of requests in flight of one connection, by the id which the peer chose and by ours.
type calls struct {
	max, maxBytes int

	mu    sync.Mutex
	last  uint64
	byNum map[uint64]call
	byKey map[string]uint64
	bytes int
	open  int           // requests whose answer was not sent: those in the table, and those just taken from it
	idle  chan struct{} // closed when open is 0; nil if nobody waits for that
}

// add admits a request and returns its id inside, or says why not.
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

// take removes a request, which is to be answered now; then sent must be called. Its id is free at once, because a
// peer may use it again as soon as it has the answer.
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

// sent counts an answer that was queued.
func (c *calls) sent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open--; c.open == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

func (c *calls) find(id []byte) (uint64, bool) {
	key := idKey(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	num, ok := c.byKey[key]
	return num, ok
}

// empty returns a channel that is closed once the answers to all requests have been queued.
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

// idKey makes equal strings equal, however they are escaped. Numbers are equal if they are written alike.
func idKey(id []byte) string {
	if s, ok := strictjson.Text(id); ok {
		return "s" + s
	}
	return "n" + string(id)
}
