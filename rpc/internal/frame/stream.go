// Package frame carries the JSON-RPC messages of one connection over a byte stream, as a jsonrpc2.ObjectStream. It does
// what that library leaves out: both framings, strict checks with an answer to each mistake, batches, ids as the peer
// wrote them, a limit on requests in flight, and writing that a slow peer cannot hold up for others.
//
// ReadObject belongs to one goroutine. All other methods may be called from several at once.
package frame

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"lashd/internal/strictjson"
	"lashd/rpc/protocol"
)

// ErrStalled ends a connection whose peer has stopped reading: it took no byte within WriteTimeout.
var ErrStalled = errors.New("frame: the peer does not read")

// Sizes in bytes, and times.
const (
	readBuffer  = 16 << 10
	closeGrace  = time.Second            // to write the queue after the stream is closed
	refuseAfter = 100 * time.Millisecond // for requests in flight to get their responses before a protocol error ends the connection
	discardFor  = 200 * time.Millisecond // for a rejected peer to finish writing, so that it reads the error
)

// Config limits a Stream. Zero fields mean the default.
type Config struct {
	MaxFrame         int           // bytes of a received message; default 8 MiB
	MaxQueued        int           // bytes to be written at which events wait; default 4 MiB
	MaxInFlight      int           // requests without a response; default 64
	MaxInFlightBytes int           // total size of these requests, though a single one may be larger; default 32 MiB
	WriteTimeout     time.Duration // for the peer to take at least one byte; default 10 s
	Linger           time.Duration // for requests in flight to finish after the peer's EOF; default none
	Limits           strictjson.Limits
	Written          func() // called after each write that sent bytes; may be nil
}

// Stream is one connection. One goroutine calls ReadObject, one calls Run, which writes, and any
// number call the other methods. Writing works without Run only up to the limits of the queue.
type Stream struct {
	rwc    io.ReadWriteCloser
	linger time.Duration
	limits strictjson.Limits
	in     reader
	ready  []message // valid messages of the last frame; belongs to the goroutine in ReadObject
	calls  calls
	out    *outbox
	write  *patientWriter
	hang   sync.Once     // closes rwc
	done   chan struct{} // closed when the stream has ended

	mu      sync.Mutex
	running bool
	ended   bool
	reason  error
}

var _ jsonrpc2.ObjectStream = (*Stream)(nil)

// New returns a Stream that owns rwc and closes it at its end.
func New(rwc io.ReadWriteCloser, cfg Config) *Stream {
	timeout := cmp.Or(cfg.WriteTimeout, 10*time.Second)
	s := &Stream{
		rwc:    rwc,
		linger: cfg.Linger,
		limits: cfg.Limits,
		in:     reader{src: bufio.NewReaderSize(rwc, readBuffer), max: cmp.Or(cfg.MaxFrame, protocol.MaxFrame)},
		calls: calls{
			max:      cmp.Or(cfg.MaxInFlight, 64),
			maxBytes: cmp.Or(cfg.MaxInFlightBytes, 32<<20),
			byNum:    make(map[uint64]call),
			byKey:    make(map[string]uint64),
		},
		out:  newOutbox(cmp.Or(cfg.MaxQueued, 4<<20), timeout),
		done: make(chan struct{}),
	}
	s.write = &patientWriter{w: rwc, timeout: timeout, hangUp: s.hangUp, written: cfg.Written}
	return s
}

// Run writes until the stream has ended or ctx is done, then closes the connection and returns Err.
// It first writes the queue if the peer takes it within closeGrace.
func (s *Stream) Run(ctx context.Context) error {
	s.begin()
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Add(1)
	stop := context.AfterFunc(ctx, func() {
		defer watching.Done()
		s.end(context.Cause(ctx))
	})
	err := s.out.drain(s.write)
	s.end(err)
	s.hangUp()
	if stop() {
		watching.Done()
	}
	return s.Err()
}

// begin notes that Run is responsible for closing the connection.
func (s *Stream) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = true
}

// Close ends the stream without an error. It does not wait: Run returns when the queue is written,
// at most closeGrace later.
func (s *Stream) Close() error {
	s.end(nil)
	return nil
}

// CloseWith is Close with a last message, encoded and without line breaks. Nothing is written after
// it.
func (s *Stream) CloseWith(last []byte) {
	s.out.seal(last)
	s.end(nil)
}

// Abort is Close without writing the queue.
func (s *Stream) Abort() {
	s.end(nil)
	s.hangUp()
}

// Err returns why the stream ended. It is nil while the stream has not ended, and after Close.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

// end records the first reason, and lets Run finish even if Run has not been called yet.
func (s *Stream) end(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended, s.reason = true, reason
	close(s.done)
	s.out.close()
	if !s.running && s.out.empty() {
		s.hangUp()
		return
	}
	time.AfterFunc(closeGrace, s.hangUp)
}

// hangUp closes the connection at once. Its error does not matter, since nothing more is read.
func (s *Stream) hangUp() {
	s.hang.Do(func() { s.rwc.Close() })
}

// WriteObject writes a response of jsonrpc2 with the id that the peer chose, or keeps it until its
// batch is complete. It also writes notifications. It rejects requests, because their responses
// would not be read.
func (s *Stream) WriteObject(obj any) error {
	data, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("frame: encode %T: %w", obj, err)
	}
	num, rest, err := cutID(data)
	if err != nil {
		return err
	}
	if num == 0 {
		return s.send(data)
	}
	c, ok := s.calls.take(num)
	if !ok {
		return fmt.Errorf("frame: answer to request %d, which is not in flight", num)
	}
	defer s.calls.sent()
	return s.settle(c.batch, c.place, fmt.Appendf(nil, `{"id":%s%s`, c.id, rest))
}

// settle writes the response to a message, or adds it to the message's batch. A nil answer means
// that the message gets no response.
func (s *Stream) settle(b *batch, place int, answer []byte) error {
	if b != nil {
		answer = b.put(place, answer)
	}
	if answer == nil {
		return nil
	}
	return s.send(answer)
}

// send queues a frame, and ends the stream if the peer has stalled.
func (s *Stream) send(frame []byte) error {
	err := s.out.answer(frame)
	if errors.Is(err, ErrStalled) {
		s.end(err)
		s.hangUp()
	}
	return err
}

// WriteRaw queues encoded messages without line breaks, one after the other. It waits while the
// peer is slow, until ctx is done; then none of them is queued. WriteRaw copies the frames.
func (s *Stream) WriteRaw(ctx context.Context, frames ...[]byte) error {
	return s.out.events(ctx, frames)
}

// Headers reports whether the peer uses Content-Length headers, as editors do. It is correct after
// the first message was read.
func (s *Stream) Headers() bool { return s.out.framed() == headers }

// Queued returns the number of bytes that wait to be written.
func (s *Stream) Queued() int { return s.out.size() }

// Lookup returns the internal id of the request in flight that the peer sent with the id raw.
func (s *Stream) Lookup(raw json.RawMessage) (jsonrpc2.ID, bool) {
	if strictjson.Check(raw, strictjson.Limits{}) != nil {
		return jsonrpc2.ID{}, false
	}
	num, ok := s.calls.find(raw)
	return jsonrpc2.ID{Num: num}, ok
}
