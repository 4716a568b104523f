package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"lashd/cmd/internal/console"
)

func TestDemoStopsAtTheFirstFailedTurn(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"no such key"}}`, http.StatusUnauthorized)
	}))
	defer server.Close()
	p := newPlace(t)
	p.environ = append(p.environ, "OPENAI_API_KEY=k", "TMPDIR="+t.TempDir())
	r := p.want(console.ExitFailed, "To remove the demo", "no such key", "demo", "--model", "m", "--base-url", server.URL)
	if strings.Count(r.out+r.err, "no such key") != 1 || strings.Count(r.out, "turn ended") != 1 {
		t.Errorf("output %s%s; want one turn, and its error once", r.out, r.err)
	}
}
