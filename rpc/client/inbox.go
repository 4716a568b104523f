package client

import (
	"encoding/json"
	"sync"
)

// Inbox holds events until somebody takes them, however many: the goroutine that reads the connection must not wait.
type Inbox struct {
	mu     sync.Mutex
	events []json.RawMessage
	more   chan struct{}
}

// NewInbox returns an empty one.
func NewInbox() *Inbox { return &Inbox{more: make(chan struct{}, 1)} }

// Put adds an event.
func (b *Inbox) Put(event json.RawMessage) {
	b.mu.Lock()
	b.events = append(b.events, event)
	b.mu.Unlock()
	select {
	case b.more <- struct{}{}:
	default:
	}
}

// More has a value while there are events.
func (b *Inbox) More() <-chan struct{} { return b.more }

// Take returns what has come since the last time.
func (b *Inbox) Take() []json.RawMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := b.events
	b.events = nil
	return events
}
