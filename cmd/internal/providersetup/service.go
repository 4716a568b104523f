package providersetup

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"lashd/engine/provider"
	"lashd/engine/provider/chatgpt"
	"lashd/rpc/protocol"
)

// Limits of logins that are not finished.
const (
	loginLimit = 15 * time.Minute // how long one may take
	maxLogins  = 16               // a further one ends the oldest
)

// errNoLogin means that a login does not exist, or has taken too long.
var errNoLogin = errors.New("no such login; it may have taken longer than 15 minutes. Begin a new one")

// Service is the set-up for the clients of a daemon. It keeps logins that a person has not finished yet. It implements rpc.Providers and
// is safe for concurrent use.
type Service struct {
	Setup

	mu     sync.Mutex
	logins map[string]login // by id
}

// login is a login that a person has not finished.
type login struct {
	provider string
	began    time.Time
	finish   func(ctx context.Context, address string) (chatgpt.Tokens, error)
}

// NewService returns the set-up of the data directory of a daemon with the keys in its memory.
func NewService(home string, memory *provider.Keys) *Service {
	return &Service{Setup: Setup{Home: home, Memory: memory}, logins: map[string]login{}}
}

// List implements rpc.Providers.
func (s *Service) List(ctx context.Context, _ *protocol.Empty) (*protocol.ProviderListResult, error) {
	all, err := s.ProvidersAndLocal(ctx)
	return &protocol.ProviderListResult{Data: all}, err
}

// Models implements rpc.Providers.
func (s *Service) Models(ctx context.Context, p *protocol.ProviderParams) (*protocol.ProviderModelsResult, error) {
	ids, err := s.ModelsOf(ctx, p.Name)
	return &protocol.ProviderModelsResult{Data: ids}, err
}

// SetAddress implements rpc.Providers.
func (s *Service) SetAddress(ctx context.Context, p *protocol.ProviderSetAddressParams) (*protocol.ProviderSetAddressResult, error) {
	r, err := s.Setup.SetAddress(ctx, p.Name, p.BaseURL)
	return &r, err
}

// SetKey implements rpc.Providers.
func (s *Service) SetKey(ctx context.Context, p *protocol.ProviderSetKeyParams) (*protocol.StoredKey, error) {
	stored, _, err := s.Setup.SetKey(ctx, Key{Provider: p.Name, Text: provider.NewSecret(p.Key), BaseURL: p.BaseURL, Untested: p.Untested})
	return &stored, err
}

// RemoveKey implements rpc.Providers.
func (s *Service) RemoveKey(ctx context.Context, p *protocol.ProviderParams) (*protocol.ProviderRemoveKeyResult, error) {
	if _, err := s.Setup.RemoveKey(ctx, p.Name); err != nil {
		return nil, err
	}
	c, from, err := s.open()
	if err != nil {
		return nil, err
	}
	return &protocol.ProviderRemoveKeyResult{Key: keyFrom(c, p.Name, from)}, nil
}

// BeginLogin implements rpc.Providers.
func (s *Service) BeginLogin(ctx context.Context, p *protocol.ProviderBeginLoginParams) (*protocol.ProviderBeginLoginResult, error) {
	server, err := s.LoginServer(p.Name)
	if err != nil {
		return nil, err
	}
	if !p.Device {
		l := server.Begin()
		return &protocol.ProviderBeginLoginResult{LoginID: s.keep(p.Name, l.Finish), URL: l.URL, Redirect: l.Redirect}, nil
	}
	d, err := server.BeginDevice(ctx)
	if err != nil {
		return nil, err
	}
	id := s.keep(p.Name, func(ctx context.Context, _ string) (chatgpt.Tokens, error) { return d.Wait(ctx) })
	return &protocol.ProviderBeginLoginResult{LoginID: id, URL: d.URL, Code: d.Code}, nil
}

// keep adds a login, forgets those that took too long and those over maxLogins, and returns the id of the new one.
func (s *Service) keep(name string, finish func(context.Context, string) (chatgpt.Tokens, error)) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, l := range s.logins {
		if time.Since(l.began) > loginLimit {
			delete(s.logins, id)
		}
	}
	if len(s.logins) == maxLogins {
		delete(s.logins, slices.MinFunc(slices.Collect(maps.Keys(s.logins)), func(a, b string) int { return s.logins[a].began.Compare(s.logins[b].began) }))
	}
	id := rand.Text()
	s.logins[id] = login{name, time.Now(), finish}
	return id
}

// FinishLogin implements rpc.Providers. A login that failed can be finished again, for example with the whole address.
func (s *Service) FinishLogin(ctx context.Context, p *protocol.ProviderFinishLoginParams) (*protocol.StoredKey, error) {
	s.mu.Lock()
	l, ok := s.logins[p.LoginID]
	s.mu.Unlock()
	if !ok || time.Since(l.began) > loginLimit {
		return nil, errNoLogin
	}
	tokens, err := l.finish(ctx, p.Address)
	if err != nil {
		return nil, err
	}
	stored, err := s.SetLogin(ctx, l.provider, tokens)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.logins, p.LoginID)
	return &stored, nil
}

// SetDefaultModel implements rpc.Providers.
func (s *Service) SetDefaultModel(ctx context.Context, p *protocol.ModelSetDefaultParams) (*protocol.ModelSetDefaultResult, error) {
	restart, err := s.SetDefault(ctx, p.Name)
	return &protocol.ModelSetDefaultResult{Restart: restart}, err
}
