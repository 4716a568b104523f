package gemini_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/goleak"

	"lashd/engine/provider"
	"lashd/engine/provider/gemini"
	"lashd/engine/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server and returns a provider for it.
func serve(t *testing.T, cfg gemini.Config, h http.HandlerFunc) *gemini.Provider {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	if cfg.HTTPClient == nil {
		transport := &http.Transport{}
		cfg.HTTPClient = &http.Client{Transport: transport}
		t.Cleanup(transport.CloseIdleConnections)
	}
	cfg.BaseURL = srv.URL + "/v1"
	return gemini.New(cfg)
}

func TestContract(t *testing.T) {
	providertest.Run(t, func(t *testing.T, r providertest.Reply) provider.Provider {
		return serve(t, gemini.Config{}, func(w http.ResponseWriter, req *http.Request) { answer(w, req, r) })
	})
}

// answer writes a reply of the contract test in the API's events.
func answer(w http.ResponseWriter, req *http.Request, r providertest.Reply) {
	io.Copy(io.Discard, req.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	part := func(part, more string) {
		fmt.Fprintf(w, "data: {\"candidates\":[{\"index\":0,\"content\":{\"role\":\"model\",\"parts\":[%s]}%s}]}\r\n\r\n", part, more)
	}
	quote := func(text string) string { data, _ := json.Marshal(text); return string(data) }
	for _, text := range r.Reasoning {
		part(`{"thought":true,"text":`+quote(text)+`}`, "")
	}
	for _, text := range r.Text {
		part(`{"text":`+quote(text)+`}`, "")
	}
	if r.Cut || r.Stall {
		http.NewResponseController(w).Flush()
		if r.Stall {
			<-req.Context().Done()
		}
		return
	}
	for _, c := range r.Calls {
		part(fmt.Sprintf(`{"functionCall":{"id":%q,"name":%q,"args":%s}}`, c.CallID, c.Name, c.Args), "")
	}
	u := r.Usage
	fmt.Fprintf(w, "data: {\"candidates\":[{\"index\":0,\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":%d,\"cachedContentTokenCount\":%d,\"candidatesTokenCount\":%d}}\n\n", u.Input+u.CacheRead, u.CacheRead, u.Output)
}
