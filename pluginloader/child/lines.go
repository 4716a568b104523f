package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"
)

// Lines reads lines of bounded length from a program that may be hostile. It keeps little memory
// between lines and slows down a program that sends very long ones. It is for one goroutine.
type Lines struct {
	src  *bufio.Reader
	max  int    // bytes in one line, with its line feed
	long []byte // collects a line that does not fit into src's buffer
	pace Pace   // limits how fast long lines are read
}

// Sizes in bytes, and a rate in bytes per second.
const (
	readBuffer = 64 << 10
	keepBuffer = 1 << 20 // a larger buffer is released after its line
	longPace   = 8 << 20 // limits the part of a line beyond keepBuffer, so that endless lines cost little processor time
)

// NewLines returns a reader of the lines of r. A line of more than limit bytes is an error.
func NewLines(r io.Reader, limit int) *Lines {
	return &Lines{src: bufio.NewReaderSize(r, readBuffer), max: limit, pace: Pace{PerSecond: longPace, Burst: readBuffer}}
}

// grow makes room for n more bytes. It never allocates more than the line limit, unless the line
// itself needs it.
func (l *Lines) grow(n int) {
	if need := len(l.long) + n; need > cap(l.long) {
		l.long = append(make([]byte, 0, min(max(2*cap(l.long), need), max(l.max, need))), l.long...)
	}
}

// Next returns the next line with its line feed. The slice is valid until the next call. Next drops
// a last line without a line feed, and returns io.EOF for every error of the underlying reader.
func (l *Lines) Next() ([]byte, error) {
	if cap(l.long) > keepBuffer {
		l.long = nil
	}
	l.long = l.long[:0]
	for {
		piece, err := l.src.ReadSlice('\n')
		if len(l.long)+len(piece) > l.max {
			return nil, fmt.Errorf("sent a message larger than %d bytes", l.max)
		}
		switch {
		case err == nil && len(l.long) == 0:
			return piece, nil
		case err == nil:
			return append(l.long, piece...), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, io.EOF // the caller does not care which side closed the pipe
		}
		l.grow(len(piece))
		l.long = append(l.long, piece...)
		if len(l.long) > keepBuffer {
			time.Sleep(l.pace.Take(len(piece)))
		}
	}
}
