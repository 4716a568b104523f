package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"lashd/pluginloader/child"
)

// remote is a server that is spoken to by streamable HTTP.
type remote struct {
	sdk.StreamableClientTransport
	life   *life
	cancel context.CancelCauseFunc // ends all requests
}

// connect has the server ready to be spoken to. It sends nothing.
func (s *server) connect(ctx context.Context, l *life) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	base := http.DefaultTransport.(*http.Transport).Clone()
	r := &remote{life: l, cancel: cancel}
	r.Endpoint, r.MaxEventSize, r.MaxRetries = s.end.URL, maxLine, 2
	r.HTTPClient = &http.Client{
		Transport:     &wire{end: s.end, life: ctx, patience: s.pool.config.Times.Connect / 4, base: base},
		CheckRedirect: s.end.redirect,
	}
	if s.login != nil {
		r.OAuthHandler = s.login
	}
	l.link = r
	s.running.Go(func() {
		<-l.done
		l.closeSession() // it may tell the server, until it is cut
		cancel(nil)
		base.CloseIdleConnections()
		close(l.over)
	})
}

// redirect refuses to go anywhere else with the headers.
func (e *endpoint) redirect(req *http.Request, via []*http.Request) error {
	if from := via[0].URL; req.URL.Scheme != from.Scheme || req.URL.Host != from.Host || len(via) > 3 {
		return fmt.Errorf("the server sends us to %s, where we do not go", req.URL.Host)
	}
	return nil
}

func (r *remote) greeted(session *sdk.ClientSession) {
	l := r.life
	l.server.goes(func() {
		err := session.Wait()
		l.abort(child.Crashed, cmp.Or(err, errors.New("the connection is closed")))
	})
}

func (r *remote) hangUp(ctx context.Context, l *life) {
	timer := time.NewTimer(l.server.pool.config.Times.Stop)
	defer timer.Stop()
	select {
	case <-l.over:
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (r *remote) cut(why error) { r.cancel(why) }

// wire carries the requests of a life: they have its headers, and end with it.
type wire struct {
	end      *endpoint
	life     context.Context
	patience time.Duration
	base     *http.Transport
}

var errNoStream = errors.New("the server does not answer a request for a stream")

// RoundTrip implements http.RoundTripper. A server that does not answer in time when it is asked for a stream of its own has
// none.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	stop := context.AfterFunc(w.life, func() { cancel(context.Cause(w.life)) })
	release := func() { stop(); cancel(nil) }
	sent := req.Clone(ctx)
	for name, value := range w.end.Headers {
		sent.Header.Set(name, value)
	}
	late := time.AfterFunc(w.patience, func() {
		if req.Method == http.MethodGet {
			cancel(errNoStream)
		}
	})
	resp, err := w.base.RoundTrip(sent)
	late.Stop()
	switch {
	case err == nil:
	case errors.Is(context.Cause(ctx), errNoStream):
		release()
		return noStream(req), nil
	default:
		release()
		return nil, err
	}
	if c, ok := req.Context().Value(inflightKey{}).(*inflight); ok && req.Method == http.MethodPost && resp.StatusCode == http.StatusNotFound && req.Header.Get("Mcp-Session-Id") != "" {
		c.gone.Store(true)
	}
	resp.Body = &body{ReadCloser: resp.Body, left: limitOf(resp), release: release}
	return resp, nil
}

func noStream(req *http.Request) *http.Response {
	return &http.Response{
		Status: "405 Method Not Allowed", StatusCode: http.StatusMethodNotAllowed, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, Request: req,
	}
}

// limitOf is how long a body may be; a stream ends when it will, as its messages have a limit each.
func limitOf(resp *http.Response) int64 {
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return -1
	}
	return maxLine
}

// body is the body of a response, of bounded length.
type body struct {
	io.ReadCloser
	left    int64 // -1: no limit
	release func()
}

func (b *body) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, fmt.Errorf("sends a message of more than %d bytes", maxLine)
	}
	if b.left > 0 {
		p = p[:min(int64(len(p)), b.left)]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left > 0 {
		b.left -= int64(n)
	}
	return n, err
}

func (b *body) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}
