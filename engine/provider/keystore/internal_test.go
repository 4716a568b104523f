package keystore

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/provider"
)

func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, fails := 0, errors.New("locked")
		c := newCache(func(context.Context) (provider.Secret, error) {
			reads++
			time.Sleep(time.Second)
			if reads == 1 {
				return provider.Secret{}, fails
			}
			return provider.NewSecret("k"), nil
		})
		want := func(what string, n int, key string, failed error) {
			t.Helper()
			got, err := c.get(t.Context())
			if reads != n || got.Reveal() != key || err != failed {
				t.Errorf("%s: %d reads, %q, %v; want %d, %q, %v", what, reads, got.Reveal(), err, n, key, failed)
			}
		}
		want("issue/18 a failure is returned", 1, "", fails)
		time.Sleep(2900 * time.Millisecond)
		want("issue/18 a failure is believed for three seconds", 1, "", fails)
		time.Sleep(200 * time.Millisecond)
		want("issue/18 after that the source is asked again", 2, "k", nil)
		time.Sleep(299 * time.Second)
		want("issue/18 a key is kept for five minutes", 2, "k", nil)
		time.Sleep(2 * time.Second)
		for range 8 {
			go c.get(t.Context())
		}
		synctest.Wait()
		want("issue/18 callers share one reading", 3, "k", nil)
	})
}

func TestKeyringThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, locked := &Keyring{}, make(chan struct{})
		var started atomic.Int32
		access := func() (string, error) {
			started.Add(1)
			<-locked
			return "k", nil
		}
		began := time.Now()
		for range 3 {
			if _, err := k.use(t.Context(), access); !errors.Is(err, ErrNoKeyring) {
				t.Errorf("issue/18 a keyring that asks a person counts as none: %v", err)
			}
		}
		if took := time.Since(began); took != 6*time.Second || started.Load() != 1 {
			t.Errorf("issue/18 three accesses took %s and %d of them began; want 6s and 1", took, started.Load())
		}
		time.Sleep(hangLimit)
		if _, err := k.use(t.Context(), func() (string, error) { return "k2", nil }); err != nil {
			t.Errorf("part9/keys an access that never ends blocks the keyring only for half a minute: %v", err)
		}
		close(locked)
		synctest.Wait()
		if key, err := k.use(t.Context(), access); key != "k" || err != nil {
			t.Errorf("issue/18 an unlocked keyring works again: %q, %v", key, err)
		}
	})
}
