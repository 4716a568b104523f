package background

import (
	"bytes"
	"strings"
	"sync"
	"time"
)

// Limits of a LineBuffer.
const (
	maxLine      = 2 << 10 // bytes
	maxLines     = 256
	maxLineBytes = 32 << 10
)

// Line is a line that a command has put out, without what is blank around it.
type Line struct {
	Text string
	Err  bool // on its standard error
	Cut  bool // it was longer
}

// LineBuffer keeps the lines of a running command until they are taken. When it is full, it drops lines, counts them, and slows the command
// down, but never blocks it. It is safe for concurrent use.
type LineBuffer struct {
	ready chan struct{} // holds one while there is something to take

	mu      sync.Mutex
	kept    []Line
	bytes   int
	dropped int64
}

// NewLineBuffer returns an empty buffer.
func NewLineBuffer() *LineBuffer { return &LineBuffer{ready: make(chan struct{}, 1)} }

// Ready receives when there may be lines to take.
func (l *LineBuffer) Ready() <-chan struct{} { return l.ready }

// Take takes all lines, and returns how many were dropped after them.
func (l *LineBuffer) Take() (lines []Line, dropped int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines, dropped = l.kept, l.dropped
	l.kept, l.bytes, l.dropped = nil, 0, 0
	return lines, dropped
}

// floodPause is the delay of each write to a full buffer: reading on at full speed only to drop lines would use up a processor.
const floodPause = 5 * time.Millisecond

func (l *LineBuffer) flooded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped > 0
}

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

// splitter makes lines of one stream. What of a line is too much is left out.
type splitter struct {
	lines *LineBuffer
	err   bool
	part  []byte // of the line that has not ended
	cut   bool
}

// Write implements io.Writer. It never fails.
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

func (s *splitter) grow(p []byte) {
	room := maxLine - len(s.part)
	s.cut = s.cut || len(p) > room
	s.part = append(s.part, p[:min(len(p), room)]...)
}

// end ends the line, as does the end of the stream. A blank one is none.
func (s *splitter) end() {
	text := strings.TrimSpace(strings.ToValidUTF8(string(s.part), ""))
	if text != "" {
		s.lines.add(Line{Text: text, Err: s.err, Cut: s.cut})
	}
	s.part, s.cut = s.part[:0], false
}
