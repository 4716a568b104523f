package providersetup

import (
	"context"
	"fmt"

	"lashd/cmd/internal/config"
	"lashd/cmd/internal/providers"
	"lashd/engine/provider/chatgpt"
	"lashd/rpc/protocol"
)

// LoginServer returns the server that logs people in to a provider.
func (s Setup) LoginServer(name string) (*chatgpt.Server, error) {
	if err := s.Unknown(name); err != nil {
		return nil, err
	}
	c, _, err := s.open()
	if err != nil {
		return nil, err
	}
	if !config.TakesLogin(name) {
		return nil, fmt.Errorf("%s takes an API key in place of a login; run lash login %s", Title(name), name)
	}
	if issuer := c.Providers[name].Login; issuer != "" {
		return chatgpt.NewServer(issuer), nil
	}
	preset, _ := providers.PresetOf(name)
	return chatgpt.NewServer(preset.Login), nil
}

// SetLogin stores the tokens of a login. The daemon reads them from the store.
func (s Setup) SetLogin(ctx context.Context, name string, tokens chatgpt.Tokens) (protocol.StoredKey, error) {
	_, from, err := s.open()
	if err != nil {
		return protocol.StoredKey{}, err
	}
	place, err := from.Store.Set(ctx, name, tokens.Secret())
	return storedIn(place), err
}
