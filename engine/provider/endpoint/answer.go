package endpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"lashd/engine/provider"
)

// Causes of a request context that ended before the answer did.
var (
	errNoAnswer = errors.New("no answer in time")         // RequestTimeout passed without a response header
	errChunkGap = errors.New("nothing more came in time") // ChunkTimeout passed in one silence
	errAttempt  = errors.New("the answer takes too long") // AttemptTimeout passed
)

// answer is the body of one response. Each read has a deadline. It belongs to the goroutine that reads.
type answer struct {
	endpoint *Endpoint               // for the mask and the timeouts in messages
	where    string                  // method and URL, for errors
	ctx      context.Context         // of the HTTP request; its cause tells a timeout from the rest
	cancel   context.CancelCauseFunc // ends the HTTP request
	body     io.ReadCloser
	end      *time.Timer // ends the whole attempt
	timer    *time.Timer // ends the request after a gap
	gap      time.Duration
	waited   time.Duration // part of the gap that is used up
	lines    bool          // only progress ends a gap, not any byte
}

// send posts a call and returns the answer if its status is 200. The caller closes it.
// Timeouts end the request by cancelling its context with a cause, since an http.Client's Timeout would bound the whole stream.
func (e *Endpoint) send(ctx context.Context, call *Call) (*answer, error) {
	if ctx.Err() != nil {
		return nil, provider.Cancelled(ctx)
	}
	asking, cancel := context.WithCancelCause(ctx)
	target := e.target(call.Path)
	a := &answer{endpoint: e, cancel: cancel, ctx: asking, gap: e.cfg.ChunkTimeout, where: http.MethodPost + " " + e.shown + pathOf(call.Path)}
	req, err := http.NewRequestWithContext(asking, http.MethodPost, target, bytes.NewReader(call.Body))
	if err != nil {
		cancel(nil)
		return nil, fmt.Errorf("model call: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	e.identify(req.Header)
	a.end = time.AfterFunc(e.cfg.AttemptTimeout, func() { cancel(errAttempt) })
	late := time.AfterFunc(e.cfg.RequestTimeout, func() { cancel(errNoAnswer) })
	resp, err := e.client.Do(req)
	late.Stop()
	if err != nil {
		defer cancel(nil)
		defer a.end.Stop()
		return nil, a.unreachable(ctx, err)
	}
	a.body = resp.Body
	a.timer = time.AfterFunc(a.gap, func() { cancel(errChunkGap) })
	a.timer.Stop() // until the first Read
	if resp.StatusCode != http.StatusOK {
		defer a.close()
		return nil, a.rejected(ctx, resp)
	}
	return a, nil
}

// target is the URL of a path below the base URL, with the queries of both.
// A path that has escapes keeps them, since the id of a model may need them.
func (e *Endpoint) target(path string) string {
	target := *e.base
	query := ""
	path, query, _ = strings.Cut(path, "?")
	target.Path, target.RawPath = strings.TrimSuffix(target.Path, "/")+path, ""
	if unescaped, err := url.PathUnescape(path); err == nil && unescaped != path {
		target.Path = strings.TrimSuffix(e.base.Path, "/") + unescaped
		target.RawPath = strings.TrimSuffix(e.base.EscapedPath(), "/") + path
	}
	switch {
	case query == "":
	case target.RawQuery == "":
		target.RawQuery = query
	default:
		target.RawQuery += "&" + query
	}
	return target.String()
}

// pathOf returns a call's path without its query.
func pathOf(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return path
}

// Read implements io.Reader. The gap's clock runs only here: a slow reader of the stream is not the server's fault.
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

// progress restarts the timer for silence; the server sent something.
func (a *answer) progress() { a.waited = 0 }

// drainTime is how long drain waits for the end of a body whose last event was read. Most servers send the end with the event or right
// after it.
const drainTime = 10 * time.Millisecond

// drain reads the end of a body, so that its connection can serve the next call.
func (a *answer) drain() {
	a.gap = drainTime
	a.progress()
	var rest [512]byte
	for range 4 {
		if _, err := a.Read(rest[:]); err != nil {
			return
		}
	}
}

// close ends the request and its timers.
// The connection is reused only if the body was read to its end.
func (a *answer) close() {
	a.timer.Stop()
	a.end.Stop()
	a.cancel(nil)
	a.body.Close() // the answer was judged by its contents
}
