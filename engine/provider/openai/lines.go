package openai

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

// maxLine bounds one line of a stream, and one answer that is not a stream. The longest reply fits into one, in most
// spellings.
const maxLine = 4 << 20

var errLongLine = errors.New("a line is too long")

// lineReader gives the lines of a stream one by one, each as soon as it has arrived.
type lineReader struct {
	in   *bufio.Reader
	long []byte // of a line that does not fit into the buffer of in
	max  int
}

// readers are those of answers that were read: their buffers were a fifth of what a turn allocates.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 32<<10) }}

func newLineReader(r io.Reader) *lineReader {
	in := readers.Get().(*bufio.Reader)
	in.Reset(r)
	return &lineReader{in: in, max: maxLine}
}

// release gives the buffer back. Nothing that was read from it may be used any more.
func (l *lineReader) release() {
	l.in.Reset(nil)
	readers.Put(l.in)
}

// next gives a line without its end. The line is valid until the next call. A last line without an end counts as one:
// the error comes with the call after it.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line, err = l.rest(line)
	}
	if err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)) {
		return nil, err
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), nil
}

func (l *lineReader) rest(line []byte) ([]byte, error) {
	l.long = l.long[:0]
	for {
		l.long = append(l.long, line...)
		if len(l.long) > l.max {
			return nil, errLongLine
		}
		var err error
		line, err = l.in.ReadSlice('\n')
		if !errors.Is(err, bufio.ErrBufferFull) {
			return append(l.long, line...), err
		}
	}
}

// readWhole reads an answer that is not a stream.
func readWhole(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxLine+1))
	if err == nil && len(data) > maxLine {
		return nil, errLongLine
	}
	return data, err
}

// payload is the data of a line of an event stream. Comments, names of events and empty lines have none. An event is
// taken as soon as its data line is there, without waiting for the empty line that ends it: no server spreads one chunk
// over several lines. A line that is bare JSON is taken too, because some servers report errors so.
func payload(line []byte) []byte {
	if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		return bytes.TrimPrefix(data, []byte(" "))
	}
	if len(line) > 0 && line[0] == '{' {
		return line
	}
	return nil
}
