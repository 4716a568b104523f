package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// checkLimit bounds how long a model's server may take to answer a check.
const checkLimit = 5 * time.Second

// ModelList lists the configured models, the default first. With Check, each server is asked at the same time whether it takes
// requests; that takes up to checkLimit.
func (e *Engine) ModelList(ctx context.Context, p *protocol.ModelListParams) (*protocol.ModelListResult, error) {
	result := &protocol.ModelListResult{Data: []protocol.ModelInfo{}}
	for i, m := range e.Models {
		result.Data = append(result.Data, protocol.ModelInfo{Name: m.Name, Model: m.Spec, Price: m.Price, Default: i == 0})
	}
	if !p.Check {
		return result, nil
	}
	var wg sync.WaitGroup
	for i, m := range e.Models {
		wg.Go(func() { result.Data[i].Problem = m.Problem(ctx) })
	}
	wg.Wait()
	return result, context.Cause(ctx)
}

// Problem asks the model's server whether it takes requests, for up to five seconds. It reports why calls would fail; nil if nothing
// is known to be wrong.
func (m *Model) Problem(ctx context.Context) *protocol.Issue {
	c, ok := m.Provider.(provider.Checker)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	err := c.Check(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &protocol.Issue{Kind: "provider", Code: "request_timeout", Message: m.Spec.Provider + " does not answer within " + checkLimit.String()}
	}
	issue := issueOf(err)
	return &issue
}

// KeysWanted lists the names of API keys that SetKey takes.
func (e *Engine) KeysWanted() []string {
	if e.Keys == nil {
		return nil
	}
	return e.Keys.Wanted()
}

// SetKey takes an API key that the daemon's own environment lacks, and holds it in memory for as long as the daemon runs.
func (e *Engine) SetKey(_ context.Context, p *protocol.ModelSetKeyParams) (*protocol.Empty, error) {
	switch {
	case p.Key == "":
		return nil, bad("/key", "must not be empty")
	case e.Keys == nil:
		return nil, bad("/name", "names no key that a configured model uses")
	}
	err := e.Keys.Hand(p.Name, provider.NewSecret(p.Key))
	switch {
	case errors.Is(err, provider.ErrUnknownKey):
		return nil, bad("/name", "names no key that a configured model uses")
	case errors.Is(err, provider.ErrOwnKey):
		return nil, bad("/name", "names a key that the daemon has from its own environment; restart the daemon to replace it")
	}
	return &protocol.Empty{}, err
}
