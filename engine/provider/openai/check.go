package openai

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"lashd/engine/provider"
)

// listing is where a server lists its models, below its base URL. Asking for it costs nothing.
const listing = "/models"

// Check implements provider.Checker: it asks the server for its list of models. A server that has no such list is taken
// to work.
func (p *Provider) Check(ctx context.Context) error {
	if p.unfit != nil {
		return p.unfit
	}
	if err := p.check(ctx); err != nil {
		return p.mask.Error(err)
	}
	return nil
}

func (p *Provider) check(ctx context.Context) error {
	target := *p.base
	target.Path, target.RawPath = strings.TrimSuffix(target.Path, "/")+listing, ""
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return fmt.Errorf("check model server: %w", err)
	}
	p.identify(req)
	asking, cancel := context.WithCancelCause(ctx)
	a := &answer{provider: p, cancel: cancel, ctx: asking, where: http.MethodGet + " " + p.shown + listing}
	defer cancel(nil)
	resp, err := p.client.Do(req)
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

var _ provider.Checker = (*Provider)(nil)
