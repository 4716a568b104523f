package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"lashd/cmd/internal/console"
)

func TestLoginOnABadNetwork(t *testing.T) {
	elsewhere := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(elsewhere.Close)
	portal := httptest.NewServer(http.RedirectHandler(elsewhere.URL+"/login?session=1", http.StatusFound))
	t.Cleanup(portal.Close)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>Welcome</html>")) }))
	t.Cleanup(page.Close)
	proxy := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(proxy.Close)
	for name, c := range map[string]struct{ base, reason string }{
		"a redirect to a login page":       {portal.URL, "or log in to this network if it asks you to"},
		"a web page in place of an answer": {page.URL, "the answer is a web page, perhaps of a network that asks you to log in"},
		"a certificate of another":         {proxy.URL, "is a proxy in between, or does this network ask you to log in? (connect_failed) To store the key without a test: lash login --untested anthropic"},
		"a password in the address":        {"http://user:hunter22@127.0.0.1:1", "is the server running and the base URL right?"},
	} {
		t.Run("part9/keys login says what is wrong with the network: "+name, func(t *testing.T) {
			p := newUser(t, c.base+"/v1/", "server_down_for = '1s'\n")
			r := p.give(secretKey, "login", "anthropic")
			if r.code != console.ExitFailed || !strings.Contains(r.err, c.reason) || strings.Contains(r.err, secretKey) || strings.Contains(r.err, "hunter22") || p.held() != "" {
				t.Errorf("%+v, want %q", r, c.reason)
			}
		})
	}
}
