package endpoint

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"lashd/engine/provider"
)

// Check asks the server for its list of models, which costs nothing. It returns nil if the server accepts the request or has no
// such list, and otherwise an *provider.Error that says what is wrong and what to do.
func (e *Endpoint) Check(ctx context.Context) error {
	if e.invalid != nil {
		return e.invalid
	}
	if err := e.check(ctx); err != nil {
		return e.mask.Error(err)
	}
	return nil
}

// check is Check with errors that may still have keys in them. Servers without a list of models answer 404 or 405. A silent
// server is waited for until ctx is done.
func (e *Endpoint) check(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.target(e.dialect.ModelPath), nil)
	if err != nil {
		return fmt.Errorf("check model server: %w", err)
	}
	e.identify(req.Header)
	asking, cancel := context.WithCancelCause(ctx)
	a := &answer{endpoint: e, cancel: cancel, ctx: asking, where: http.MethodGet + " " + e.shown + e.dialect.ModelPath}
	defer cancel(nil)
	resp, err := e.client.Do(req)
	if err != nil {
		return a.unreachable(ctx, err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode/100 == 2, resp.StatusCode == http.StatusNotFound, resp.StatusCode == http.StatusMethodNotAllowed:
		return nil
	case resp.StatusCode/100 == 3:
		return a.redirected(resp, resp.Header.Get("Location"))
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxRaw))
	if err != nil {
		return a.unreachable(ctx, err)
	}
	return a.classify(resp.StatusCode, parseFailure(data))
}

var _ provider.Checker = (*Endpoint)(nil)
