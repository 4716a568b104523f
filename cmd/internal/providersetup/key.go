package providersetup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"lashd/cmd/internal/config"
	"lashd/cmd/internal/providers"
	"lashd/engine/models"
	"lashd/engine/provider"
	"lashd/engine/provider/keystore"
	"lashd/engine/provider/knownmodels"
	"lashd/rpc/protocol"
)

// Key is what a person entered, and how to store it.
type Key struct {
	Provider string
	Text     provider.Secret // as entered or pasted
	BaseURL  string          // address to write into config.toml; "": it stays
	Untested bool            // store the key without a test
}

// SetKey tests a key with one call and stores it. The memory of the daemon, if this process is the daemon, forgets an earlier one. SetKey
// returns the key without what surrounded it. A name that lashd does not know becomes a provider if it comes with an address. The address is written last, so
// that an earlier key never goes there; if SetKey fails before, config.toml keeps the address that it had.
func (s Setup) SetKey(ctx context.Context, k Key) (stored protocol.StoredKey, key provider.Secret, err error) {
	c, _, err := s.openFor(k)
	if err != nil {
		return stored, key, err
	}
	if err := cmp.Or(unknown(c, k.Provider), loginOnly(k.Provider), noKeyFor(ctx, c, k.Provider)); err != nil {
		return stored, key, err
	}
	if key, err = entered(c, k.Provider, k.Text.Reveal()); err != nil {
		return stored, key, err
	}
	if !k.Untested {
		if err := testKey(ctx, c, k.Provider, key); ctx.Err() != nil {
			return stored, key, ctx.Err()
		} else if err != nil {
			return stored, key, failedTest(k.Provider, err)
		}
	}
	err = config.Edit(ctx, s.Home, func(e *config.Editor) (err error) {
		stored, err = s.store(ctx, e, k, key, addressOf(c, k.Provider))
		return err
	})
	return stored, key, err
}

// store stores a key that was tested at an address, and then the address. It fails if the provider has another address by now.
func (s Setup) store(ctx context.Context, e *config.Editor, k Key, key provider.Secret, tested string) (stored protocol.StoredKey, err error) {
	c, from, err := s.openFor(k)
	if err != nil {
		return stored, err
	}
	if addressOf(c, k.Provider) != tested {
		return stored, fmt.Errorf("the key was not stored, because the address of %s has changed since the key was tested; enter the key again", Title(k.Provider))
	}
	place, err := from.Store.SetFor(ctx, k.Provider, c.Providers[k.Provider].BaseURL, key)
	if err != nil {
		return stored, fmt.Errorf("the key was not stored: %w", err)
	}
	if k.BaseURL != "" {
		if err := e.SetBaseURL(k.Provider, k.BaseURL); err != nil {
			return stored, fmt.Errorf("the key was stored, but not the address: %w", err)
		}
	}
	stored = storedIn(place)
	// The daemon reads the store, which knows the address of the key. Its memory does not, and counts before.
	stored.Restart = s.forget(k.Provider) != nil || k.BaseURL != ""
	stored.UsedFirst = setVariables(c, k.Provider)
	return stored, nil
}

// failedTest returns the error of a key whose test failed: a short one if the server rejected the key.
func failedTest(name string, err error) error {
	e, ok := errors.AsType[*provider.Error](err)
	if !ok || e.Kind != provider.KindAuth || e.Status == 0 {
		return fmt.Errorf("the key was not stored, because its test failed: %w", err)
	}
	reason := strings.TrimRight(e.Reason, ". ")
	if reason != "" {
		reason = ": " + reason
	}
	return fmt.Errorf("%s rejected the key (HTTP %d)%s. lashd did not store it; check the key and enter it again", Title(name), e.Status, reason)
}

// openFor is open with the address of a key, which may be what the configuration lacks. It fails if another key or headers would go there.
func (s Setup) openFor(k Key) (config.Config, config.KeySources, error) {
	if k.BaseURL == "" {
		return s.open()
	}
	m, err := config.LoadWithBaseURL(s.Home, k.Provider, k.BaseURL)
	if err == nil {
		err = cmp.Or(otherKeys(m.After, k), otherHeaders(m, k.Provider))
	}
	return m.After, s.sources(m.After), err
}

// otherKeys returns an error if another key, which counts before a stored one, would go to the address of k.
func otherKeys(c config.Config, k Key) error {
	set, named := setVariables(c, k.Provider), c.Providers[k.Provider].Key
	switch {
	case named != nil && named.Env == "":
		return fmt.Errorf("the key that config.toml names would be sent to %s; remove key from [providers.%s], or choose another name for the provider", withoutSecrets(k.BaseURL), k.Provider)
	case len(set) > 0:
		return fmt.Errorf("the key in %s would be sent to %s; unset the variable, or choose another name for the provider", set[0], withoutSecrets(k.BaseURL))
	}
	return nil
}

