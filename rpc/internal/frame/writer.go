package frame

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// drain writes the queue to w until the outbox is closed and empty, or a write fails.
func (o *outbox) drain(w *patientWriter) error {
	for {
		c := o.take()
		if c == nil {
			return nil
		}
		err := o.writeChunk(w, c.data[:c.n])
		c.free()
		if err != nil {
			return err
		}
	}
}

// writeChunk writes all of rest, and makes room in the queue after each write.
func (o *outbox) writeChunk(w *patientWriter, rest []byte) error {
	for len(rest) > 0 {
		n, err := w.Write(rest)
		if err != nil {
			return err
		}
		o.wrote(n)
		rest = rest[n:]
	}
	return nil
}

// patientWriter fails with ErrStalled if the peer takes no byte within timeout. It uses write
// deadlines if w has them. Otherwise a timer calls hangUp, which must make w fail.
type patientWriter struct {
	w           io.Writer
	timeout     time.Duration
	hangUp      func()
	written     func() // may be nil
	noDeadlines bool   // w has no write deadlines
}

// Write writes at least one byte of data, if data has any, or fails. Unlike io.Writer it may write
// less without an error.
func (p *patientWriter) Write(data []byte) (int, error) {
	n, err := p.write(data)
	if n > 0 && p.written != nil {
		p.written()
	}
	return n, err
}

// write writes with a deadline, or with a timer that hangs up.
func (p *patientWriter) write(data []byte) (int, error) {
	if !p.noDeadlines {
		if d, ok := p.w.(interface{ SetWriteDeadline(time.Time) error }); ok && d.SetWriteDeadline(time.Now().Add(p.timeout)) == nil {
			return p.result(p.w.Write(data))
		}
		p.noDeadlines = true
	}
	watchdog := time.AfterFunc(p.timeout, p.hangUp)
	n, err := p.w.Write(data)
	if !watchdog.Stop() {
		return n, ErrStalled
	}
	return p.result(n, err)
}

// result treats a deadline as progress if any byte was written.
func (p *patientWriter) result(n int, err error) (int, error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		if n > 0 {
			return n, nil
		}
		return 0, ErrStalled
	}
	if err != nil {
		return n, fmt.Errorf("frame: write: %w", err)
	}
	return n, nil
}
