package providers_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"lashd/cmd/internal/providers"
	"lashd/engine/models"
	"lashd/rpc/protocol"
)

// TestModelsOfServers has a server of the user with two models, one that has none to list, and a provider whose models lashd knows.
func TestModelsOfServers(t *testing.T) {
	var asked atomic.Int32
	listing := func(ids ...string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			if r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer sk-canary-0123456789" || len(ids) == 0 {
				http.NotFound(w, r)
				return
			}
			fmt.Fprint(w, `{"data":[`)
			for i, id := range ids {
				fmt.Fprintf(w, "%s{%q:%q}", map[bool]string{true: ","}[i > 0], "id", id)
			}
			fmt.Fprint(w, `]}`)
		}))
		t.Cleanup(s.Close)
		return s.URL + "/v1"
	}
	none := listing()
	configured := map[string]providers.Provider{"acme": {BaseURL: listing("acme-large", "acme-small")}, "down": {BaseURL: "http://127.0.0.1:1/v1"}}
	for _, preset := range []string{"anthropic", "openai", "google", "openrouter", "ollama", "llamacpp", "lmstudio", "vllm"} {
		configured[preset] = providers.Provider{BaseURL: none}
	}
	source := providers.New(providers.Config{
		Default: func() string { return "acme/acme-large" }, Keys: oneKey{}, Providers: configured,
		Models: []providers.Model{{Name: "house", Provider: "acme", ID: "acme-large"}},
	})
	names := func(p protocol.ModelListParams) (all []string) {
		list, err := models.New(source, nil).List(t.Context(), &p)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list.Data {
			if m.Model.Provider == "acme" {
				all = append(all, m.Name)
			}
		}
		return all
	}
	t.Run("part13/vscode model/list asks servers for their models only if it is told to", func(t *testing.T) {
		if got := names(protocol.ModelListParams{}); !slices.Equal(got, []string{"acme/acme-large", "house"}) || asked.Load() != 0 {
			t.Errorf("without servers it lists %q after %d requests", got, asked.Load())
		}
		if got := names(protocol.ModelListParams{Servers: true}); !slices.Equal(got, []string{"acme/acme-large", "house", "acme/acme-small"}) {
			t.Errorf("with servers it lists %q", got)
		}
		if n := asked.Load(); n != 5 {
			t.Errorf("it made %d requests, want one to acme and one to each local server, but none to providers whose models lashd knows", n)
		}
	})
}
