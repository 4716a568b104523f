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
// writes nothing. A name that lashd does not know becomes a provider. A provider with a key, or with headers for another address, gets no
// other address: they would go there.
func (s Setup) SetAddress(ctx context.Context, name, url string) (r protocol.ProviderSetAddressResult, err error) {
	if url == "" {
		return r, errors.New("no address was entered")
	}
	m, err := s.movable(name, url)
	if err != nil {
		return r, err
	}
	if r.KeyWanted, err = wantsKey(ctx, m.After, name); r.KeyWanted || err != nil {
		return r, err
	}
	err = config.Edit(ctx, s.Home, func(e *config.Editor) error {
		m, err := s.movable(name, url) // again: the provider may have got a key during the test
		if err != nil || !moves(m, name) {
			return err
		}
		r.Restart = true
		return e.SetBaseURL(name, url)
	})
	return r, err
}

// movable returns config.toml with another address of a provider without a key, or why it must not have that one.
func (s Setup) movable(name, url string) (config.Move, error) {
	m, err := config.LoadWithBaseURL(s.Home, name, url)
	if err != nil {
		return m, err
	}
	if from := keyFrom(m.After, name, s.sources(m.After)); from != "" {
		return m, fmt.Errorf("%s has a key, which would be sent to %s; choose another name, or enter a key for this address", Title(name), withoutSecrets(url))
	}
	return m, cmp.Or(otherHeaders(m, name), loginOnly(name))
}

// addressOf returns the address of a provider; "" if it has none.
func addressOf(c config.Config, name string) string {
	preset, _ := providers.PresetOf(name)
	return cmp.Or(c.Providers[name].BaseURL, preset.BaseURL)
}

// moves reports whether the address is another one than before.
func moves(m config.Move, name string) bool {
	return addressOf(m.Before, name) != addressOf(m.After, name)
}

// otherHeaders returns an error if headers of config.toml, whose values are secrets, are for an earlier address.
func otherHeaders(m config.Move, name string) error {
	if len(m.After.Providers[name].Headers) == 0 || addressOf(m.Before, name) == "" || !moves(m, name) {
		return nil
	}
	return fmt.Errorf("the headers of %s in config.toml would be sent to %s; remove headers from [providers.%s], or choose another name for the provider", Title(name), withoutSecrets(addressOf(m.After, name)), name)
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
