package frame

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"
)

var lineEnd = []byte("\n")

// outbox is what is to be written, already framed. Its only reader is the writer.
type outbox struct {
	max      int           // bytes queued at which events wait; answers wait at twice as many
	patience time.Duration // how long an answer waits

	mu      sync.Mutex
	wake    sync.Cond // the writer waits here, with mu
	framing framing
	queue   chunks
	scratch [40]byte      // for a header
	queued  int           // bytes in queue and in the writer's hands
	space   chan struct{} // closed at the next progress; nil if nobody waits
	sealed  bool          // takes nothing more
	closed  bool          // and the writer leaves when all is written
}

func newOutbox(max int, patience time.Duration) *outbox {
	o := &outbox{max: max, patience: patience}
	o.wake.L = &o.mu
	return o
}

func (o *outbox) setFraming(f framing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.framing = f
}

// events queues frames in a row once there is room. It gives up when ctx is done.
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

// answer queues one frame. It waits only if answers alone have filled as much again as events may, and fails with
// ErrStalled when its patience ends.
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

// awaitLocked lets go of mu until the writer has made progress. It fails when done or late comes first.
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

func (o *outbox) framed() framing {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.framing
}

func (o *outbox) size() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.queued
}

// seal queues a last frame, room or not. Later ones are refused.
func (o *outbox) seal(last []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.sealed {
		o.appendLocked(last)
	}
	o.sealed = true
	o.progressLocked()
}

// close lets the writer leave when it has written what is queued.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sealed, o.closed = true, true
	o.wake.Signal()
	o.progressLocked()
}

func (o *outbox) empty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.queued == 0
}

// take waits for bytes to write. It returns nil when there will be no more.
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

// wrote makes room for n bytes.
func (o *outbox) wrote(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queued -= n
	o.progressLocked()
}

func (o *outbox) progressLocked() {
	if o.space != nil {
		close(o.space)
		o.space = nil
	}
}
