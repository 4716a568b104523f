package keystore

import (
	"context"
	"sync"
	"time"

	"lashd/engine/provider"
)

const (
	keptKey     = 5 * time.Minute // how long a key is used without asking again
	keptFailure = 3 * time.Second // how long a failure, or the lack of a key, is believed
)

// cache remembers the answer of a slow source of a key. Callers that ask at the same time share one reading, and none of them holds a
// lock while it waits. It is safe for concurrent use.
type cache struct {
	read func(context.Context) (provider.Secret, error) // returns within a limit of its own

	mu      sync.Mutex
	answer  answer
	until   time.Time     // when answer expires
	reading chan struct{} // closed when the reading that runs has ended; nil: none runs
}

// answer is what a source returned.
// All callers that waited for one reading get the same answer.
type answer struct {
	key provider.Secret
	err error
}

// newCache returns an empty cache. The first get starts a reading.
func newCache(read func(context.Context) (provider.Secret, error)) *cache { return &cache{read: read} }

// get returns the key. If ctx ends first, the reading continues for other callers.
func (c *cache) get(ctx context.Context) (provider.Secret, error) {
	for {
		got, reading := c.begin(ctx)
		if reading == nil {
			return got.key, got.err
		}
		select {
		case <-reading:
		case <-ctx.Done():
			return provider.Secret{}, context.Cause(ctx)
		}
	}
}

// begin returns the answer or, if there is none that is still valid, a channel that is closed when a reading has ended.
func (c *cache) begin(ctx context.Context) (answer, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().Before(c.until) {
		return c.answer, nil
	}
	if c.reading == nil {
		c.reading = make(chan struct{})
		go c.fill(context.WithoutCancel(ctx)) // read limits its own time
	}
	return answer{}, c.reading
}

// fill reads the key and wakes those who wait.
// It runs on a goroutine of its own, one at a time for each cache.
func (c *cache) fill(ctx context.Context) {
	key, err := c.read(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := keptKey
	if err != nil || key == (provider.Secret{}) {
		kept = keptFailure
	}
	c.answer, c.until = answer{key, err}, time.Now().Add(kept)
	close(c.reading)
	c.reading = nil
}
