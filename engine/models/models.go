// Package models holds the models that sessions can use, and serves the requests of clients about them. It does not call models for turns.
package models

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"lashd/engine/param"
	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// checkLimit bounds how long a model's server may take to answer a check. A person waits for the result.
const checkLimit = 5 * time.Second

// Model is a model that sessions can choose by its name.
type Model struct {
	Name     string
	Title    string // name for people; optional
	Spec     protocol.ModelSpec
	Provider provider.Provider
	// Price is what its tokens cost; nil if unknown.
	Price *protocol.Price
	// Fallback is the name of the model that a turn asks if this one fails before its reply began; "": none.
	Fallback string
}

var (
	// ErrNotFound means that no model has the name.
	ErrNotFound = errors.New("no such model")
	// errNoDefault means that a session names no model and there is no default.
	errNoDefault = fmt.Errorf("%w: no provider has an API key; run lash login, use a local server that lash model list shows, or try lashd demo", ErrNotFound)
)

// Source has the models that sessions can use. It may change while the engine runs, for example when a key arrives. Its methods do
// not block and may be called from any goroutine.
type Source interface {
	// Models lists the models to choose from, the default first.
	Models() []Model
	// Model returns the model of a name, "" for the default, and reports whether there is one. Models may not list it.
	Model(name string) (Model, bool)
	// Find returns the model that a session was configured with, and reports whether it is still there.
	Find(spec protocol.ModelSpec) (Model, bool)
}

// Lister is a Source that can ask servers for models which Models does not list.
type Lister interface {
	// Listed returns the models that the servers list until ctx is done. Those that do not answer have none.
	Listed(ctx context.Context) []Model
}

// Fixed is a Source that never changes. The first model is the default.
type Fixed []Model

// Models implements Source.
func (f Fixed) Models() []Model { return f }

// Model implements Source.
func (f Fixed) Model(name string) (Model, bool) {
	for i, m := range f {
		if m.Name == name || name == "" && i == 0 {
			return m, true
		}
	}
	return Model{}, false
}

// Find implements Source.
func (f Fixed) Find(spec protocol.ModelSpec) (Model, bool) {
	for _, m := range f {
		if m.Spec.Provider == spec.Provider && m.Spec.ID == spec.ID {
			return m, true
		}
	}
	return Model{}, false
}

// Catalog is the API of the models that sessions can use and of the API keys of their servers. All methods are safe for concurrent use.
type Catalog struct {
	source Source
	keys   *provider.Keys // nil: clients cannot set keys
}

// New returns the catalog of the models of a source. Without keys, clients cannot set any.
func New(source Source, keys *provider.Keys) *Catalog { return &Catalog{source, keys} }

// List lists the models, the default first, and with Servers those that only their servers list. With Check, each server is asked at the same
// time whether it accepts requests. Both take up to checkLimit.
func (ms *Catalog) List(ctx context.Context, p *protocol.ModelListParams) (*protocol.ModelListResult, error) {
	models := ms.source.Models()
	if p.Servers {
		models = append(models, ms.listed(ctx, models)...)
	}
	result := &protocol.ModelListResult{Data: []protocol.ModelInfo{}}
	for i, m := range models {
		result.Data = append(result.Data, protocol.ModelInfo{Name: m.Name, Title: m.Title, Model: m.Spec, Price: m.Price, Default: i == 0})
	}
	if p.Check {
		checkServers(ctx, models, result.Data)
	}
	return result, context.Cause(ctx)
}

// listed asks servers for their models, for at most checkLimit, and returns those that are not known yet.
func (ms *Catalog) listed(ctx context.Context, known []Model) []Model {
	l, ok := ms.source.(Lister)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	return slices.DeleteFunc(l.Listed(ctx), func(m Model) bool {
		return slices.ContainsFunc(known, func(k Model) bool { return k.Spec.Provider == m.Spec.Provider && k.Spec.ID == m.Spec.ID })
	})
}

