package frame

import (
	"bufio"
	"bytes"
	"io"
	"slices"

	"lashd/internal/strictjson"
)

// Sizes of the reader's buffer, in bytes.
const (
	bodyStep   = 64 << 10 // a body grows with the data received, not by the length that its header claims
	keepBuffer = 64 << 10 // a larger buffer is released after its frame
)

// reader splits the received bytes into frames. It belongs to the goroutine that calls ReadObject.
type reader struct {
	src      *bufio.Reader
	max      int // bytes of a frame
	framing  framing
	detected bool   // framing is known
	buf      []byte // the current frame
}

// next returns the next frame, which is valid until the next call. The error is io.EOF between
// frames, io.ErrUnexpectedEOF inside one, and a *problem if the peer violates the framing.
func (r *reader) next() ([]byte, error) {
	if cap(r.buf) > keepBuffer {
		r.buf = nil
	}
	r.buf = r.buf[:0]
	for !r.detected {
		if err := r.start(); err != nil {
			return nil, err
		}
	}
	if r.framing == headers {
		return r.message()
	}
	return r.line()
}

// start skips one byte of white space, or detects the framing.
func (r *reader) start() error {
	first, err := r.src.Peek(1)
	if err != nil {
		return err
	}
	if isBlank(first[0]) {
		_, err := r.src.Discard(1)
		return err
	}
	r.framing, err = detect(r.src)
	r.detected = err == nil
	return err
}

// isBlank reports whether c may stand between frames.
func isBlank(c byte) bool {
	return c == ' ' || c == '\t' || c == '\r' || c == '\n'
}

// message reads a frame with headers.
func (r *reader) message() ([]byte, error) {
	length, err := r.readHeader()
	if err != nil {
		return nil, err
	}
	for len(r.buf) < length {
		step := min(length-len(r.buf), bodyStep)
		r.buf = slices.Grow(r.buf, step)
		n, err := io.ReadFull(r.src, r.buf[len(r.buf):len(r.buf)+step])
		r.buf = r.buf[:len(r.buf)+n]
		if err == io.EOF {
			return nil, io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
	}
	return r.buf, nil
}

// line returns the next line that is not blank, without its line break.
func (r *reader) line() ([]byte, error) {
	for {
		part, err := r.src.ReadSlice('\n')
		r.buf = append(r.buf, part...)
		if len(r.buf)-len("\r\n") > r.max {
			return nil, frameTooLarge(r.max)
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF:
			return r.lastLine()
		case err != nil:
			return nil, err
		}
		if line := bytes.TrimSpace(r.buf); len(line) > 0 {
			return r.trim()
		}
		r.buf = r.buf[:0]
	}
}

// trim returns the line in buf without its line break.
func (r *reader) trim() ([]byte, error) {
	line := bytes.TrimSuffix(bytes.TrimSuffix(r.buf, []byte("\n")), []byte("\r"))
	if len(line) > r.max {
		return nil, frameTooLarge(r.max)
	}
	return line, nil
}

// lastLine returns a last line without a line break, as printf without \n writes it. It must be a
// complete object or array, since a truncated number would look complete too.
func (r *reader) lastLine() ([]byte, error) {
	line := bytes.TrimSpace(r.buf)
	if len(line) == 0 {
		return nil, io.EOF
	}
	if (line[0] == '{' || line[0] == '[') && strictjson.Check(line, strictjson.Limits{}) == nil {
		return r.trim()
	}
	return nil, io.ErrUnexpectedEOF
}
