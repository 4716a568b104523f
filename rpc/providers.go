package rpc

import (
	"context"
	"errors"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// Providers sets up model providers: their keys, their logins and the default model. The provider methods call it; package
// providersetup implements it. Methods are called from many goroutines. Each error is for the person who sets up a provider, and has no key.
type Providers interface {
	// List returns all providers, with the models of local servers that run.
	List(context.Context, *protocol.Empty) (*protocol.ProviderListResult, error)
	// Models asks the server of a provider for its models.
	Models(context.Context, *protocol.ProviderParams) (*protocol.ProviderModelsResult, error)
	// SetAddress writes the address of a server without a key, if the server answers.
	SetAddress(context.Context, *protocol.ProviderSetAddressParams) (*protocol.ProviderSetAddressResult, error)
	// SetKey tests and stores a key; RemoveKey deletes it, or a login.
	SetKey(context.Context, *protocol.ProviderSetKeyParams) (*protocol.StoredKey, error)
	RemoveKey(context.Context, *protocol.ProviderParams) (*protocol.ProviderRemoveKeyResult, error)
	// BeginLogin and FinishLogin log a person in with a browser.
	BeginLogin(context.Context, *protocol.ProviderBeginLoginParams) (*protocol.ProviderBeginLoginResult, error)
	FinishLogin(context.Context, *protocol.ProviderFinishLoginParams) (*protocol.StoredKey, error)
	// SetDefaultModel sets the model of new sessions.
	SetDefaultModel(context.Context, *protocol.ModelSetDefaultParams) (*protocol.ModelSetDefaultResult, error)
}

// errNoProviders means that the daemon has no configuration of providers.
var errNoProviders = errors.New("this daemon has no providers to set up")

// setsUp adapts a method of Providers. These methods take no idempotency key: a repetition is harmless, and no digest of a key is stored.
func setsUp[P, R any](f func(Providers, context.Context, *P) (*R, error)) handler[P, R] {
	return func(c *conn, ctx context.Context, p *P) (*R, error) {
		if c.Providers == nil {
			return nil, setupError(errNoProviders)
		}
		r, err := f(c.Providers, ctx, p)
		if err != nil && ctx.Err() == nil {
			return nil, setupError(err)
		}
		return r, err
	}
}

// setupError returns an error with its whole text for the client. It tells apart whether a server rejected something or gave no answer.
func setupError(err error) error {
	kind := protocol.KindSetupFailed
	if e, ok := errors.AsType[*provider.Error](err); ok && (e.Kind == provider.KindTransport || e.Kind == provider.KindTimeout) {
		kind = protocol.KindProviderUnreachable
	}
	return newError(codeState, plain(err), protocol.ErrorData{Kind: kind, Retry: protocol.RetryReload, Outcome: protocol.EffectNone})
}
