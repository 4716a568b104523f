package process

import (
	"errors"
	"io"
	"sync"
	"time"
)

var (
	errFull    = errors.New("does not read what it is sent")
	errStalled = errors.New("has stopped reading")
)

// outbox holds what a plugin has not read yet, so that nobody waits for it to read.
type outbox struct {
	max int

	mu     sync.Mutex
	queued []byte
	wake   chan struct{} // has room for one
	closed bool
}

func newOutbox(limit int) *outbox { return &outbox{max: limit, wake: make(chan struct{}, 1)} }

// put queues a line. What is put after close goes nowhere.
func (o *outbox) put(line []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return nil
	case len(o.queued) > 0 && len(o.queued)+len(line) > o.max:
		return errFull
	}
	o.queued = append(o.queued, line...)
	o.ring()
	return nil
}

// close ends run once all is written that was put before.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.ring()
}

func (o *outbox) ring() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// take gives what is queued, in exchange for a buffer to use again.
func (o *outbox) take(spare []byte) (queued []byte, closed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	queued = o.queued
	if cap(spare) > keepBuffer {
		spare = nil
	}
	o.queued = spare[:0]
	return queued, o.closed
}

// run writes until close, or until a write fails. A write that takes longer than patience is told to stalled.
func (o *outbox) run(w io.Writer, patience time.Duration, stalled func()) error {
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
		}
		if closed {
			return nil
		}
		spare = queued
	}
	return nil
}
