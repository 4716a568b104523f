package child

import (
	"errors"
	"io"
	"sync"
	"time"
)

// Reasons to end a program that does not read its stdin.
var (
	ErrFull    = errors.New("does not read its input")
	ErrStalled = errors.New("stopped reading its input")
)

// Outbox queues lines for a program's stdin, so that senders never wait for the program to read.
// Put and Close are safe for concurrent use; one goroutine calls Run.
type Outbox struct {
	max int // bytes

	mu     sync.Mutex
	queued []byte
	leaves int           // bytes that Run is writing
	wake   chan struct{} // buffered, one value
	closed bool
}

// NewOutbox returns an Outbox that holds limit bytes. A single line may be larger if it is alone.
func NewOutbox(limit int) *Outbox { return &Outbox{max: limit, wake: make(chan struct{}, 1)} }

// Put queues a line without blocking. It returns ErrFull if there is no room. After Close, Put
// drops the line and returns nil.
func (o *Outbox) Put(line []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return nil
	case o.leaves+len(o.queued) > 0 && o.leaves+len(o.queued)+len(line) > o.max:
		return ErrFull
	}
	o.queued = append(o.queued, line...)
	o.ring()
	return nil
}

// Close makes Run return after it has written everything queued before.
func (o *Outbox) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.ring()
}

// ring wakes Run. Several rings before it runs count as one.
func (o *Outbox) ring() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// take returns the queued bytes and keeps spare as the next buffer.
func (o *Outbox) take(spare []byte) (queued []byte, closed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	queued = o.queued
	if cap(spare) > keepBuffer {
		spare = nil
	}
	o.queued, o.leaves = spare[:0], len(queued)
	return queued, o.closed
}

// written records that nothing is being written, which makes room for more lines.
func (o *Outbox) written() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.leaves = 0
}

// Run writes queued lines to w until Close, or until a write fails. If one write takes longer than
// patience, it calls stalled on another goroutine, which should end the program and so the write.
func (o *Outbox) Run(w io.Writer, patience time.Duration, stalled func()) error {
	var spare []byte
	watch := time.AfterFunc(patience, stalled)
	watch.Stop()
	defer watch.Stop()
	for range o.wake {
		queued, closed := o.take(spare)
		if len(queued) > 0 {
			watch.Reset(patience)
			if _, err := w.Write(queued); err != nil {
				return err
			}
			watch.Stop()
			o.written()
		}
		if closed {
			return nil
		}
		spare = queued
	}
	return nil
}
