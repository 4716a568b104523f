// Package providers decides which models sessions can use. It combines the models and providers of the configuration, the presets of
// well-known providers, the table of known models, and the API keys that are there.
//
// A model has a name: the name of the configuration, or PROVIDER/ID. A model of a known provider works without being listed
// anywhere: what lashd does not know of it has stated defaults.
package providers

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"lashd/engine/models"
	"lashd/engine/provider"
	"lashd/engine/provider/chatgpt"
	"lashd/engine/provider/endpoint"
	"lashd/engine/provider/knownmodels"
	"lashd/rpc/protocol"
)

// Config is what a Source is made of.
type Config struct {
	Default   func() string       // returns the name of the default model; "": the first of Models, or of the first provider with a key
	Models    []Model             // configured models
	Providers map[string]Provider // configured providers; those with the name of a preset change it
	Keys      Keys
	Logins    chatgpt.Store                                    // of providers with a Login; nil: none
	Policy    provider.Policy                                  // for retries
	NoKey     func(provider string, variables []string) string // advice for a missing key; optional
}

// Model is a model of the configuration.
type Model struct {
	Name     string             // default PROVIDER/ID
	Provider string             // name of a provider
	ID       string             // of the model at its provider
	Spec     protocol.ModelSpec // fields that are set override the table of known models; Provider and ID are ignored
	Price    *protocol.Price    // nil: the price of the table of known models
	Fallback string             // name of the model to ask if this one fails; "": none
}

// Provider is a provider of the configuration. Fields that are not set have the preset's value.
type Provider struct {
	API       API // default Chat if there is no preset
	BaseURL   string
	KeyHeader string
	Env       []string // environment variables with the key
	NeedKey   bool     // the server accepts no request without a key
	Headers   map[string]provider.Secret
	Limits    provider.Limits
	Key       KeyReader // reads a key that is neither in the environment nor handed over; nil: none
	KeyName   string    // name of the provider whose stored key this one shares; default its own name
	Login     string    // address of the server that logs a person in to ChatGPT; only a preset with Login has one
}

// KeyReader reads an API key from where the configuration says. It returns the zero Secret if there is none.
type KeyReader func(ctx context.Context) (provider.Secret, error)

// Keys finds the key of a provider.
type Keys interface {
	// Key returns the provider's key, the zero Secret if there is none. It may wait for a keyring or a command, until ctx is done.
	Key(ctx context.Context, name string, p Provider) (provider.Secret, error)
	// From says, for messages, where the key of a provider is that Key returned.
	From(name string, p Provider) string
	// Has reports, without waiting, whether Key is known to find one.
	Has(name string, p Provider) bool
}

// Source is the models that sessions can use. It implements models.Source. Its methods may be called from any goroutine.
type Source struct {
	cfg       Config              // as given; never changed
	providers map[string]Provider // presets and configured providers, by name; never changed

	mu       sync.Mutex
	adapters map[string]provider.Provider // by provider; made on first use
}

// New returns the source of a configuration that was checked.
func New(cfg Config) *Source {
	s := &Source{cfg: cfg, providers: map[string]Provider{}, adapters: map[string]provider.Provider{}}
	for name, p := range presets {
		s.providers[name] = Provider{API: p.API, BaseURL: p.BaseURL, KeyHeader: p.KeyHeader, Env: p.Env, NeedKey: !p.Local, Login: p.Login}
	}
	for name, p := range cfg.Providers {
		s.providers[name] = p.over(s.providers[name])
	}
	return s
}

// over returns p with unset fields taken from base.
func (p Provider) over(base Provider) Provider {
	p.API, p.BaseURL = cmp.Or(p.API, base.API, Chat), cmp.Or(p.BaseURL, base.BaseURL)
	p.KeyHeader, p.NeedKey = cmp.Or(p.KeyHeader, base.KeyHeader), p.NeedKey || base.NeedKey
	if p.Env == nil {
		p.Env = base.Env
	}
	p.Login = cmp.Or(p.Login, base.Login)
	return p
}

