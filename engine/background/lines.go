package background

import (
	"bytes"
	"strings"
	"sync"
	"time"
)

// Limits of what is kept of the lines of a command until somebody takes them.
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

// Lines are the lines of a running command that nobody has taken yet. There is room for some: what finds none is counted, and
// whoever goes on writing then is slowed down, but never waits for somebody to take them. They may be used from several
// goroutines.
type Lines struct {
	ready chan struct{} // holds one while there is something to take

	mu      sync.Mutex
	kept    []Line
	bytes   int
	dropped int64
}

// NewLines makes room for lines.
func NewLines() *Lines { return &Lines{ready: make(chan struct{}, 1)} }

// Ready tells that there may be something to take.
func (l *Lines) Ready() <-chan struct{} { return l.ready }

// Take takes all lines, and tells how many came after them that found no room.
func (l *Lines) Take() (lines []Line, dropped int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines, dropped = l.kept, l.dropped
	l.kept, l.bytes, l.dropped = nil, 0, 0
	return lines, dropped
}

// floodPause is how long who floods is held up for each piece: to read much more for nothing would use up a processor.
const floodPause = 5 * time.Millisecond

func (l *Lines) flooded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped > 0
}

func (l *Lines) add(line Line) {
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
	lines *Lines
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
