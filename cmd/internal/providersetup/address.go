package providersetup

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"lashd/cmd/internal/config"
	"lashd/cmd/internal/providers"
	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// SetAddress writes the address of a server that needs no key into config.toml, if the server answers there. If it wants a key, SetAddress
// writes nothing. A name that lashd does not know becomes a provider. A provider with a key gets no other address: the key would go there.
func (s Setup) SetAddress(ctx context.Context, name, url string) (r protocol.ProviderSetAddressResult, err error) {
	if url == "" {
		return r, errors.New("no address was entered")
	}
	c, err := config.LoadWithBaseURL(s.Home, name, url)
	if err != nil {
		return r, err
	}
	if from := keyFrom(c, name, s.sources(c)); from != "" {
		return r, fmt.Errorf("%s has a key, which would be sent to %s; choose another name, or enter a key for this address", Title(name), url)
	}
	if err := loginOnly(name); err != nil {
		return r, err
	}
	if r.KeyWanted, err = wantsKey(ctx, c, name); r.KeyWanted || err != nil {
		return r, err
	}
	if r.Restart, err = s.moves(name, url); !r.Restart || err != nil {
		return r, err
	}
	return r, config.SetBaseURL(s.Home, name, url)
}

// moves reports whether an address of a provider is another one than now.
func (s Setup) moves(name, url string) (bool, error) {
	c, err := config.Load(s.Home)
	preset, _ := providers.PresetOf(name)
	return cmp.Or(c.Providers[name].BaseURL, preset.BaseURL) != url, err
}

// wantsKey asks the server of a provider, without a key, for its models, and reports whether it wants a key.
func wantsKey(ctx context.Context, c config.Config, name string) (bool, error) {
	_, err := list(ctx, c, config.KeySources{Memory: provider.NewKeys(func(string) string { return "" })}, name)
	if e, ok := errors.AsType[*provider.Error](err); ok && e.Kind == provider.KindAuth {
		return true, nil
	}
	if Unreachable(err) {
		return false, silentServer{c.Providers[name].BaseURL, err}
	}
	return false, err
}

// silentServer is the error of a server that gave no answer at an address.
type silentServer struct {
	url string
	err error
}

func (e silentServer) Error() string {
	return fmt.Sprintf("nothing answers at %s; start the server, or correct the address", withoutSecrets(e.url))
}

func (e silentServer) Unwrap() error { return e.err }

// ModelsOf asks the server of a provider for the ids of its models, with the key of the provider.
func (s Setup) ModelsOf(ctx context.Context, name string) ([]string, error) {
	c, from, err := s.open()
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(unknown(c, name), loginOnly(name), noAddress(c, name)); err != nil {
		return nil, err
	}
	return list(ctx, c, from, name)
}

// list asks the server of a provider for the ids of its models.
func list(ctx context.Context, c config.Config, from config.KeySources, name string) ([]string, error) {
	source, err := c.Source(from, config.NotSet)
	if err != nil {
		return nil, err
	}
	s, ok := source.(*providers.Source)
	if !ok {
		return nil, nil // a script
	}
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	return s.List(ctx, name)
}