// Models returns the models to choose from, the default first: those of the configuration, and the known models of every provider
// that has a key.
func (s *Source) Models() []models.Model {
	var all []models.Model
	if m, ok := s.Model(""); ok {
		all = append(all, m)
	}
	add := func(m models.Model) {
		if !slices.ContainsFunc(all, func(have models.Model) bool { return have.Name == m.Name }) {
			all = append(all, m)
		}
	}
	for _, m := range s.cfg.Models {
		add(s.configured(m))
	}
	for _, name := range s.ready() {
		for _, known := range knownmodels.Of(catalog(name)) {
			add(s.model(name, known.ID))
		}
	}
	return all
}

// ready returns the providers that have a key, in the order of Presets.
func (s *Source) ready() []string {
	rest := slices.Sorted(maps.Keys(s.providers))
	rest = slices.DeleteFunc(rest, func(name string) bool { return slices.Contains(preferred, name) })
	return slices.DeleteFunc(append(slices.Clone(preferred), rest...), func(name string) bool {
		return !s.cfg.Keys.Has(name, s.providers[name])
	})
}

// Model returns the model of a name, "" for the default, and reports whether there is one.
func (s *Source) Model(name string) (models.Model, bool) {
	if name == "" {
		return s.defaultModel()
	}
	for _, m := range s.cfg.Models {
		if m.name() == name {
			return s.configured(m), true
		}
	}
	owner, id, ok := strings.Cut(name, "/")
	if _, known := s.providers[owner]; !ok || !known || id == "" {
		return models.Model{}, false
	}
	return s.model(owner, id), true
}

// defaultModel returns the default model and reports whether there is one. A configured default that is not there is ignored.
func (s *Source) defaultModel() (models.Model, bool) {
	if name := s.cfg.Default(); name != "" {
		if m, ok := s.Model(name); ok {
			return m, true
		}
	}
	if len(s.cfg.Models) > 0 {
		return s.configured(s.cfg.Models[0]), true
	}
	for _, name := range s.ready() {
		if id := knownmodels.Default(catalog(name)); id != "" {
			return s.model(name, id), true
		}
	}
	return models.Model{}, false
}

// Find returns the model that a session was configured with, and reports whether the configuration still has it. Of several models with
// that id it returns the one with the same settings, or else the one that differs in its effort only, or else the first one.
func (s *Source) Find(spec protocol.ModelSpec) (models.Model, bool) {
	var found models.Model
	best := 0
	for _, m := range s.cfg.Models {
		if m.Provider != spec.Provider || m.ID != spec.ID {
			continue
		}
		one := s.configured(m)
		if likeness := alike(one.Spec, spec); likeness > best {
			found, best = one, likeness
		}
	}
	if best > 0 {
		return found, true
	}
	return s.Model(spec.Provider + "/" + spec.ID)
}

// alike returns how much two settings of one model have in common: 3 for all, 2 for all but the effort, else 1.
func alike(a, b protocol.ModelSpec) int {
	switch {
	case reflect.DeepEqual(a, b):
		return 3
	case reflect.DeepEqual(a.WithEffort("any"), b.WithEffort("any")):
		return 2
	}
	return 1
}

func (m *Model) name() string { return cmp.Or(m.Name, m.Provider+"/"+m.ID) }

// configured returns a model of the configuration.
func (s *Source) configured(m Model) models.Model {
	made := s.model(m.Provider, m.ID)
	made.Name, made.Fallback = m.name(), m.Fallback
	made.Price = cmp.Or(m.Price, made.Price)
	over := m.Spec
	made.Spec.ContextWindow = cmp.Or(over.ContextWindow, made.Spec.ContextWindow)
	made.Spec.OutputLimit = cmp.Or(over.OutputLimit, made.Spec.OutputLimit)
	made.Spec.Reasoning = cmp.Or(over.Reasoning, made.Spec.Reasoning)
	made.Spec.Effort, made.Spec.Cache = over.Effort, over.Cache
	made.Spec.Idempotent = over.Idempotent
	made.Spec.PinnedOptions = made.Spec.PinnedOptions || over.PinnedOptions
	if over.Inputs != nil {
		made.Spec.Inputs = over.Inputs
	}
	return made
}

