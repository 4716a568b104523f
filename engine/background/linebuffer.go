package background

import (
	"bytes"
	"strings"
	"sync"
	"time"
)

// Limits of a LineBuffer. Longer lines are cut; lines beyond the other limits are dropped
// and counted.
const (
	maxLine      = 2 << 10 // bytes
	maxLines     = 256
	maxLineBytes = 32 << 10
)

// Line is a line of output without surrounding white space.
type Line struct {
	Text string
	// Err means that the line came from standard error.
	Err bool
	// Cut means that the end of the line is missing.
	Cut bool
}

// LineBuffer holds the output lines of a running command until the monitor takes them. A
// full buffer drops and counts new lines, and slows the command down, but never blocks it.
// The command's output goroutines write, one other goroutine reads.
type LineBuffer struct {
	// ready holds one value while there are lines to take.
	ready chan struct{}

	mu    sync.Mutex
	kept  []Line
	bytes int
	// dropped counts the lines dropped since the last Take.
	dropped int64
}

// NewLineBuffer returns an empty buffer.
func NewLineBuffer() *LineBuffer { return &LineBuffer{ready: make(chan struct{}, 1)} }

// Ready returns a channel that receives when there may be lines to take.
func (l *LineBuffer) Ready() <-chan struct{} { return l.ready }

// Take removes and returns all lines, and the number of lines that were dropped after them.
func (l *LineBuffer) Take() (lines []Line, dropped int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines, dropped = l.kept, l.dropped
	l.kept, l.bytes, l.dropped = nil, 0, 0
	return lines, dropped
}

// floodPause is the delay of each write to a full buffer. Without it, a busy command would
// use a whole processor only to have its lines dropped.
const floodPause = 5 * time.Millisecond

// flooded reports whether lines were dropped since the last Take.
func (l *LineBuffer) flooded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped > 0
}

// add appends a line, or drops it. After one drop it drops all lines until the next Take,
// so that the lines that are kept are consecutive.
func (l *LineBuffer) add(line Line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kept) == maxLines || l.bytes+len(line.Text) > maxLineBytes || l.dropped > 0 {
		l.dropped++
		return
	}
	l.kept, l.bytes = append(l.kept, line), l.bytes+len(line.Text)
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// splitter is an io.Writer that splits one stream into lines. It belongs to one goroutine.
type splitter struct {
	lines *LineBuffer
	err   bool
	// part is the beginning of the unfinished line, cut means that it exceeded maxLine.
	part []byte
	cut  bool
}

// Write implements io.Writer. It never returns an error, because that would end the
// command's output.
func (s *splitter) Write(p []byte) (int, error) {
	n := len(p)
	if s.lines.flooded() {
		time.Sleep(floodPause)
	}
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			s.grow(p)
			return n, nil
		}
		s.grow(p[:i])
		s.end()
		p = p[i+1:]
	}
}

// grow appends to the unfinished line, up to maxLine bytes.
func (s *splitter) grow(p []byte) {
	room := maxLine - len(s.part)
	s.cut = s.cut || len(p) > room
	s.part = append(s.part, p[:min(len(p), room)]...)
}

// end finishes the line, at a newline or at the end of the stream. It skips blank lines.
func (s *splitter) end() {
	text := strings.TrimSpace(strings.ToValidUTF8(string(s.part), ""))
	if text != "" {
		s.lines.add(Line{Text: text, Err: s.err, Cut: s.cut})
	}
	s.part, s.cut = s.part[:0], false
}
