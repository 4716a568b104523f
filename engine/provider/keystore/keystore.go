// Package keystore keeps API keys outside of lashd's configuration and database.
//
// A Store has the keys that people enter with lashd login, one for each provider: in the system's keyring or, without one, in the file
// keys.json. A Reader reads the key that a reference of the configuration names. The daemon reads both; only commands write.
package keystore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
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
	dir  string   // the data directory; may not exist before the first Set
	ring *Keyring // asked for keys that the file marks with Keyring

	mu      sync.Mutex
	readers map[string]*cache // for keys in the keyring, by provider
}

// entry is where the key of a provider is: in the keyring or, as text, in the file.
type entry struct {
	Keyring bool   `json:"keyring,omitempty"` // the key is in the keyring, and Key is empty
	Key     string `json:"key,omitempty"`     // the key itself, if there was no keyring
}

// New returns the store of a data directory, which need not exist.
func New(dir string, ring *Keyring) *Store {
	return &Store{dir: dir, ring: ring, readers: map[string]*cache{}}
}

// Path returns the path of the file.
func (s *Store) Path() string { return filepath.Join(s.dir, File) }

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

// Key returns the key of a provider, the zero Secret if there is none. It may wait for the keyring, until ctx is done.
// The file is read for each call, so a key that a command stores is used without a restart. A key of the keyring is cached for five minutes.
func (s *Store) Key(ctx context.Context, name string) (provider.Secret, error) {
	entries, err := s.read()
	if err != nil {
		return provider.Secret{}, err
	}
	e := entries[name]
	if !e.Keyring {
		return provider.NewSecret(e.Key), nil
	}
	key, err := s.reader(name).get(ctx)
	if err != nil {
		return key, fmt.Errorf("the key of %s is in the system's keyring: %w; unlock the keyring, or run lashd login %s", name, err, name)
	}
	return key, nil
}

// reader returns the cached access to the keyring for a provider.
func (s *Store) reader(name string) *cache {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readers[name] == nil {
		s.readers[name] = newCache(func(ctx context.Context) (provider.Secret, error) { return s.ring.Get(ctx, Service, s.account(name)) })
	}
	return s.readers[name]
}

// account returns the account of a provider in the keyring. Each data directory has its own.
func (s *Store) account(name string) string { return name + " in " + s.dir }

// Place says where a key was stored.
type Place string

const (
	InKeyring Place = "keyring"
	InFile    Place = "file"
)

// Set stores the key of a provider: in the keyring, or in the file if there is no keyring.
// It replaces an earlier key. Commands call it; two that run at the same time may lose one of their changes.
func (s *Store) Set(ctx context.Context, name string, key provider.Secret) (Place, error) {
	entries, err := s.read()
	if err != nil {
		return "", err
	}
	place, stored := InKeyring, entry{Keyring: true}
	err = s.ring.Set(ctx, Service, s.account(name), key)
	if errors.Is(err, ErrNoKeyring) {
		place, stored, err = InFile, entry{Key: key.Reveal()}, nil
	}
	if err != nil {
		return "", err
	}
	entries[name] = stored
	s.forget(name)
	return place, s.write(entries)
}

// Delete removes the key of a provider and reports whether there was one.
// If the keyring fails, the entry stays in the file.
func (s *Store) Delete(ctx context.Context, name string) (bool, error) {
	entries, err := s.read()
	e, ok := entries[name]
	if err != nil || !ok {
		return false, err
	}
	if e.Keyring {
		if err := s.ring.Delete(ctx, Service, s.account(name)); err != nil {
			return false, fmt.Errorf("delete the key of %s: %w", name, err)
		}
	}
	delete(entries, name)
	s.forget(name)
	return true, s.write(entries)
}

// forget drops the cached key of a provider.
func (s *Store) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.readers, name)
}

// read reads the file. A missing file has no keys. A file that other users can read is an error, because its keys may be known to them.
func (s *Store) read() (map[string]entry, error) {
	entries := map[string]entry{}
	f, err := os.Open(s.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return entries, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s has mode %#o and may be read by other users; run chmod 600 on it, and replace its keys if others use this machine", s.Path(), mode)
	}
	if err := json.NewDecoder(f).Decode(&entries); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w; remove it and run lashd login", s.Path(), plain(err))
	}
	if entries == nil { // the file holds null
		entries = map[string]entry{}
	}
	return entries, nil
}

// plain returns a JSON error without the text of the file, which may be a key.
func plain(err error) error {
	if at, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("invalid JSON at byte %d", at.Offset)
	}
	return errors.New("invalid JSON")
}

// write replaces the file at once, with mode 0600.
func (s *Store) write(entries map[string]entry) error {
	data, err := json.MarshalIndent(entries, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, ".keys-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // no effect after the rename
	_, err = f.Write(append(data, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), s.Path())
}
