package frame

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"lashd/internal/strictjson"
)

// ReadObject waits for the next valid request or notification and stores it in v, which is what
// jsonrpc2 passes or a *jsonrpc2.Request. It responds to everything else itself.
//
// The error is io.EOF if the peer has finished between messages and io.ErrUnexpectedEOF inside one;
// otherwise it is also the error of Err. Only one goroutine may call it.
func (s *Stream) ReadObject(v any) error {
	for len(s.ready) == 0 {
		if err := s.receive(); err != nil {
			return err
		}
	}
	next := s.ready[0]
	s.ready = slices.Delete(s.ready, 0, 1)
	return next.store(v)
}

// receive reads one frame, responds to invalid messages in it, and adds the valid ones to ready.
func (s *Stream) receive() error {
	before := s.in.detected
	data, err := s.in.next()
	if s.in.detected != before {
		s.out.setFraming(s.in.framing)
	}
	if err != nil {
		return s.finish(err)
	}
	if err := strictjson.Check(data, s.limits); err != nil {
		return s.send(parseError(err).reply(nil))
	}
	if data = bytes.TrimSpace(data); data[0] == '[' {
		return s.receiveBatch(data)
	}
	return s.admit(parse(data), call{size: len(data)})
}

// receiveBatch admits all entries before the first one is returned, so that the batch cannot be
// complete too early.
func (s *Stream) receiveBatch(data []byte) error {
	n := 0
	for range strictjson.Elements(data) {
		if n++; n > maxBatch {
			break
		}
	}
	if n == 0 || n > maxBatch {
		return s.send(invalidRequest("A batch has 1 to %d entries.", maxBatch).reply(nil))
	}
	b, place := newBatch(n), 0
	for entry := range strictjson.Elements(data) {
		if err := s.admit(parse(entry), call{size: len(entry), batch: b, place: place}); err != nil {
			return err
		}
		place++
	}
	return nil
}

// admit adds a valid message to ready. It responds to an invalid one.
func (s *Stream) admit(m message, c call) error {
	if m.response {
		return s.settle(c.batch, c.place, nil)
	}
	if m.problem == nil && m.id != nil {
		c.id = m.id
		m.num, m.problem = s.calls.add(c)
	}
	if m.problem != nil {
		return s.settle(c.batch, c.place, m.problem.reply(m.id))
	}
	s.ready = append(s.ready, m)
	if m.id == nil {
		return s.settle(c.batch, c.place, nil)
	}
	return nil
}

// finish converts the error that ended reading into the error to return. After io.EOF it waits for
// responses in flight, up to Linger.
func (s *Stream) finish(err error) error {
	if p, ok := errors.AsType[*problem](err); ok {
		return s.refuse(p)
	}
	select {
	case <-s.done: // reading failed because this side closed the connection
		return closeReason(s.Err())
	default:
	}
	if err == io.EOF {
		s.awaitAnswers(s.linger)
		return err
	}
	if err == io.ErrUnexpectedEOF {
		s.end(err)
		return err
	}
	err = fmt.Errorf("frame: read: %w", err)
	s.end(err)
	return err
}

// closeReason returns io.EOF for a stream that was closed without a reason.
func closeReason(err error) error {
	if err == nil {
		return io.EOF
	}
	return err
}

// refuse responds with p and ends the stream; nothing is written after it. Requests before p get
// their response first if they finish within refuseAfter.
func (s *Stream) refuse(p *problem) error {
	s.awaitAnswers(refuseAfter)
	s.out.seal(p.reply(nil))
	timer := time.AfterFunc(discardFor, func() { s.end(p) })
	// Keep reading for a moment: a peer whose write fails would not read the response. The result does not matter.
	_, _ = io.Copy(io.Discard, s.in.src)
	timer.Stop()
	s.end(p)
	return p
}

// awaitAnswers waits until all requests in flight have a response, for at most this time. A peer
// that has finished writing may still read.
func (s *Stream) awaitAnswers(atMost time.Duration) {
	if atMost <= 0 {
		return
	}
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-s.calls.empty():
	case <-s.done:
	case <-timer.C:
	}
}

// idPrefix is how jsonrpc2 encodes the start of a response.
var idPrefix = []byte(`{"id":`)

// cutID splits an encoded response into its id and the bytes after the id. The id of a notification
// is 0.
func cutID(data []byte) (uint64, []byte, error) {
	rest, ok := bytes.CutPrefix(data, idPrefix)
	if !ok {
		return 0, data, nil
	}
	end := bytes.IndexAny(rest, ",}")
	num, err := strconv.ParseUint(string(rest[:max(end, 0)]), 10, 64)
	if err != nil || num == 0 || bytes.HasPrefix(rest[end:], []byte(`,"jsonrpc"`)) {
		return 0, nil, fmt.Errorf("frame: write %.40q: only answers to requests in flight and notifications can be written", data)
	}
	return num, rest[end:], nil
}
