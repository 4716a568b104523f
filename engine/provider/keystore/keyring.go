package keystore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/zalando/go-keyring"

	"lashd/engine/provider"
	"lashd/internal/deadline"
)

// ErrNoKeyring means that the system has no keyring, or that it is locked or does not answer in time.
var ErrNoKeyring = errors.New("the system's keyring is not available")

// keyringLimit bounds how long an access to the keyring may take. A locked keyring can ask a person to unlock it, without any limit of
// its own.
const keyringLimit = 2 * time.Second

// hangLimit is how long one access keeps others from the keyring. A keyring that ends while it asks a person never answers.
const hangLimit = 30 * time.Second

var (
	// errSlow means that the keyring did not answer within keyringLimit.
	errSlow = fmt.Errorf("it did not answer within %s, perhaps because it waits for you to unlock it", keyringLimit)
	// errHangs means that an earlier access to the keyring still waits.
	errHangs = errors.New("an earlier request to it is still waiting, perhaps for you to unlock it")
)

// Keyring is the system's keyring: the Secret Service on Linux, the keychain on macOS, the credential manager on Windows. One access
// runs at a time, so that a keyring that hangs holds one goroutine in each hangLimit and asks a person once. It is safe for concurrent
// use.
type Keyring struct {
	off string // why the keyring is not used; "": it is

	mu    sync.Mutex
	busy  chan struct{} // closed when the access that runs has ended; nil: none runs
	since time.Time     // when it began
}

// NewKeyring returns the system's keyring. getenv is the environment: LASHD_KEYRING=off turns the keyring off.
func NewKeyring(getenv func(string) string) *Keyring {
	k := &Keyring{}
	desktop := runtime.GOOS != "darwin" && runtime.GOOS != "windows"
	switch {
	case getenv("LASHD_KEYRING") == "off":
		k.off = "LASHD_KEYRING is off"
	case desktop && getenv("DBUS_SESSION_BUS_ADDRESS") == "":
		k.off = "DBUS_SESSION_BUS_ADDRESS is not set" // the library would start a bus of its own, which has no keyring
	}
	return k
}

// Get returns the secret of an account, the zero Secret if the keyring has none. It fails with ErrNoKeyring.
func (k *Keyring) Get(ctx context.Context, service, account string) (provider.Secret, error) {
	text, err := k.use(ctx, func() (string, error) { return keyring.Get(service, account) })
	if errors.Is(err, keyring.ErrNotFound) {
		return provider.Secret{}, nil
	}
	return provider.NewSecret(text), err
}

// Set stores the secret of an account. It fails with ErrNoKeyring.
// An entry that exists is replaced.
func (k *Keyring) Set(ctx context.Context, service, account string, key provider.Secret) error {
	_, err := k.use(ctx, func() (string, error) { return "", keyring.Set(service, account, key.Reveal()) })
	return err
}

// Delete removes an account, which may be absent. It fails with ErrNoKeyring.
func (k *Keyring) Delete(ctx context.Context, service, account string) error {
	_, err := k.use(ctx, func() (string, error) { return "", keyring.Delete(service, account) })
	if errors.Is(err, keyring.ErrNotFound) {
		return nil
	}
	return err
}

// failed returns err, which an access returned, or nil if the keyring is turned off.
func (k *Keyring) failed(err error) error {
	if k.off != "" {
		return nil
	}
	return err
}

// use runs one access within keyringLimit. Every error except keyring.ErrNotFound becomes ErrNoKeyring.
func (k *Keyring) use(ctx context.Context, access func() (string, error)) (string, error) {
	if k.off != "" {
		return "", fmt.Errorf("%w: %s", ErrNoKeyring, k.off)
	}
	text, err := deadline.Do(ctx, keyringLimit, errSlow, func(ctx context.Context) (string, error) {
		end, err := k.begin(ctx)
		if err != nil {
			return "", err
		}
		defer end()
		return access()
	})
	switch {
	case err == nil || errors.Is(err, keyring.ErrNotFound):
		return text, err
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	}
	return "", fmt.Errorf("%w: %w", ErrNoKeyring, err)
}

// begin waits until no other access runs, or until one has run for hangLimit. The caller calls end when its own has ended. It fails with
// errHangs when ctx is done.
func (k *Keyring) begin(ctx context.Context) (end func(), err error) {
	for {
		running, mine := k.take()
		if running == nil {
			return func() { k.end(mine) }, nil
		}
		select {
		case <-running:
		case <-ctx.Done():
			return nil, errHangs
		}
	}
}

// take returns the channel of the access that runs or, if there is none that counts, that of a new one.
func (k *Keyring) take() (running, mine chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.busy != nil && time.Since(k.since) < hangLimit {
		return k.busy, nil
	}
	k.busy, k.since = make(chan struct{}), time.Now()
	return nil, k.busy
}

// end wakes those who wait for an access.
func (k *Keyring) end(mine chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(mine)
	if k.busy == mine {
		k.busy = nil
	}
}
