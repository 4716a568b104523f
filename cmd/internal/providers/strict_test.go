package providers_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"lashd/cmd/internal/providers"
	"lashd/engine/provider"
)

// sent returns the body of a request with an output schema, as the server of an API receives it.
func sent(t *testing.T, api providers.API, schema string) (body struct {
	Format struct {
		JSON struct{ Strict *bool } `json:"json_schema"`
	} `json:"response_format"`
	Text struct {
		Format struct{ Strict *bool }
	}
}) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, dialectReplies[api])
	}))
	defer srv.Close()
	source := providers.New(providers.Config{Providers: map[string]providers.Provider{"test": {API: api, BaseURL: srv.URL}}, Keys: oneKey{}})
	m, _ := source.Model("test/m")
	for _, err := range m.Provider.Stream(t.Context(), &provider.Request{Model: m.Spec, Output: provider.OutputSpec{JSON: true, Schema: json.RawMessage(schema)}}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return body
}

func TestStrictSchema(t *testing.T) {
	t.Run("part9/schema OpenAI's servers are asked to enforce a schema only if they can", func(t *testing.T) {
		const can = `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`
		const cannot = `{"type":"object","properties":{"a":{"type":"string"}}}`
		for schema, want := range map[string]bool{can: true, cannot: false} {
			if got := sent(t, providers.Chat, schema).Format.JSON.Strict; (got != nil && *got) != want {
				t.Errorf("Chat Completions: strict is %v for %s, want %v", got, schema, want)
			}
			if got := sent(t, providers.Responses, schema).Text.Format.Strict; (got != nil && *got) != want {
				t.Errorf("Responses: strict is %v for %s, want %v", got, schema, want)
			}
		}
	})
}
