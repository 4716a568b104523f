package frame

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"
)

// lineEnd follows each message with line framing.
var lineEnd = []byte("\n")

// outbox is the queue of framed bytes between many writers and the one goroutine in Stream.Run.
// Events wait while it is full, so a slow client slows its own subscriptions only. Responses may
// fill twice the space, so that events alone never delay them; when that is full too, the client is
// considered stalled.
type outbox struct {
	max      int           // queued bytes at which events wait; responses wait at twice as many
	patience time.Duration // maximum wait of a response

	mu      sync.Mutex
	wake    sync.Cond // signals Run, with mu, that there are bytes to write
	framing framing
	queue   chunks
	scratch [40]byte      // buffer for a header
	queued  int           // bytes in queue and in the current write
	space   chan struct{} // closed at the next progress; nil if no goroutine waits
	sealed  bool          // accepts no more frames
	closed  bool          // Run ends when everything is written
}

// newOutbox returns an empty queue. max is in bytes.
func newOutbox(max int, patience time.Duration) *outbox {
	o := &outbox{max: max, patience: patience}
	o.wake.L = &o.mu
	return o
}

// setFraming sets the framing of later frames. The reader calls it once it knows the peer's
// framing.
func (o *outbox) setFraming(f framing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.framing = f
}

// events queues frames one after the other as soon as there is room. It returns the cause of ctx if
// that ends first; then none of them is queued.
func (o *outbox) events(ctx context.Context, frames [][]byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.queued >= o.max && !o.sealed {
		if err := o.awaitLocked(ctx.Done(), nil); err != nil {
			return context.Cause(ctx)
		}
	}
	if o.sealed {
		return jsonrpc2.ErrClosed
	}
	for _, f := range frames {
		o.appendLocked(f)
	}
	return nil
}

// answer queues one response. It waits only while responses alone fill twice the space of events,
// and fails with ErrStalled after patience.
func (o *outbox) answer(frame []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.queued >= 2*o.max && !o.sealed {
		timer := time.NewTimer(o.patience)
		defer timer.Stop()
		for o.queued >= 2*o.max && !o.sealed {
			if err := o.awaitLocked(nil, timer.C); err != nil {
				return err
			}
		}
	}
	if o.sealed {
		return jsonrpc2.ErrClosed
	}
	o.appendLocked(frame)
	return nil
}

// awaitLocked releases mu until Run has made progress. It fails if done or late comes first.
func (o *outbox) awaitLocked(done <-chan struct{}, late <-chan time.Time) error {
	if o.space == nil {
		o.space = make(chan struct{})
	}
	space := o.space
	o.mu.Unlock()
	defer o.mu.Lock()
	select {
	case <-space:
		return nil
	case <-done:
		return context.Canceled
	case <-late:
		return ErrStalled
	}
}

// appendLocked adds a frame with its header or line end, and wakes Run if the queue was empty.
func (o *outbox) appendLocked(frame []byte) {
	if len(o.queue) == 0 {
		o.wake.Signal()
	}
	if o.framing == headers {
		head := append(o.scratch[:0], "Content-Length: "...)
		head = strconv.AppendInt(head, int64(len(frame)), 10)
		head = append(head, "\r\n\r\n"...)
		o.queue.append(head)
		o.queue.append(frame)
		o.queued += len(head) + len(frame)
		return
	}
	o.queue.append(frame)
	o.queue.append(lineEnd)
	o.queued += len(frame) + len(lineEnd)
}

// framed returns the current framing.
func (o *outbox) framed() framing {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.framing
}

// size returns the number of bytes that are queued or being written.
func (o *outbox) size() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.queued
}

// seal queues a last frame even if the queue is full. Later frames are rejected.
func (o *outbox) seal(last []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.sealed {
		o.appendLocked(last)
	}
	o.sealed = true
	o.progressLocked()
}

// close rejects later frames, and lets Run end when it has written the queue.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sealed, o.closed = true, true
	o.wake.Signal()
	o.progressLocked()
}

// empty reports whether everything is written.
func (o *outbox) empty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.queued == 0
}

// take waits for bytes to write. It returns nil after close, when the queue is empty.
func (o *outbox) take() *chunk {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) == 0 {
		if o.closed {
			return nil
		}
		o.wake.Wait()
	}
	return o.queue.pop()
}

// wrote notes that n bytes were written, which makes room for waiting frames.
func (o *outbox) wrote(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queued -= n
	o.progressLocked()
}

// progressLocked wakes all waiting writers; each checks again whether there is room.
func (o *outbox) progressLocked() {
	if o.space != nil {
		close(o.space)
		o.space = nil
	}
}