// loginOnly returns an error for a provider that takes a login in place of a key.
func loginOnly(name string) error {
	if config.TakesLogin(name) {
		return fmt.Errorf("%s takes a login in place of a key; run lash login %s", Title(name), name)
	}
	return nil
}

// forget removes a key from the memory of the daemon that a client gave before.
func (s Setup) forget(name string) error {
	if s.Memory == nil {
		return nil
	}
	return s.Memory.Hand(name, provider.Secret{})
}

// storedIn returns a place for clients.
func storedIn(place keystore.Place) protocol.StoredKey {
	stored := protocol.StoredKey{File: place.File}
	if place.Failed != nil {
		stored.KeyringProblem = place.Failed.Error()
	}
	return stored
}

// setVariables returns the variables of the environment of this process that have a key of a provider.
func setVariables(c config.Config, name string) []string {
	return slices.DeleteFunc(slices.Clone(variablesOf(c, name)), func(variable string) bool { return os.Getenv(variable) == "" })
}

// MaxPasted is the largest key that a person can enter, in bytes.
const MaxPasted = 8 << 10

// entered returns the key in a text that a person entered or pasted: without white space and quotes around it, and without the
// name of its variable. It rejects a text that is no key, and a key of another provider.
func entered(c config.Config, name, text string) (provider.Secret, error) {
	size := len(text)
	text = strings.TrimPrefix(text, "\ufeff") // which some programs on Windows put before a text
	text = strings.TrimPrefix(strings.TrimSpace(text), "export ")
	if variable, value, ok := strings.Cut(text, "="); ok && slices.Contains(variablesOf(c, name), variable) {
		text = value
	}
	for _, quotes := range []string{`""`, "''", "``", "“”", "‘’"} {
		marks := []rune(quotes)
		if inner, ok := strings.CutPrefix(text, string(marks[0])); ok && strings.HasSuffix(inner, string(marks[1])) {
			text = strings.TrimSpace(strings.TrimSuffix(inner, string(marks[1])))
		}
	}
	odd := strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
	switch owner := providers.KeyOwner(text); {
	case text == "":
		return provider.Secret{}, errors.New("no key was entered")
	case size > MaxPasted || odd >= 0 && text[odd] <= ' ':
		return provider.Secret{}, errors.New("that is no key: it must be one line without spaces")
	case odd >= 0:
		return provider.Secret{}, fmt.Errorf("that is no key: character %d of it is not on a keyboard. Copy the key again, without the text around it", len([]rune(text[:odd]))+1)
	case owner != "" && owner != name && c.Providers[name].BaseURL == "":
		return provider.Secret{}, fmt.Errorf("that looks like a key of %s, not of %s; choose %s to store it", Title(owner), Title(name), Title(owner))
	}
	return provider.NewSecret(text), nil
}

// testKey makes one real call with a key: a small model call if a model of the provider is known, else a request for its list of models.
func testKey(ctx context.Context, c config.Config, name string, key provider.Secret) error {
	memory := provider.NewKeys(func(string) string { return "" })
	memory.Accept(name)
	if err := memory.Hand(name, key); err != nil {
		return err
	}
	source, err := c.Source(config.KeySources{Memory: memory}, config.NotSet)
	if err != nil {
		return err
	}
	if m, ok := source.Model(name + "/" + knownmodels.Default(name)); ok {
		_, err := models.Try(ctx, m)
		return err
	}
	m, _ := source.Model(name + "/list")
	checker, ok := m.Provider.(provider.Checker)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	return checker.Check(ctx)
}

// listLimit bounds the request for the models of a provider.
const listLimit = 10 * time.Second

// Unreachable reports whether the test of a key failed for a reason that says nothing about the key: there was no answer.
func Unreachable(err error) bool {
	e, ok := errors.AsType[*provider.Error](err)
	return ok && (e.Kind == provider.KindTransport || e.Kind == provider.KindTimeout)
}

// RemoveKey deletes the stored key or login of a provider, and removes it from the memory of the daemon. It returns the variables of the
// environment that still have a key.
func (s Setup) RemoveKey(ctx context.Context, name string) (variables []string, err error) {
	c, from, err := s.open()
	if err != nil {
		return nil, err
	}
	had, err := from.Store.Delete(ctx, name)
	if err != nil {
		return nil, err
	}
	if !had {
		return nil, fmt.Errorf("no key of %s is stored; lash model providers shows where keys come from", Title(name))
	}
	if config.TakesLogin(name) {
		return nil, nil // the daemon reads the store
	}
	if err := s.forget(name); err != nil && !errors.Is(err, provider.ErrUnknownKey) {
		return nil, err
	}
	return setVariables(c, name), nil
}

// Stored returns the names of the providers with a stored key or login, sorted.
func (s Setup) Stored() ([]string, error) {
	_, from, err := s.open()
	if err != nil {
		return nil, err
	}
	return from.Store.Names()
}
