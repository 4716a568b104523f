package mcp

import (
	"net/url"
	"strings"
	"testing"
)

func TestLoggedIn(t *testing.T) {
	for name, c := range map[string]struct{ answer, code, err string }{
		"the address":           {`{"address":" http://127.0.0.1:999/callback?code=abc&state=s&iss=i\n"}`, "abc", ""},
		"a refusal":             {`{"address":"http://127.0.0.1:999/callback?error=access_denied&error_description=no"}`, "", "failed: access_denied no"},
		"another address":       {`{"address":"https://example.com/callback?code=abc&state=s"}`, "", "does not start with"},
		"a code alone":          {`{"address":"abc"}`, "", "does not start with"},
		"nothing":               {`{}`, "", "does not start with"},
		"no object":             {`7`, "", "has no address"},
		"an address of no kind": {`{"address":"http://127.0.0.1:999/callback%zz"}`, "", "does not start with"},
	} {
		t.Run("outside/20 the answer to a login: "+name, func(t *testing.T) {
			got, err := loggedIn([]byte(c.answer))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || got.Code != c.code || got.State != "s" || got.Iss != "i" {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestTrusted(t *testing.T) {
	for _, c := range []struct {
		at, server string
		want       bool
	}{
		{"https://login.example.com/a", "https://mcp.example.com", true},
		{"http://login.example.com/a", "https://mcp.example.com", false},
		{"http://login.example.com/a", "http://mcp.example.com", false},
		{"http://127.0.0.1:80/a", "https://mcp.example.com", false},
		{"http://169.254.169.254/latest", "http://localhost:7", false},
		{"http://localhost.example.com/", "http://localhost:7", false},
		{"http://localhost:8/a", "http://127.0.0.1:7", true},
		{"http://[::1]:8/a", "http://localhost:7", true},
		{"javascript:alert(1)", "http://localhost:7", false},
		{"file:///etc/passwd", "https://mcp.example.com", false},
	} {
		at, err := url.Parse(c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := trusted(at, c.server); got != c.want {
			t.Errorf("outside/20 %s in a login to %s: %t, want %t", c.at, c.server, got, c.want)
		}
	}
}
