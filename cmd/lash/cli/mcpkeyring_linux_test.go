package cli

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/secretservice"
)

// marked returns the files of the place with a secret of a login.
func (p *place) marked() (found []string) {
	p.t.Helper()
	err := filepath.WalkDir(filepath.Dir(p.home), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if data, _ := os.ReadFile(path); bytes.Contains(data, []byte(loginMark)) {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return found
}

// inRing fails unless the keyring has the newest tokens of a server and no file has any.
func (p *place) inRing(ring *secretservice.Service, g *guarded) {
	p.t.Helper()
	var kept struct{ Access, Refresh string }
	for _, secret := range ring.Secrets() {
		_ = json.Unmarshal([]byte(secret), &kept)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(ring.Secrets()) != 1 || kept.Access != g.access || kept.Refresh != g.refresh {
		p.t.Errorf("part13/6 the keyring has %q, want %s and %s", ring.Secrets(), g.access, g.refresh)
	}
	if found := p.marked(); found != nil {
		p.t.Errorf("part13/6 secrets of the login are in %q", found)
	}
}

func TestMCPLoginInKeyring(t *testing.T) {
	g, ring, p := newGuarded(t), secretservice.Start(t), newPlace(t)
	p.environ = append(p.environ, "LASHD_KEYRING=", "DBUS_SESSION_BUS_ADDRESS="+ring.Address, "LASHD_LOG=debug")
	p.write("config.toml", "script = \"script.json\"\ntrace = true\n")
	p.want(0, "Added docs to ", "", "mcp", "add", "docs", g.URL+"/mcp")
	p.until("the server requires a login", func(s protocol.PluginServer) bool { return s.Login == protocol.LoginNeeded })
	t.Run("part13/6 a login is in the keyring and in no file, and survives a restart", func(t *testing.T) {
		if r := p.mcpLogin(p.redirected, "--paste", "docs"); r.code != 0 {
			t.Fatalf("the login ended with %+v", r)
		}
		p.calls(t, "hello")
		p.inRing(ring, g)
		p.kill()
		p.calls(t, "hello")
	})
	t.Run("part13/6 renewed tokens replace the old ones in the keyring", func(t *testing.T) {
		g.revoke(false)
		p.kill()
		p.calls(t, "hello")
		p.inRing(ring, g)
	})
	t.Run("part13/6 logins in a keyring that is locked count again once it is unlocked", func(t *testing.T) {
		p.kill()
		ring.Lock()
		soon(t, "the start of the daemon", func() { p.want(0, "", "", "call", "plugin/list") })
		ring.Unlock(t)
		p.until("the server works", func(s protocol.PluginServer) bool { return s.Login == protocol.LoggedIn })
		p.calls(t, "hello")
		p.inRing(ring, g)
	})
	t.Run("part13/6 logout deletes the login from the keyring", func(t *testing.T) {
		p.want(0, "Logged out of docs.", "", "mcp", "logout", "docs")
		if left := ring.Secrets(); len(left) != 0 {
			t.Errorf("the keyring has %q", left)
		}
		if found := p.marked(); found != nil {
			t.Errorf("secrets of the login are in %q", found)
		}
	})
	if out := p.want(0, "", "", "plugin", "logs", "mcp").out; strings.Contains(out, loginMark) {
		t.Errorf("part13/6 the log of the server has a secret: %s", out)
	}
}
