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

// checkLimit bounds how long a model's server may take to answer a check. A person waits for the result.
const checkLimit = 5 * time.Second

// Models is the API of the configured models and of the API keys of their servers. The list is fixed when the
// engine starts; keys can be added while it runs. All methods are safe for concurrent use.
type Models struct {
	all  []Model
	keys *provider.Keys // nil: clients cannot set keys
}

// List returns the models, the default first. With Check set, it asks all servers at the same time whether they
// accept requests, which takes up to checkLimit.
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

// Problem asks the model's server whether it accepts requests, for at most checkLimit. It returns the reason why
// calls would fail, or nil if the server answers or cannot be checked.
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

// configured returns the model with a provider and model id, or the zero Model if the configuration no longer has
// it. A session keeps its own spec, so the configuration may have changed under it.
func (ms *Models) configured(spec protocol.ModelSpec) Model {
	for _, m := range ms.all {
		if m.Spec.Provider == spec.Provider && m.Spec.ID == spec.ID {
			return m
		}
	}
	return Model{}
}

// KeysWanted returns the names of the API keys that SetKey accepts.
func (ms *Models) KeysWanted() []string {
	if ms.keys == nil {
		return nil
	}
	return ms.keys.Wanted()
}

// SetKey stores an API key in memory until the daemon stops; it is never written to disk. A key that the daemon's
// own environment has cannot be replaced.
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
