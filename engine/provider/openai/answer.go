package openai

import (
	"context"
	"errors"
	"io"
	"time"
)

var (
	errNoAnswer = errors.New("no answer in time")
	errChunkGap = errors.New("nothing more came in time")
	errAttempt  = errors.New("the answer takes too long")
)

// answer is the body of a response, whose reads may each take only so long.
type answer struct {
	provider *Provider
	where    string          // method and URL, for errors
	ctx      context.Context // of the HTTP request; the cause of its end tells a timeout from the rest
	cancel   context.CancelCauseFunc
	body     io.ReadCloser
	end      *time.Timer // of the whole attempt
	timer    *time.Timer // of the gap
	gap      time.Duration
	waited   time.Duration // of the gap
	lines    bool          // only what calls progress ends a gap, not any byte
}

// Read implements io.Reader. The clock runs only here: a slow reader of the stream is no fault of the server.
func (a *answer) Read(p []byte) (int, error) {
	begin := time.Now()
	a.timer.Reset(a.gap - a.waited)
	n, err := a.body.Read(p)
	a.timer.Stop()
	a.waited += time.Since(begin)
	if !a.lines {
		a.progress()
	}
	return n, err
}

// progress says that the server told something.
func (a *answer) progress() { a.waited = 0 }

// drained is how long to wait for the end of a body whose last event was read. A body read to its end gives its
// connection back for the next call; most servers send the end with the event or right after it.
const drained = 10 * time.Millisecond

func (a *answer) drain() {
	a.gap = drained
	a.progress()
	var rest [512]byte
	for range 4 {
		if _, err := a.Read(rest[:]); err != nil {
			return
		}
	}
}

func (a *answer) close() {
	a.timer.Stop()
	a.end.Stop()
	a.cancel(nil)
	a.body.Close() // the answer was judged by what it held
}
