package providers

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"lashd/engine/provider"
	"lashd/engine/provider/keystore"
)

// KeyRing finds keys, in this order: in the daemon's environment, among those that clients handed over, where the configuration says, and
// in the store. Of the first two, it looks for the provider's variables and for its name. A stored key goes only to the address for which it
// was stored, so that a daemon does not send it to an earlier one.
type KeyRing struct {
	*provider.Keys
	Store *keystore.Store // nil: none
}

// Key implements Keys.
func (k KeyRing) Key(ctx context.Context, name string, p Provider) (provider.Secret, error) {
	if p.Login != "" {
		return provider.Secret{}, nil // a login is no key
	}
	if key := k.present(name, p); key != (provider.Secret{}) {
		return key, nil
	}
	if p.Key != nil {
		return p.Key(ctx)
	}
	if k.Store == nil {
		return provider.Secret{}, nil
	}
	key, err := k.Store.KeyFor(ctx, cmp.Or(p.KeyName, name), p.BaseURL)
	if !p.NeedKey && key == (provider.Secret{}) && !errors.Is(err, keystore.ErrOtherAddress) {
		return key, nil // a local server works although the store cannot be read
	}
	return key, err
}

// From implements Keys. A provider without any key has the variable in which one is expected.
func (k KeyRing) From(name string, p Provider) string {
	owner := cmp.Or(p.KeyName, name)
	from := k.Keys.From(append(slices.Clone(p.Env), owner)...)
	stored := k.Store != nil && k.Store.Has(owner)
	switch {
	case from != "" && from != owner:
		return "the environment variable " + from
	case from == "" && p.Key != nil:
		return "the key that [providers." + name + "] of config.toml refers to"
	case from == "" && !stored && len(p.Env) > 0:
		return "the environment variable " + p.Env[0]
	}
	return "the key of " + owner + " (lash login " + owner + " stores another one)"
}

// Has implements Keys. It counts a reference of the configuration as a key without following it.
func (k KeyRing) Has(name string, p Provider) bool {
	if p.Login != "" {
		return k.Store != nil && k.Store.Has(name)
	}
	return k.present(name, p) != provider.Secret{} || p.Key != nil || k.Store != nil && k.Store.HasFor(cmp.Or(p.KeyName, name), p.BaseURL)
}

// present returns the key that the environment or a client gave.
func (k KeyRing) present(name string, p Provider) provider.Secret {
	return k.Keys.Key(append(slices.Clone(p.Env), cmp.Or(p.KeyName, name))...)
}
