package child

import (
	"errors"
	"io"
	"sync"
	"time"
)

// Why a program that does not read is ended.
var (
	ErrFull    = errors.New("does not read what it is sent")
	ErrStalled = errors.New("has stopped reading")
)

// Outbox holds what a program has not read yet, so that nobody waits for it to read.
type Outbox struct {
	max int

	mu     sync.Mutex
	queued []byte
	leaves int           // bytes that are being written
	wake   chan struct{} // has room for one
	closed bool
}

// NewOutbox makes an Outbox that holds limit bytes, but one line may be larger.
func NewOutbox(limit int) *Outbox { return &Outbox{max: limit, wake: make(chan struct{}, 1)} }

// Put queues a line. What is put after Close goes nowhere.
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

// Close ends Run once all is written that was put before.
func (o *Outbox) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.ring()
}

func (o *Outbox) ring() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// take gives what is queued, in exchange for a buffer to use again.
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

func (o *Outbox) written() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.leaves = 0
}

// Run writes until Close, or until a write fails. A write that takes longer than patience is told to stalled.
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
