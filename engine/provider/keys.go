package provider

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
)

// Keys holds the keys of model servers in memory, by the name of the environment variable that each comes from or of the provider. Keys
// that a client sets are never stored on disk, logged or returned to a client. Keys is safe for concurrent use.
type Keys struct {
	mu        sync.Mutex
	own       map[string]Secret // from the daemon's environment; never changed
	handed    map[string]handed // from clients
	count     int               // keys handed over so far
	wanted    []string          // variables that own lacks, sorted
	providers []string          // names of providers whose key may be handed over as well
}

// handed is a key from a client.
type handed struct {
	key Secret
	nth int // in the order in which clients handed keys over
}

var (
	// ErrUnknownKey means that no configured model uses a key of that name.
	ErrUnknownKey = errors.New("no configured model uses a key of that name")
	// ErrOwnKey means that the daemon found the key in its own environment, and keeps that one.
	ErrOwnKey = errors.New("the daemon has this key from its own environment")
)

// NewKeys reads the keys of these names with getenv. Those that are missing or empty can be handed over.
func NewKeys(getenv func(string) string, names ...string) *Keys {
	k := &Keys{own: map[string]Secret{}, handed: map[string]handed{}}
	for _, name := range names {
		if key := NewSecret(getenv(name)); key != (Secret{}) {
			k.own[name] = key
		} else {
			k.wanted = append(k.wanted, name)
		}
	}
	slices.Sort(k.wanted)
	k.wanted = slices.Compact(k.wanted)
	return k
}

// Accept allows the keys of these providers to be handed over by the provider's name. Call it before the Keys are used.
func (k *Keys) Accept(providers ...string) { k.providers = append(k.providers, providers...) }

// Wanted lists the variables of keys that a client may hand over, including those that one has.
func (k *Keys) Wanted() []string { return slices.Clone(k.wanted) }

// Hand takes a key from a client; the zero Secret takes back an earlier one. It fails with ErrUnknownKey or ErrOwnKey.
func (k *Keys) Hand(name string, key Secret) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.own[name] != (Secret{}):
		return ErrOwnKey
	case !k.accepts(name):
		return ErrUnknownKey
	case key == Secret{}:
		delete(k.handed, name)
		return nil
	}
	k.count++
	k.handed[name] = handed{key, k.count}
	return nil
}

// accepts reports whether a key of this name may be handed over.
func (k *Keys) accepts(name string) bool {
	return slices.Contains(k.wanted, name) || slices.Contains(k.providers, name)
}

// Key returns the key of several names for one key: the first that the daemon's environment has, else the one that a client handed over
// last, else the zero Secret.
func (k *Keys) Key(names ...string) Secret {
	k.mu.Lock()
	defer k.mu.Unlock()
	var newest handed
	for _, name := range names {
		if key := k.own[name]; key != (Secret{}) {
			return key
		}
		if h := k.handed[name]; h.nth > newest.nth {
			newest = h
		}
	}
	return newest.key
}

// From returns the name of the variable or the provider under which Key finds the key of several names, "" if it finds none.
func (k *Keys) From(names ...string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	from, newest := "", 0
	for _, name := range names {
		if k.own[name] != (Secret{}) {
			return name
		}
		if h := k.handed[name]; h.nth > newest {
			from, newest = name, h.nth
		}
	}
	return from
}

// Checker is a Provider that can find out, without a model call, whether its server takes requests.
type Checker interface {
	// Check returns nil or an *Error that says what is wrong and what to do.
	Check(ctx context.Context) error
}

// Keyed is a Provider whose key may change after it was made.
type Keyed struct {
	Key  func(ctx context.Context) (Secret, error) // the key of now, the zero Secret if there is none; an error fails the call
	Make func(key Secret) Provider                 // called again when the key has changed

	mu   sync.Mutex
	key  Secret
	made Provider
}

// Stream implements Provider.
func (k *Keyed) Stream(ctx context.Context, req *Request) iter.Seq2[Chunk, error] {
	p, err := k.current(ctx)
	if err != nil {
		return func(yield func(Chunk, error) bool) { yield(Chunk{}, err) }
	}
	return p.Stream(ctx, req)
}

// Check implements Checker, as far as the provider that Make returns does.
func (k *Keyed) Check(ctx context.Context) error {
	p, err := k.current(ctx)
	if err != nil {
		return err
	}
	if c, ok := p.(Checker); ok {
		return c.Check(ctx)
	}
	return nil
}

// current returns the provider with the key of now. An error is an *Error; one of Key's stays as it is.
func (k *Keyed) current(ctx context.Context) (Provider, error) {
	key, err := k.Key(ctx)
	if failure, ok := errors.AsType[*Error](err); ok {
		return nil, failure
	}
	if err != nil {
		return nil, &Error{Kind: KindAuth, Code: "key_unavailable", Message: "cannot read the API key: " + err.Error(), Err: err}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.made == nil || key.Reveal() != k.key.Reveal() {
		k.key, k.made = key, k.Make(key)
	}
	return k.made, nil
}
