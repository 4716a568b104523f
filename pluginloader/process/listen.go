package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"lashd/pluginloader/child"
)

// listen takes the plugin's messages in until its stdout ends, or it says what it may not say.
func (l *life) listen(ctx context.Context) {
	in, noisy, strays := child.NewLines(l.out, l.limits.Line), 0, 0
	var notices child.Rate
	for {
		line, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			if !await(l.process.Done(), exitDelay) {
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
		err = l.receive(ctx, line, &notices)
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

// receive is one message of the plugin.
func (l *life) receive(ctx context.Context, line []byte, notices *child.Rate) error {
	m, err := parse(line, l.limits.Depth)
	if err != nil {
		return fmt.Errorf("sends %q, which %w", cut(line), err)
	}
	l.hear()
	switch {
	case m.Method == "":
		return l.take(m)
	case m.ID != nil:
		return l.serve(m)
	case !notices.Allow(l.limits.Notices):
		return fmt.Errorf("sends more than %d notifications a second", l.limits.Notices)
	}
	return l.heed.noted(ctx, l, m)
}

func cut(line []byte) []byte { return line[:min(len(line), 80)] }
