package cli

import (
	"strings"
	"testing"
	"time"

	"lashd/cmd/internal/console"
	"lashd/test/secretservice"
	"lashd/test/wait"
)

// newRinged returns the place of a person with a keyring.
func newRinged(t *testing.T) (*place, *secretservice.Service) {
	t.Helper()
	ring := secretservice.Start(t)
	p := newUser(t, keyedServer(t), "")
	p.environ = append(p.environ, "LASHD_KEYRING=", "DBUS_SESSION_BUS_ADDRESS="+ring.Address)
	return p, ring
}

// soon fails the test if an action takes longer than a keyring that hangs may delay it.
func soon(t *testing.T, what string, do func()) {
	t.Helper()
	began := time.Now()
	do()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("part9/keys %s takes %s", what, took)
	}
}

func TestKeyring(t *testing.T) {
	t.Run("part9/keys login stores a key in the keyring and nowhere else, and logout removes it", func(t *testing.T) {
		p, ring := newRinged(t)
		if r := p.give(secretKey, "login", "anthropic"); r.code != 0 || !strings.Contains(r.out, "stored the key of Anthropic in the system's keyring") {
			t.Fatalf("%+v", r)
		}
		if got := ring.Secrets()["anthropic in "+p.home]; got != secretKey || strings.Contains(p.held(), secretKey) {
			t.Errorf("the keyring has %q, keys.json %s", ring.Secrets(), p.held())
		}
		p.want(0, "ok\n", "", "run", "hi") // a new daemon reads the keyring
		p.want(0, "deleted the key of Anthropic", "", "logout")
		if left := ring.Secrets(); len(left) != 0 {
			t.Errorf("after logout the keyring has %q", left)
		}
		p.want(console.ExitFailed, "", "no model is set up", "run", "hi")
	})
	t.Run("part9/keys a locked keyring stops neither login nor the daemon, and people learn where the key is", func(t *testing.T) {
		p, ring := newRinged(t)
		ring.Lock()
		soon(t, "login", func() {
			r := p.give(secretKey, "login", "anthropic")
			if r.code != 0 || !strings.Contains(r.out, "keys.json") || !strings.Contains(r.err, "it did not answer within 2s, perhaps because it waits for you to unlock it. To move it there later, run lash login anthropic again") {
				t.Errorf("%+v", r)
			}
		})
		soon(t, "a turn", func() { p.want(0, "ok\n", "", "run", "hi") })
		ring.Unlock(t)
		if r := p.give(secretKey, "login", "anthropic"); r.code != 0 || !strings.Contains(r.out, "the system's keyring") || strings.Contains(p.held(), secretKey) {
			t.Errorf("after unlocking: %+v, keys.json %s", r, p.held())
		}
	})
	t.Run("part9/keys a key in a keyring that is locked later fails the turn with what to do, until it is unlocked", func(t *testing.T) {
		p, ring := newRinged(t)
		if r := p.give(secretKey, "login", "anthropic"); r.code != 0 {
			t.Fatalf("%+v", r)
		}
		ring.Lock()
		soon(t, "the start of the daemon", func() { p.want(0, "", "", "call", "ping") })
		soon(t, "the list of models", func() { p.want(0, "anthropic/", "", "model") })
		soon(t, "the turn", func() {
			p.want(console.ExitFailed, "", "unlock the keyring, or run lash login anthropic", "run", "hi")
		})
		soon(t, "logout", func() { p.want(console.ExitFailed, "", "delete the key of anthropic", "logout", "anthropic") })
		ring.Unlock(t)
		wait.Until(t, "the daemon reads the keyring again", func() bool { return p.run("run", "hi").out == "ok\n" })
	})
}
