// Package keystore keeps API keys outside of lashd's configuration and database.
//
// A Store has the keys that people enter with lash login, one for each provider: in the system's keyring or, without one, in the file
// keys.json. A Reader reads the key that a reference of the configuration names. The daemon reads both. Commands write, and the daemon
// renews logins.
package keystore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"lashd/engine/provider"
)

// Service is the service under which lashd stores keys in the keyring.
const Service = "lashd"

// File is the name of the file with the keys, or with the names of those that are in the keyring.
const File = "keys.json"

// Store has one key for each provider. It is safe for concurrent use.
type Store struct {
	// Name and Again may be set before the first use.
	Name  string // of the file; empty: File
	Again string // command with which a person stores an entry again; empty: lash login NAME

	dir  string   // the data directory; may not exist before the first Set
	ring *Keyring // asked for keys that the file marks with Keyring

	mu      sync.Mutex
	readers map[string]reader // for keys in the keyring, by provider
}

// reader is the access to a key in the keyring.
type reader struct {
	*cache
	stamp string // of the entry whose key is cached
}

// entry is where the key of a provider is: in the keyring or, as text, in the file.
type entry struct {
	Keyring bool   `json:"keyring,omitempty"` // the key is in the keyring, and Key is empty
	Key     string `json:"key,omitempty"`     // the key itself, if there was no keyring
	Address string `json:"address,omitempty"` // of the server that gets the key; empty: any
	Stamp   string `json:"stamp,omitempty"`   // differs for each key that was put into the keyring, so that no process uses an older one
}

// New returns the store of a data directory, which need not exist. Its file belongs into the data directory itself, whose files no tool
// of a session opens, also by another name.
func New(dir string, ring *Keyring) *Store {
	return &Store{dir: dir, ring: ring, readers: map[string]reader{}}
}

// Path returns the path of the file.
func (s *Store) Path() string { return filepath.Join(s.dir, cmp.Or(s.Name, File)) }

// Has reports whether the store has a key for a provider. It does not ask the keyring.
// A file that cannot be read counts as one without keys.
func (s *Store) Has(name string) bool {
	entries, err := s.read()
	_, ok := entries[name]
	return ok && err == nil
}

// Names returns the providers that have a key, sorted.
// It fails if the file cannot be read.
func (s *Store) Names() ([]string, error) {
	entries, err := s.read()
	return slices.Sorted(maps.Keys(entries)), err
}

// ErrOtherAddress means that a key was stored for another address of its provider.
var ErrOtherAddress = errors.New("the key was stored for another address")

// HasFor is Has, for a key that KeyFor returns.
func (s *Store) HasFor(name, address string) bool {
	entries, err := s.read()
	e, ok := entries[name]
	return ok && err == nil && e.fits(address)
}

// KeyFor is Key, but it fails with ErrOtherAddress if the key was stored for another address.
func (s *Store) KeyFor(ctx context.Context, name, address string) (provider.Secret, error) {
	entries, err := s.read()
	if err == nil && !entries[name].fits(address) {
		return provider.Secret{}, fmt.Errorf("%w of %s; restart the daemon to use that address, or run %s to store a key for this one", ErrOtherAddress, name, cmp.Or(s.Again, "lash login "+name))
	}
	return s.Key(ctx, name)
}

// fits reports whether the key may go to an address.
func (e entry) fits(address string) bool { return e.Address == "" || e.Address == address }

// Key returns the key of a provider, the zero Secret if there is none. It may wait for the keyring, until ctx is done.
// The file is read for each call, so a key that a command stores is used without a restart. A key of the keyring is cached for five
// minutes, or until another one is stored.
func (s *Store) Key(ctx context.Context, name string) (provider.Secret, error) {
	entries, err := s.read()
	if err != nil {
		return provider.Secret{}, err
	}
	e := entries[name]
	if !e.Keyring {
		return provider.NewSecret(e.Key), nil
	}
	key, err := s.reader(name, e.Stamp).get(ctx)
	if err != nil {
		return key, fmt.Errorf("the key of %s is in the system's keyring: %w; unlock the keyring, or run %s", name, err, cmp.Or(s.Again, "lash login "+name))
	}
	return key, nil
}