// model returns a model of a provider as the table of known models describes it; one that is not in the table has only an id.
func (s *Source) model(owner, id string) models.Model {
	m := models.Model{
		Name: owner + "/" + id, Title: id, Spec: protocol.ModelSpec{Provider: owner, ID: id}, Provider: s.adapter(owner),
	}
	if known, ok := Known(owner, id); ok {
		m.Title, m.Spec, m.Price = known.Title, known.Spec, known.Price
		m.Spec.Provider, m.Spec.ID = owner, id
	}
	return m
}

// adapter returns the provider's adapter, which all of its models share.
func (s *Source) adapter(name string) provider.Provider {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.adapters[name]; a != nil {
		return a
	}
	p := s.providers[name]
	keyed := &provider.Keyed{
		Key:  func(ctx context.Context) (provider.Secret, error) { return s.cfg.Keys.Key(ctx, name, p) },
		Make: func(key provider.Secret) provider.Provider { return p.adapter(s.endpoint(name, p, key)) },
	}
	if p.Login != "" && s.cfg.Logins != nil {
		keyed = s.loggedIn(name, p)
	}
	s.adapters[name] = provider.NewBreaker(&provider.Retry{Provider: provider.NewAdmission(keyed, p.Limits), Policy: s.cfg.Policy})
	return s.adapters[name]
}

// List asks the server of a provider for the ids of its models, with one request. It returns none if the server has no such list.
func (s *Source) List(ctx context.Context, name string) ([]string, error) {
	p := s.providers[name]
	key, err := s.cfg.Keys.Key(ctx, name, p)
	if err != nil {
		return nil, err
	}
	if l, ok := p.adapter(s.endpoint(name, p, key)).(lister); ok {
		return l.Models(ctx)
	}
	return nil, nil
}

// lister is an adapter that can ask its server for its models.
type lister interface {
	Models(ctx context.Context) ([]string, error)
}

// loggedIn returns a provider whose calls carry the tokens of a login.
func (s *Source) loggedIn(name string, p Provider) *provider.Keyed {
	account := chatgpt.NewAccount(chatgpt.NewServer(p.Login), s.cfg.Logins, name)
	return &provider.Keyed{Key: account.Key, Make: func(key provider.Secret) provider.Provider {
		tokens, _ := chatgpt.Parse(key) // Key has read them; without tokens, the endpoint says how to log in
		cfg := s.endpoint(name, p, tokens.Access)
		if cfg.KeyFrom = "the login of " + name; tokens.Account != "" {
			cfg.Headers = maps.Clone(cfg.Headers)
			if cfg.Headers == nil {
				cfg.Headers = map[string]provider.Secret{}
			}
			cfg.Headers[chatgpt.AccountHeader] = provider.NewSecret(tokens.Account)
		}
		return account.Guard(key, p.adapter(cfg))
	}}
}

// Known returns a model from the table of known models, and reports whether it is there.
func Known(owner, id string) (knownmodels.Model, bool) {
	known, ok := knownmodels.Find(catalog(owner), id)
	if catalog(owner) != owner {
		known.Price = nil
	}
	return known, ok
}

// catalog returns the name under which the table of known models has those of a provider.
func catalog(name string) string { return cmp.Or(presets[name].Catalog, name) }

// endpoint returns the settings of a provider's server.
func (s *Source) endpoint(name string, p Provider, key provider.Secret) endpoint.Config {
	cfg := endpoint.Config{
		Name: name, BaseURL: p.BaseURL, Key: key, KeyHeader: p.KeyHeader, Headers: p.Headers,
		NeedKey: p.NeedKey,
	}
	if p.Login == "" {
		cfg.KeyFrom = s.cfg.Keys.From(name, p)
	}
	if owner := KeyOwner(key.Reveal()); owner != "" && owner != name && p.BaseURL == presets[name].BaseURL {
		cfg.KeyFrom += ", which looks like a key of " + presets[owner].Title
	}
	if s.cfg.NoKey != nil {
		cfg.NoKey = s.cfg.NoKey(name, p.Env)
	}
	return cfg
}
