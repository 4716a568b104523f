package client

import (
	"encoding/json"
	"sync"
)

// Inbox holds events until somebody takes them: the goroutine that reads the connection must not wait.
type Inbox struct {
	limit int
	more  chan struct{}

	mu     sync.Mutex
	events []json.RawMessage
	held   int
	lost   bool
}

// NewInbox returns an empty one, which holds about limit bytes; any number if it is 0.
func NewInbox(limit int) *Inbox { return &Inbox{limit: limit, more: make(chan struct{}, 1)} }

// Put adds an event. One that there is no room for is dropped, with all that come after it; of the first it says so.
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

// More has a value while there are events.
func (b *Inbox) More() <-chan struct{} { return b.more }

// Take returns what has come since the last time.
func (b *Inbox) Take() []json.RawMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := b.events
	b.events, b.held = nil, 0
	return events
}

// Lost tells whether events were dropped: those that are taken are followed by others, which are to be asked for again.
func (b *Inbox) Lost() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost
}
