package capture

import (
	"bytes"
	"context"
	"sync"
	"time"

	"lashd/engine/tool"
)

// Limits of progress.
const (
	// progressEvery is the time between two pieces.
	progressEvery = 100 * time.Millisecond
	// progressBytes is the size of a piece. Of more output only the end is shown.
	progressBytes = 4 << 10
)

// progress sends output to the host while the command runs, in bounded pieces at a bounded
// rate.
type progress struct {
	host tool.Host

	mu      sync.Mutex
	pending []byte
	dropped bool
}

// add buffers output for the next piece. It drops the oldest bytes beyond progressBytes.
func (p *progress) add(data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if over := len(p.pending) + len(data) - progressBytes; over > 0 {
		p.dropped = true
		p.pending = p.pending[min(over, len(p.pending)):]
		data = data[max(0, len(data)-progressBytes):]
	}
	p.pending = append(p.pending, data...)
}

// run sends pieces until ctx ends, and then the rest.
func (p *progress) run(ctx context.Context) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.show(false)
		case <-ctx.Done():
			p.show(true)
			return
		}
	}
}

// show sends the next piece, if there is one.
func (p *progress) show(all bool) {
	if text := p.take(all); text != "" {
		p.host.Progress(text)
	}
}

// take removes and returns the complete lines, or everything if all is set or no line is
// complete. A text after a gap starts with a marker.
func (p *progress) take(all bool) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	piece := p.pending
	if end := bytes.LastIndexByte(piece, '\n'); end >= 0 && !all {
		piece = piece[:end+1]
	}
	if !all {
		piece = wholeEnd(piece)
	}
	if len(piece) == 0 {
		return ""
	}
	text := valid(piece)
	if p.dropped {
		text, p.dropped = "[...]\n"+valid(wholeStart(piece)), false
	}
	p.pending = append([]byte{}, p.pending[len(piece):]...)
	return text
}
