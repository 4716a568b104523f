package client

import (
	"encoding/json"
	"sync"
)

// Inbox is a bounded queue of events. It connects the goroutine that reads the connection, which
// must not wait, to one consumer. It is safe for concurrent use.
type Inbox struct {
	limit int // bytes; 0: no limit
	more  chan struct{}

	mu     sync.Mutex
	events []json.RawMessage
	held   int  // bytes of events
	lost   bool // an event was dropped
}

// NewInbox returns an inbox for about limit bytes; a single event may exceed it. 0 means no limit.
func NewInbox(limit int) *Inbox { return &Inbox{limit: limit, more: make(chan struct{}, 1)} }

// Put adds an event. If there is no room, Put drops it and all later events. It reports full only for the first dropped event.
func (b *Inbox) Put(event json.RawMessage) (full bool) {
	b.mu.Lock()
	full = !b.lost && b.limit > 0 && b.held > 0 && b.held+len(event) > b.limit
	if b.lost = b.lost || full; !b.lost {
		b.events = append(b.events, event)
		b.held += len(event)
	}
	b.mu.Unlock()
	select {
	case b.more <- struct{}{}:
	default:
	}
	return full
}

// More returns a channel that is ready while the inbox has events.
func (b *Inbox) More() <-chan struct{} { return b.more }

// Take returns the events since the last Take.
func (b *Inbox) Take() []json.RawMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := b.events
	b.events, b.held = nil, 0
	return events
}

// Lost reports whether events were dropped. The caller must attach again to get them.
func (b *Inbox) Lost() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost
}
