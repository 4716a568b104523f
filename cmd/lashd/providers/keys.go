package providers

import (
	"context"

	"lashd/engine/provider"
)

// KeyRing finds keys, in this order: in the daemon's environment, among those that clients handed over, and with the provider's own KeyReader.
type KeyRing struct {
	*provider.Keys
}

// Key implements Keys.
func (k KeyRing) Key(ctx context.Context, name string, p Provider) (provider.Secret, error) {
	if key := k.present(name, p); key != (provider.Secret{}) || p.Key == nil {
		return key, nil
	}
	return p.Key(ctx)
}

// Has implements Keys.
func (k KeyRing) Has(name string, p Provider) bool { return k.present(name, p) != provider.Secret{} }

// present returns the key that the environment or a client gave.
func (k KeyRing) present(name string, p Provider) provider.Secret {
	for _, variable := range p.Env {
		if key := k.Keys.Key(variable); key != (provider.Secret{}) {
			return key
		}
	}
	return k.Keys.Key(name)
}
