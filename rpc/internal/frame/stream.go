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

// ErrStalled ends a connection whose peer has stopped reading.
var ErrStalled = errors.New("frame: the peer does not read")

const (
	readBuffer  = 16 << 10
	closeGrace  = time.Second            // for what is queued when the stream is closed
	refuseAfter = 100 * time.Millisecond // for requests in flight to be answered before the connection is refused
	discardFor  = 200 * time.Millisecond // for a refused peer to finish writing, and so come to read why
)

// Config bounds a Stream. Zero fields mean the default.
type Config struct {
	MaxFrame         int           // bytes of a message that comes in; default 8 MiB
	MaxQueued        int           // bytes waiting to be written at which events wait; default 4 MiB
	MaxInFlight      int           // requests handed out and not answered; default 64
	MaxInFlightBytes int           // of those requests together, but one alone may be larger; default 32 MiB
	WriteTimeout     time.Duration // for the peer to take a byte; default 10 s
	Linger           time.Duration // for requests in flight to be answered after the peer's EOF; default none
	Limits           strictjson.Limits
	Written          func() // called after each write that took bytes; may be nil
}

// Stream is one connection. It needs Run to write.
type Stream struct {
	rwc    io.ReadWriteCloser
	linger time.Duration
	limits strictjson.Limits
	in     reader
	ready  []message // of a batch; owned by the goroutine in ReadObject
	calls  calls
	out    *outbox
	write  *patientWriter
	hang   sync.Once
	done   chan struct{} // closed when the stream has ended

	mu      sync.Mutex
	running bool
	ended   bool
	reason  error
}

var _ jsonrpc2.ObjectStream = (*Stream)(nil)

// New returns a Stream that owns rwc.
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

// Run writes until the stream has ended or ctx is done, then closes the connection and returns Err. What is queued at
// that time is written first if the peer takes it within a second.
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

func (s *Stream) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = true
}

// Close ends the stream without a reason. It does not wait: Run returns when what is queued has been written.
func (s *Stream) Close() error {
	s.end(nil)
	return nil
}

// CloseWith is Close with a last message, encoded and without line breaks. Nothing is written after it.
func (s *Stream) CloseWith(last []byte) {
	s.out.seal(last)
	s.end(nil)
}

// Abort is Close that writes nothing more.
func (s *Stream) Abort() {
	s.end(nil)
	s.hangUp()
}

// Err returns why the stream ended: nil while it has not, and after Close.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

// end records the first reason and lets the writer finish, even if Run is yet to be called.
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

// hangUp closes the connection, whatever is still to be written. Its error cannot matter: nothing more is read.
func (s *Stream) hangUp() {
	s.hang.Do(func() { s.rwc.Close() })
}

// WriteObject writes a response that jsonrpc2 sends, under the id that the peer gave, or keeps it until its batch is
// complete. It also writes notifications, but refuses requests, because their answers would not be read.
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

// settle writes the answer to a message that came alone, or adds it to its batch; nil is no answer.
func (s *Stream) settle(b *batch, place int, answer []byte) error {
	if b != nil {
		answer = b.put(place, answer)
	}
	if answer == nil {
		return nil
	}
	return s.send(answer)
}

func (s *Stream) send(frame []byte) error {
	err := s.out.answer(frame)
	if errors.Is(err, ErrStalled) {
		s.end(err)
		s.hangUp()
	}
	return err
}

// WriteRaw queues messages that are already encoded, without line breaks, one after the other. While the peer is slow
// it waits, until ctx is done; then none of them is written. The frames are not kept.
func (s *Stream) WriteRaw(ctx context.Context, frames ...[]byte) error {
	return s.out.events(ctx, frames)
}

// Headers tells whether the peer sends headers, as editors do. It is known once the first message was read.
func (s *Stream) Headers() bool { return s.out.framed() == headers }

// Queued tells how many bytes wait for the peer to read them.
func (s *Stream) Queued() int { return s.out.size() }

// Lookup returns the id inside of the request in flight that came with the id raw.
func (s *Stream) Lookup(raw json.RawMessage) (jsonrpc2.ID, bool) {
	if strictjson.Check(raw, strictjson.Limits{}) != nil {
		return jsonrpc2.ID{}, false
	}
	num, ok := s.calls.find(raw)
	return jsonrpc2.ID{Num: num}, ok
}
