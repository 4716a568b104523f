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

// remote is the link to a server over streamable HTTP.
type remote struct {
	sdk.StreamableClientTransport
	life   *life
	cancel context.CancelCauseFunc // ends all requests
}

// connect prepares the link to a server. It sends nothing; the handshake sends the first request.
// Each life has its own HTTP connections, so ending it cannot disturb the next one.
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
		l.closeSession() // it may send a request, until cut is called
		cancel(nil)
		base.CloseIdleConnections()
		close(l.over)
	})
}

// redirect rejects redirects to another host or scheme, which would get the configured headers and
// their secrets. It also limits the number of redirects.
func (e *endpoint) redirect(req *http.Request, via []*http.Request) error {
	if from := via[0].URL; req.URL.Scheme != from.Scheme || req.URL.Host != from.Host || len(via) > 3 {
		return fmt.Errorf("the server redirects to %s, which lashd does not follow", req.URL.Host)
	}
	return nil
}

// greeted watches for the end of the session in the background.
func (r *remote) greeted(session *sdk.ClientSession) {
	l := r.life
	l.server.goes(func() {
		err := session.Wait()
		l.abort(child.Crashed, cmp.Or(err, errors.New("the connection is closed")))
	})
}

// hangUp waits for the end of the session, at most Times.Stop.
func (r *remote) hangUp(ctx context.Context, l *life) {
	timer := time.NewTimer(l.server.pool.config.Times.Stop)
	defer timer.Stop()
	select {
	case <-l.over:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// cut cancels all requests.
func (r *remote) cut(why error) { r.cancel(why) }

// wire is the HTTP transport of one life. It adds the configured headers, ends requests with the
// life, limits response bodies, and notices when the server has forgotten the session.
type wire struct {
	end      *endpoint
	life     context.Context
	patience time.Duration // for the response to a GET
	base     *http.Transport
}

// errNoStream cancels a GET that the server does not answer.
var errNoStream = errors.New("the server did not answer a request for a stream")

// RoundTrip implements http.RoundTripper. If a server does not answer a GET for its own stream in
// time, RoundTrip answers 405, as servers without such a stream do.
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

// noStream returns the answer of a server without a stream of its own.
func noStream(req *http.Request) *http.Response {
	return &http.Response{
		Status: "405 Method Not Allowed", StatusCode: http.StatusMethodNotAllowed, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, Request: req,
	}
}

// limitOf returns the maximum length of a body, or -1 for an event stream, whose messages are
// limited one by one.
func limitOf(resp *http.Response) int64 {
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return -1
	}
	return maxLine
}

// body is a response body of bounded length.
type body struct {
	io.ReadCloser
	left    int64 // bytes; -1: no limit
	release func()
}

// Read fails when the limit is reached, also if the body ends exactly there.
func (b *body) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, fmt.Errorf("sent a message larger than %d bytes", maxLine)
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

// Close closes the body and releases the request's context.
func (b *body) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}