// reader returns the cached access to the keyring for the entry of a provider with this stamp.
func (s *Store) reader(name, stamp string) reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.readers[name]; ok && r.stamp == stamp {
		return r
	}
	read := func(ctx context.Context) (provider.Secret, error) { return s.ring.Get(ctx, Service, s.account(name)) }
	s.readers[name] = reader{newCache(read), stamp}
	return s.readers[name]
}

// account returns the account of a provider in the keyring. Each data directory has its own.
func (s *Store) account(name string) string { return name + " in " + s.dir }

// Place says where Set stored a key.
type Place struct {
	File   string // path of the file; "": the keyring
	Failed error  // why the keyring did not take the key, with File; nil: it took it, or it is turned off
}

// Set stores the key of a provider: in the keyring, or in the file if there is no keyring.
// It replaces an earlier key. Once it has returned, the key survives a power loss. Commands that change keys at the same time wait
// for each other.
func (s *Store) Set(ctx context.Context, name string, key provider.Secret) (Place, error) {
	return s.SetFor(ctx, name, "", key)
}

// SetFor is Set for a key that only the server at an address may get; empty: any.
func (s *Store) SetFor(ctx context.Context, name, address string, key provider.Secret) (Place, error) {
	place := Place{}
	err := s.change(ctx, func(entries map[string]entry) (changed bool, err error) {
		place, err = s.put(ctx, entries, name, entry{Address: address}, key)
		return err == nil, err
	})
	s.forget(name)
	return place, err
}

// put stores a key in the keyring or in entries, with the address of e, and says where.
func (s *Store) put(ctx context.Context, entries map[string]entry, name string, e entry, key provider.Secret) (Place, error) {
	err := s.ring.Set(ctx, Service, s.account(name), key)
	switch {
	case errors.Is(err, ErrNoKeyring):
		entries[name] = entry{Key: key.Reveal(), Address: e.Address}
		return Place{s.Path(), s.ring.failed(err)}, nil
	case err != nil:
		return Place{}, err
	}
	entries[name] = entry{Keyring: true, Address: e.Address, Stamp: rand.Text()}
	return Place{}, nil
}

// Update replaces the key of a provider by the result of renew, which gets the key of now. No other process changes the store while
// renew runs, and the new key is on disk when Update returns it. Without a key, Update returns the zero Secret and does not call renew.
func (s *Store) Update(ctx context.Context, name string, renew func(context.Context, provider.Secret) (provider.Secret, error)) (provider.Secret, error) {
	var key provider.Secret
	err := s.change(ctx, func(entries map[string]entry) (changed bool, err error) {
		old, err := s.stored(ctx, entries, name)
		if err != nil || old == (provider.Secret{}) {
			return false, err
		}
		if key, err = renew(ctx, old); err != nil || key.Reveal() == old.Reveal() {
			return false, err
		}
		_, err = s.put(ctx, entries, name, entries[name], key)
		return err == nil, err
	})
	if err != nil {
		return provider.Secret{}, err
	}
	return key, nil
}

// stored returns the key of now without a cache.
func (s *Store) stored(ctx context.Context, entries map[string]entry, name string) (provider.Secret, error) {
	if e := entries[name]; !e.Keyring {
		return provider.NewSecret(e.Key), nil
	}
	return s.ring.Get(ctx, Service, s.account(name))
}

// Delete removes the key of a provider and reports whether there was one.
// If the keyring fails, the entry stays in the file. A key that is in the file may have an older one in the keyring, from a time at which
// the keyring was available; that one is removed too, if the keyring is available again.
func (s *Store) Delete(ctx context.Context, name string) (had bool, err error) {
	err = s.change(ctx, func(entries map[string]entry) (bool, error) {
		e, ok := entries[name]
		if had = ok; !ok {
			return false, nil
		}
		if err := s.ring.Delete(ctx, Service, s.account(name)); err != nil && (e.Keyring || !errors.Is(err, ErrNoKeyring)) {
			return false, fmt.Errorf("delete the key of %s: %w", name, err)
		}
		delete(entries, name)
		return true, nil
	})
	s.forget(name)
	return had && err == nil, err
}

// forget drops the cached key of a provider.
func (s *Store) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.readers, name)
}
