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

// listen takes the plugin's messages in until its stdout ends, or it says what it may not say.
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
				l.abort(Protocol, fmt.Errorf("writes on stdout what is no message: %q", cut(line)))
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

// talk is what a plugin says without being asked. If that is too much it is kept waiting.
type talk struct {
	notices        child.Rate
	telling, calls child.Pace
}

// A message counts for its bytes, and for the work that it is.
const (
	noticeWork = 256
	callWork   = 4 << 10
)

func newTalk() *talk {
	return &talk{
		telling: child.Pace{PerSecond: 2 << 20, Burst: 256 << 10},
		calls:   child.Pace{PerSecond: 8 << 20, Burst: 4 << 20}, // artifacts are written by calls
	}
}

// receive is one message of the plugin.
func (l *life) receive(ctx context.Context, line []byte, says *talk) error {
	m, err := parse(line, l.limits.Depth)
	if err != nil {
		return fmt.Errorf("sends %q, which %w", cut(line), err)
	}
	l.hear()
	switch {
	case m.Method == "":
		return l.take(m)
	case m.ID != nil:
		l.rest(says.calls.Take(callWork + len(line)))
		return l.serve(m)
	case !says.notices.Allow(l.limits.Notices):
		return fmt.Errorf("sends more than %d notifications a second", l.limits.Notices)
	}
	l.rest(says.telling.Take(noticeWork + len(line)))
	return l.heed.noted(ctx, l, m)
}

// rest listens to nothing for a while, unless the process ends.
func (l *life) rest(d time.Duration) {
	if d > 0 {
		child.DoneWithin(l.process.Done(), d)
	}
}

func cut(line []byte) []byte { return line[:min(len(line), 80)] }
