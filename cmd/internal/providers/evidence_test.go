package providers_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/cmd/internal/providers"
	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// oneKey is a Keys with one key for every provider.
type oneKey struct{}

func (oneKey) Key(context.Context, string, providers.Provider) (provider.Secret, error) {
	return provider.NewSecret("sk-canary-0123456789"), nil
}
func (oneKey) Has(string, providers.Provider) bool    { return true }
func (oneKey) From(string, providers.Provider) string { return "a test" }

// dialectReplies are whole replies as each API's server streams them, with what it reports about the call.
var dialectReplies = map[providers.API]string{
	providers.Chat: `data: {"id":"chatcmpl-1","model":"gpt-5-2025-08-07","service_tier":"flex","choices":[{"index":0,"delta":{"content":"hi"}}]}

data: {"id":"chatcmpl-1","model":"gpt-5-2025-08-07","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

`,
	providers.Responses: `data: {"type":"response.created","response":{"id":"resp_1","model":"gpt-5-2025-08-07","service_tier":"auto"}}

data: {"type":"response.output_text.delta","output_index":0,"delta":"hi"}

data: {"type":"response.completed","response":{"id":"resp_1","model":"gpt-5-2025-08-07","service_tier":"priority"}}

`,
	providers.Anthropic: `data: {"type":"message_start","message":{"id":"msg_1","model":"claude-sonnet-4-5-20250929","usage":{"input_tokens":1,"service_tier":"standard"}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hi"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}

data: {"type":"message_stop"}

`,
	providers.Gemini: `data: {"candidates":[{"index":0,"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}],"modelVersion":"gemini-2.5-pro","responseId":"ga-1"}

`,
}

// reply streams one reply of an API to a source's model and returns what it adds up to.
func reply(t *testing.T, api providers.API, stream string) provider.Reply {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, stream)
	}))
	t.Cleanup(srv.Close)
	source := providers.New(providers.Config{
		Providers: map[string]providers.Provider{"test": {API: api, BaseURL: srv.URL}}, Keys: oneKey{},
	})
	m, ok := source.Model("test/m")
	if !ok {
		t.Fatal("no model test/m")
	}
	var c provider.Collector
	for chunk, err := range m.Provider.Stream(t.Context(), &provider.Request{Model: m.Spec}) {
		if err != nil {
			t.Fatal(err)
		}
		c.Add(&chunk)
	}
	return c.Reply()
}

func TestEvidence(t *testing.T) {
	t.Run("runtime/M13 the record of a call holds what the server reports about it", func(t *testing.T) {
		for api, want := range map[providers.API]protocol.CallEvidence{
			providers.Chat:      {Model: "gpt-5-2025-08-07", ServiceTier: "flex", ResponseID: "chatcmpl-1"},
			providers.Responses: {Model: "gpt-5-2025-08-07", ServiceTier: "priority", ResponseID: "resp_1"},
			providers.Anthropic: {Model: "claude-sonnet-4-5-20250929", ServiceTier: "standard", ResponseID: "msg_1"},
			providers.Gemini:    {Model: "gemini-2.5-pro", ResponseID: "ga-1"},
		} {
			if d := cmp.Diff(&want, reply(t, api, dialectReplies[api]).Evidence); d != "" {
				t.Errorf("evidence of %s (-want +got):\n%s", api, d)
			}
		}
	})

	t.Run("runtime/M13 a reported fact is no way to store a key or a long text, and one of another type is ignored", func(t *testing.T) {
		stream := dialectReplies[providers.Responses]
		stream = strings.ReplaceAll(stream, `"id":"resp_1"`, `"id":12`)
		stream = strings.ReplaceAll(stream, `"auto"`, `null`)
		stream = strings.ReplaceAll(stream, `"priority"`, `"sk-canary-0123456789"`)
		stream = strings.ReplaceAll(stream, "gpt-5-2025-08-07", strings.Repeat("m", 300))
		got := reply(t, providers.Responses, stream).Evidence
		if got == nil || got.ResponseID != "" || got.Model != strings.Repeat("m", 256) || strings.Contains(got.ServiceTier, "canary") {
			t.Errorf("evidence is %+v", got)
		}
	})
}
