package cli

import (
	"strings"
	"sync/atomic"
	"testing"

	"lashd/test/secretservice"
)

func TestLoginInTheKeyring(t *testing.T) {
	var calls atomic.Int32
	ring := secretservice.Start(t)
	p, server := newAccountPlace(t, func() { calls.Add(1) })
	p.environ = append(p.environ, "LASHD_KEYRING=", "DBUS_SESSION_BUS_ADDRESS="+ring.Address)
	server.Enter()
	t.Run("runtime/M06 a login is stored in the keyring and nowhere else", func(t *testing.T) {
		p.want(0, "the login is stored in the system's keyring", "", "login", "chatgpt", "--device")
		p.want(0, "ok\n", "", "run", "hi")
		if got := ring.Secrets()["chatgpt in "+p.home]; !strings.Contains(got, accountMark) || strings.Contains(p.held(), accountMark) {
			t.Errorf("the keyring has %q, keys.json %s", got, p.held())
		}
		p.unmarked()
	})
	once := calls.Load()
	t.Run("runtime/M06 the daemon uses at once the tokens that another process put into the keyring", func(t *testing.T) {
		server.Revoke(false)
		p.want(0, "replied in", "", "model", "test", "chatgpt/gpt-5.6-sol")
		before := calls.Load()
		p.want(0, "ok\n", "", "run", "hi")
		if n := calls.Load() - before; n != once {
			t.Errorf("the daemon made %d calls, want %d", n, once)
		}
		if accepted, refused := server.Renewals(); accepted != 1 || refused != 0 {
			t.Errorf("%d renewals, %d refused", accepted, refused)
		}
	})
}
