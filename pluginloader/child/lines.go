package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"
)

// Lines reads lines of bounded length.
type Lines struct {
	src  *bufio.Reader
	max  int
	long []byte // of a line that does not fit the buffer
	pace Pace   // of one that is longer than most
}

const (
	readBuffer = 64 << 10
	keepBuffer = 1 << 20 // of a longer line the memory is given back
	longPace   = 8 << 20 // bytes a second in which what is beyond that is read: who sends lines without an end takes no processor from others
)

// NewLines reads r. A line of more than limit bytes is an error.
func NewLines(r io.Reader, limit int) *Lines {
	return &Lines{src: bufio.NewReaderSize(r, readBuffer), max: limit, pace: Pace{PerSecond: longPace, Burst: readBuffer}}
}

// grow makes room for n bytes more, so that a long line leaves no more behind than it takes.
func (l *Lines) grow(n int) {
	if need := len(l.long) + n; need > cap(l.long) {
		l.long = append(make([]byte, 0, min(max(2*cap(l.long), need), max(l.max, need))), l.long...)
	}
}

// Next gives the next line, which is good until it is called again. A last line without an end is none.
func (l *Lines) Next() ([]byte, error) {
	if cap(l.long) > keepBuffer {
		l.long = nil
	}
	l.long = l.long[:0]
	for {
		piece, err := l.src.ReadSlice('\n')
		if len(l.long)+len(piece) > l.max {
			return nil, fmt.Errorf("sends a message of more than %d bytes", l.max)
		}
		switch {
		case err == nil && len(l.long) == 0:
			return piece, nil
		case err == nil:
			return append(l.long, piece...), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, io.EOF // closed by it, or by us: all the same
		}
		l.grow(len(piece))
		l.long = append(l.long, piece...)
		if len(l.long) > keepBuffer {
			time.Sleep(l.pace.Take(len(piece)))
		}
	}
}
