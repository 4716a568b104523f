package frame

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// drain writes what is put into the outbox to w until it is closed and empty.
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

// patientWriter fails with ErrStalled when the peer takes nothing for the whole of timeout. It uses write deadlines if
// w has them, and otherwise calls hangUp, which must make w fail.
type patientWriter struct {
	w       io.Writer
	timeout time.Duration
	hangUp  func()
	written func() // may be nil
	blunt   bool   // w has no deadlines
}

// Write writes at least one byte of p, if p has any, or fails.
func (p *patientWriter) Write(data []byte) (int, error) {
	n, err := p.write(data)
	if n > 0 && p.written != nil {
		p.written()
	}
	return n, err
}

func (p *patientWriter) write(data []byte) (int, error) {
	if !p.blunt {
		if d, ok := p.w.(interface{ SetWriteDeadline(time.Time) error }); ok && d.SetWriteDeadline(time.Now().Add(p.timeout)) == nil {
			return p.result(p.w.Write(data))
		}
		p.blunt = true
	}
	watchdog := time.AfterFunc(p.timeout, p.hangUp)
	n, err := p.w.Write(data)
	if !watchdog.Stop() {
		return n, ErrStalled
	}
	return p.result(n, err)
}

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
