package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"lashd/pluginloader/child"
)

// listen reads the plugin's messages until its stdout ends or it breaks the protocol. It is the
// only reader and runs on its own goroutine. Lines that do not look like messages go to the log,
// because libraries may print to stdout; too many of them end the process.
func (l *life) listen(ctx context.Context) {
	in, noisy, strays := child.NewLines(l.out, l.limits.Line), 0, 0
	says := newTalk()
	for {
		line, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			if !child.DoneWithin(l.process.Done(), exitDelay) {
				l.abort(Protocol, errClosed)
			}
			return
		case err != nil:
			l.abort(Protocol, err)
			return
		case noise(line):
			if noisy += len(line); noisy > l.limits.Noise {
				l.abort(Protocol, fmt.Errorf("wrote lines to stdout that are no messages: %q", cut(line)))
				return
			}
			l.heed.said(slog.LevelInfo, strings.TrimRight(string(line), "\r\n"))
			continue
		}
		err = l.receive(ctx, line, says)
		if errors.Is(err, errForeign) {
			if strays++; strays <= l.limits.Strays {
				continue
			}
		}
		if err != nil {
			l.abort(Protocol, err)
			return
		}
	}
}

// talk limits how fast the plugin's own messages are processed. A plugin that sends more has to
// wait on its pipe. So a flood of one plugin does not take processor time from others.
type talk struct {
	notices        child.Rate
	telling, calls child.Pace
}

// A message counts for its bytes, and for the work that it is.
const (
	// Each message counts with its length plus a constant for the work of processing it, in bytes.
	noticeWork = 256
	callWork   = 4 << 10
)

// newTalk returns the limits for a new process.
func newTalk() *talk {
	return &talk{
		telling: child.Pace{PerSecond: 2 << 20, Burst: 256 << 10},
		calls:   child.Pace{PerSecond: 8 << 20, Burst: 4 << 20}, // artifacts are written by calls
	}
}

// receive processes one message. Answers are handed to their callers, requests run on their own
// goroutines, and notifications are handled at once. An error ends the process.
func (l *life) receive(ctx context.Context, line []byte, says *talk) error {
	m, err := parse(line, l.limits.Depth)
	if err != nil {
		return fmt.Errorf("sent %q, which %w", cut(line), err)
	}
	l.hear()
	switch {
	case m.Method == "":
		return l.take(m)
	case m.ID != nil:
		l.rest(says.calls.Take(callWork + len(line)))
		return l.serve(m)
	case !says.notices.Allow(l.limits.Notices):
		return fmt.Errorf("sent more than %d notifications per second", l.limits.Notices)
	}
	l.rest(says.telling.Take(noticeWork + len(line)))
	return l.heed.noted(ctx, l, m)
}

// rest pauses reading for d, or until the process ends.
func (l *life) rest(d time.Duration) {
	if d > 0 {
		child.DoneWithin(l.process.Done(), d)
	}
}

// cut returns the start of a line, for an error.
func cut(line []byte) []byte { return line[:min(len(line), 80)] }