// checkServers asks the server of each provider once and notes its problem with all of its models.
func checkServers(ctx context.Context, models []Model, infos []protocol.ModelInfo) {
	of := map[string][]int{}
	for i, m := range models {
		of[m.Spec.Provider] = append(of[m.Spec.Provider], i)
	}
	var wg sync.WaitGroup
	for _, same := range of {
		wg.Go(func() {
			problem := models[same[0]].Problem(ctx)
			for _, i := range same {
				infos[i].Problem = problem
			}
		})
	}
	wg.Wait()
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
	if e, ok := errors.AsType[*provider.Error](err); ok {
		return new(e.Issue())
	}
	return &protocol.Issue{Kind: "provider", Code: "unknown", Message: err.Error()}
}

// Stream calls the model. If the model was removed from the configuration after the turn began, Stream yields a validation error that
// says how to choose another one.
func (m *Model) Stream(ctx context.Context, req *provider.Request) iter.Seq2[provider.Chunk, error] {
	if m.Provider != nil {
		return m.Provider.Stream(ctx, req)
	}
	return func(yield func(provider.Chunk, error) bool) {
		yield(provider.Chunk{}, &provider.Error{Kind: provider.KindValidation, Code: "model_not_configured",
			Message: fmt.Sprintf("the model %s of %s is not configured; choose another with session/configure", req.Model.ID, req.Model.Provider)})
	}
}

// Named returns the model that sessions know by a name, "" for the default. It fails with ErrNotFound.
func (ms *Catalog) Named(name string) (Model, error) {
	if m, ok := ms.source.Model(name); ok {
		return m, nil
	}
	if name == "" {
		return Model{}, errNoDefault
	}
	return Model{}, fmt.Errorf("%w: %q", ErrNotFound, name)
}

// Configured returns the model of a spec; the zero Model if the configuration no longer has it.
func (ms *Catalog) Configured(spec protocol.ModelSpec) Model {
	m, _ := ms.source.Find(spec)
	return m
}

// KeysWanted returns the names of the API keys that SetKey accepts.
func (ms *Catalog) KeysWanted() []string {
	if ms.keys == nil {
		return nil
	}
	return ms.keys.Wanted()
}

// SetKey stores an API key in memory until the daemon stops, or forgets it; it is never written to disk. A key that the daemon's
// own environment has cannot be replaced.
func (ms *Catalog) SetKey(_ context.Context, p *protocol.ModelSetKeyParams) (*protocol.Empty, error) {
	switch {
	case p.Forget == (p.Key != ""):
		return nil, param.Bad("/key", "must not be empty; with forget it must be")
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

// tryLimit bounds a model call that tests a key or a model.
const tryLimit = time.Minute

// Try makes one call with a small limit of output and returns the text of the reply.
func Try(ctx context.Context, m Model) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, tryLimit, fmt.Errorf("no reply within %s", tryLimit))
	defer cancel()
	req := &provider.Request{
		Model:    m.Spec,
		Messages: []*protocol.Message{{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: "Say ok."}}}},
		Options:  protocol.GenerationOptions{MaxOutput: 16}, // the least that every API accepts
		Scope:    provider.Scope{RequestID: string(protocol.NewInputID())},
	}
	text := ""
	for chunk, err := range m.Stream(ctx, req) {
		switch {
		case err != nil:
			return "", err
		case chunk.Reset:
			text = ""
		}
		text += chunk.Text
	}
	return text, nil
}

// Test makes one small call with a model. An error of the model's server is a TestError.
func (ms *Catalog) Test(ctx context.Context, p *protocol.ModelTestParams) (*protocol.ModelTestResult, error) {
	m, err := ms.Named(p.Name)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	text, err := Try(ctx, m)
	if err != nil && ctx.Err() == nil {
		return nil, &TestError{m.Name, err}
	}
	return &protocol.ModelTestResult{Name: m.Name, Text: text, DurationMs: time.Since(began).Milliseconds()}, err
}

// TestError is the failure of a call that tests a model.
type TestError struct {
	Name string
	Err  error
}

func (e *TestError) Error() string { return e.Name + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *TestError) Unwrap() error { return e.Err }
