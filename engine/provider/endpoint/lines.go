package endpoint

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

// maxLine bounds one line of a stream, and an answer that is not a stream, in bytes. The longest reply that a provider.Meter allows fits into
// one line in most spellings.
const maxLine = 4 << 20

var errLongLine = errors.New("a line is too long") // see maxLine

// lineReader returns the lines of a stream one by one, each as soon as it has arrived.
type lineReader struct {
	in   *bufio.Reader // from readers
	long []byte        // of a line that does not fit into the buffer of in
	max  int           // bytes of a line; maxLine
	cut  bool          // the last line had no end
}

// readers keeps readers for the next answer: their buffers were a fifth of what a turn allocates.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 32<<10) }}

// newLineReader returns a reader with a buffer of the pool. The caller releases it.
func newLineReader(r io.Reader) *lineReader {
	in := readers.Get().(*bufio.Reader)
	in.Reset(r)
	return &lineReader{in: in, max: maxLine}
}

// release returns the buffer to the pool. Lines that were read are no longer valid.
func (l *lineReader) release() {
	l.in.Reset(nil)
	readers.Put(l.in)
}

// next returns a line without its end. The line is valid until the next call. A last line without an end counts as a line;
// the call after it returns the error.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line, err = l.rest(line)
	}
	if err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)) {
		return nil, err
	}
	l.cut = err != nil
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), nil
}

// rest reads the remainder of a line that begins with the bytes of line. It fails with errLongLine.
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
// It fails with errLongLine if the answer is longer than maxLine.
func readWhole(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxLine+1))
	if err == nil && len(data) > maxLine {
		return nil, errLongLine
	}
	return data, err
}

// payload returns the data of a line of an event stream. Comments, names of events and empty lines have none. An event is
// used as soon as its data line has arrived, without the empty line that ends it: no model server spreads one event
// over several data lines. A line of bare JSON counts as data too, because some servers report errors that way.
func payload(line []byte) []byte {
	if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		return bytes.TrimPrefix(data, []byte(" "))
	}
	if len(line) > 0 && line[0] == '{' {
		return line
	}
	return nil
}
