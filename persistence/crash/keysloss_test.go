package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"lashd/engine/provider"
	"lashd/engine/provider/keystore"
)

// keysEnv makes the copy of this binary store keys instead of commits.
const keysEnv = "LASHD_CRASH_KEYS"

// keysStored is how many keys the workload stores.
const keysStored = 6

// keyStore returns the key store of a directory, without a keyring.
func keyStore(dir string) *keystore.Store {
	return keystore.New(dir, keystore.NewKeyring(func(string) string { return "off" }))
}

// keyOf is the key with a number; keys grow, so that a torn file shows.
func keyOf(n int) string { return fmt.Sprintf("key-%0*d", 40*n, n) }

// storeKeys stores a new key several times, and prints a line after each.
func storeKeys(dir string) int {
	for n := 1; n <= keysStored; n++ {
		if _, err := keyStore(dir).Set(context.Background(), "openai", provider.NewSecret(keyOf(n))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Fprintf(os.Stdout, "ack ses_key %d\n", n)
	}
	return 0
}

func TestPowerLossAfterLogin(t *testing.T) {
	needStrace(t)
	t.Run("part9/keys a key that was stored survives a power loss, and a key file is never torn", func(t *testing.T) {
		t.Setenv(keysEnv, "1")
		dir, log := trace(t, "", 0, 0)
		t.Setenv(keysEnv, "")
		rng := rand.New(rand.NewPCG(seed(t), 1))
		d, want, stored := newDisk(), acked{}, 0
		for done, s := range log.steps {
			if s.call == "ack" {
				want.note(s.line)
				stored++
			} else {
				d.do(s)
			}
			for range 20 {
				mustHaveKey(t, d, dir, want["ses_key"], rng, done)
			}
		}
		if stored != keysStored {
			t.Errorf("the workload stored %d keys, want %d", stored, keysStored)
		}
	})
}

// mustHaveKey cuts the power and checks that the store has the newest acknowledged key or a later one.
func mustHaveKey(t *testing.T, d *disk, dir string, newest int, rng *rand.Rand, done int) {
	t.Helper()
	into := filepath.Join(t.TempDir(), "store")
	defer os.RemoveAll(into)
	if err := d.crash(dir, into, rng); err != nil {
		t.Fatal(err)
	}
	key, err := keyStore(into).Key(context.Background(), "openai")
	if err != nil {
		t.Fatalf("after step %d: %v", done, err)
	}
	for n := newest; n <= keysStored; n++ {
		if n == 0 && key == (provider.Secret{}) || key.Reveal() == keyOf(n) {
			return
		}
	}
	t.Fatalf("after step %d the store has %q, but key %d was stored", done, key.Reveal(), newest)
}
