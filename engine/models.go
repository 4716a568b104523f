package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lashd/engine/param"
	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// checkLimit bounds how long a model's server may take to answer a check.
const checkLimit = 5 * time.Second

// Models are the configured models, the default first, and the API keys of their servers.
type Models struct {
	all  []Model
	keys *provider.Keys // nil: clients cannot set keys
}

// List lists the models, the default first. With Check, each server is asked at the same time whether it takes requests; that
// takes up to checkLimit.
func (ms *Models) List(ctx context.Context, p *protocol.ModelListParams) (*protocol.ModelListResult, error) {
	result := &protocol.ModelListResult{Data: []protocol.ModelInfo{}}
	for i, m := range ms.all {
		result.Data = append(result.Data, protocol.ModelInfo{Name: m.Name, Model: m.Spec, Price: m.Price, Default: i == 0})
	}
	if !p.Check {
		return result, nil
	}
	var wg sync.WaitGroup
	for i, m := range ms.all {
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

// named finds a model by the name sessions know it by; "" is the default.
func (ms *Models) named(name string) (Model, error) {
	for i, m := range ms.all {
		if m.Name == name || name == "" && i == 0 {
			return m, nil
		}
	}
	return Model{}, fmt.Errorf("%w: %q", ErrModelNotFound, name)
}

// configured finds the model of a spec; a zero one if no model of the configuration is of that spec any more.
func (ms *Models) configured(spec protocol.ModelSpec) Model {
	for _, m := range ms.all {
		if m.Spec.Provider == spec.Provider && m.Spec.ID == spec.ID {
			return m
		}
	}
	return Model{}
}

// KeysWanted lists the names of API keys that SetKey takes.
func (ms *Models) KeysWanted() []string {
	if ms.keys == nil {
		return nil
	}
	return ms.keys.Wanted()
}

// SetKey takes an API key that the daemon's own environment lacks, and holds it in memory for as long as the daemon runs.
func (ms *Models) SetKey(_ context.Context, p *protocol.ModelSetKeyParams) (*protocol.Empty, error) {
	switch {
	case p.Key == "":
		return nil, param.Bad("/key", "must not be empty")
	case ms.keys == nil:
		return nil, param.Bad("/name", "names no key that a configured model uses")
	}
	err := ms.keys.Hand(p.Name, provider.NewSecret(p.Key))
	switch {
	case errors.Is(err, provider.ErrUnknownKey):
		return nil, param.Bad("/name", "names no key that a configured model uses")
	case errors.Is(err, provider.ErrOwnKey):
		return nil, param.Bad("/name", "names a key that the daemon has from its own environment; restart the daemon to replace it")
	}
	return &protocol.Empty{}, err
}
