package chatgpt

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"lashd/engine/provider"
)

// early is how long before their end tokens are renewed, so that no call begins with tokens that end on the way.
const early = 5 * time.Minute

// Store holds the tokens of a login where API keys are.
type Store interface {
	// Key returns the tokens of now, the zero Secret if there are none.
	Key(ctx context.Context, name string) (provider.Secret, error)
	// Update replaces the tokens by the result of renew, while no other process changes them. The result is on disk when Update returns.
	Update(ctx context.Context, name string, renew func(context.Context, provider.Secret) (provider.Secret, error)) (provider.Secret, error)
}

// Account is a stored login. One call of one process renews it; all others wait and use the result. It is safe for concurrent use.
type Account struct {
	server *Server
	store  Store
	name   string // of the provider
	flight singleflight.Group

	mu    sync.Mutex
	dead  string // refresh token that the server has refused
	trial string // tokens that a refusal of the model server led to, and that it has not yet accepted
}

// NewAccount returns the login that a store has under the name of a provider.
func NewAccount(server *Server, store Store, name string) *Account {
	return &Account{server: server, store: store, name: name}
}

// Key returns the tokens for a call, the zero Secret without a login. It renews those that end soon.
func (a *Account) Key(ctx context.Context) (provider.Secret, error) {
	key, err := a.store.Key(ctx, a.name)
	if err != nil || key == (provider.Secret{}) {
		return key, err
	}
	t, err := Parse(key)
	if err != nil || t.Expires.IsZero() || time.Until(t.Expires) > early {
		return key, err
	}
	newer, err := a.renew(ctx, key)
	if err != nil && ctx.Err() == nil && time.Until(t.Expires) > 0 {
		return key, nil // still good for this call
	}
	return newer, err
}

// renew replaces tokens, unless another call or process has done so, and returns the tokens of now. If ctx ends first, the renewal goes on: the
// server may have used up the old refresh token, and only storing the new one saves the login.
func (a *Account) renew(ctx context.Context, old provider.Secret) (provider.Secret, error) {
	done := a.flight.DoChan(old.Reveal(), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*answerLimit) // with the wait for the lock of the store
		defer cancel()
		return a.store.Update(ctx, a.name, func(ctx context.Context, now provider.Secret) (provider.Secret, error) {
			if now.Reveal() != old.Reveal() {
				return now, nil
			}
			return a.replace(ctx, now)
		})
	})
	select {
	case got := <-done:
		if got.Err != nil {
			return provider.Secret{}, a.failed(got.Err)
		}
		return got.Val.(provider.Secret), nil
	case <-ctx.Done():
		return provider.Secret{}, context.Cause(ctx)
	}
}

// replace asks the server for new tokens. A refresh token that it has refused is not sent again.
func (a *Account) replace(ctx context.Context, key provider.Secret) (provider.Secret, error) {
	old, err := Parse(key)
	if err != nil {
		return key, err
	}
	if a.isDead(old.Refresh) {
		return key, errRefused
	}
	t, err := a.server.renew(ctx, old)
	if errors.Is(err, errRefused) {
		a.bury(old.Refresh)
	}
	return t.Secret(), err
}

func (a *Account) isDead(refresh provider.Secret) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return refresh == (provider.Secret{}) || a.dead == refresh.Reveal()
}

func (a *Account) bury(refresh provider.Secret) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dead = refresh.Reveal()
}

// failed returns the error of a renewal for people. Only a refusal needs a new login.
func (a *Account) failed(err error) error {
	if errors.Is(err, errRefused) {
		return &provider.Error{Kind: provider.KindAuth, Code: "login_expired", Message: "the login of " + a.name + " has ended: " + err.Error() + "; " + a.again(), Err: err}
	}
	return &provider.Error{
		Kind: provider.KindTransport, Code: "login_not_renewed", Message: "cannot renew the login of " + a.name + " at " + a.server.issuer + ": " + err.Error(),
		Retryable: true, Err: err,
	}
}

func (a *Account) again() string { return "log in again: lash login " + a.name }

// Guard returns a provider whose calls carry the tokens of key. If its server refuses the tokens, they are renewed once, and the call fails
// with an error that provider.Retry tries again with the new ones.
func (a *Account) Guard(key provider.Secret, p provider.Provider) provider.Provider {
	return &guard{a, key, p}
}

// guard is a provider with the tokens of one moment.
type guard struct {
	account *Account
	key     provider.Secret
	next    provider.Provider
}

// Stream implements provider.Provider.
func (g *guard) Stream(ctx context.Context, req *provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		accepted := false
		for chunk, err := range g.next.Stream(ctx, req) {
			failure, ok := errors.AsType[*provider.Error](err)
			switch {
			case ok && failure.Status == http.StatusUnauthorized && !accepted && g.key != (provider.Secret{}):
				err = g.account.refused(ctx, g.key, failure)
			case err == nil && !accepted:
				accepted = true
				g.account.accept(g.key)
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}

// Check implements provider.Checker. It sends nothing, because the list of models of this server needs more than tokens; it reports only
// that there are none.
func (g *guard) Check(ctx context.Context) error {
	if c, ok := g.next.(provider.Checker); ok && g.key == (provider.Secret{}) {
		return c.Check(ctx)
	}
	return nil
}

// refused renews tokens that the model server refused and returns the error of the call.
func (a *Account) refused(ctx context.Context, used provider.Secret, failure *provider.Error) error {
	final := *failure
	if a.isTrial(used) {
		final.Code, final.Message = "login_refused", failure.Message+"; "+a.again()
		return &final
	}
	newer, err := a.renew(ctx, used)
	if err != nil {
		return err
	}
	a.try(newer)
	final.Code, final.Message, final.Retryable, final.RetryAfter = "login_renewed", failure.Message+"; the login was renewed", true, time.Millisecond
	return &final
}

// isTrial reports whether tokens come from a renewal after a refusal and were not accepted since.
func (a *Account) isTrial(key provider.Secret) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.trial == key.Reveal()
}

func (a *Account) try(key provider.Secret) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.trial = key.Reveal()
}

func (a *Account) accept(key provider.Secret) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.trial == key.Reveal() {
		a.trial = ""
	}
}
