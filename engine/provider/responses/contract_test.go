package responses_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/goleak"

	"lashd/engine/provider"
	"lashd/engine/provider/providertest"
	"lashd/engine/provider/responses"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server and returns a provider for it.
func serve(t *testing.T, cfg responses.Config, h http.HandlerFunc) *responses.Provider {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	if cfg.HTTPClient == nil {
		transport := &http.Transport{}
		cfg.HTTPClient = &http.Client{Transport: transport}
		t.Cleanup(transport.CloseIdleConnections)
	}
	cfg.BaseURL = srv.URL + "/v1"
	return responses.New(cfg)
}

func TestContract(t *testing.T) {
	providertest.Run(t, func(t *testing.T, r providertest.Reply) provider.Provider {
		return serve(t, responses.Config{}, func(w http.ResponseWriter, req *http.Request) { answer(w, req, r) })
	})
}

// answer writes a reply of the contract test in the API's events.
func answer(w http.ResponseWriter, req *http.Request, r providertest.Reply) {
	io.Copy(io.Discard, req.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(kind, data string) { fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,%s}\n\n", kind, kind, data) }
	quote := func(text string) string { data, _ := json.Marshal(text); return string(data) }
	event("response.created", `"response":{"id":"resp_1"}`)
	event("response.output_item.added", `"output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}`)
	for _, text := range r.Reasoning {
		event("response.reasoning_summary_text.delta", `"output_index":0,"summary_index":0,"delta":`+quote(text))
	}
	event("response.output_item.done", `"output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}`)
	event("response.output_item.added", `"output_index":1,"item":{"type":"message","id":"msg_1","content":[]}`)
	for _, text := range r.Text {
		event("response.output_text.delta", `"output_index":1,"content_index":0,"delta":`+quote(text))
	}
	if r.Cut || r.Stall {
		http.NewResponseController(w).Flush()
		if r.Stall {
			<-req.Context().Done()
		}
		return
	}
	event("response.output_item.done", `"output_index":1,"item":{"type":"message","id":"msg_1","content":[]}`)
	for i, c := range r.Calls {
		event("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":{"type":"function_call","call_id":%q,"name":%q,"arguments":%s}`, i+2, c.CallID, c.Name, quote(string(c.Args))))
	}
	u := r.Usage
	event("response.completed", fmt.Sprintf(`"response":{"status":"completed","usage":{"input_tokens":%d,"output_tokens":%d,"input_tokens_details":{"cached_tokens":%d}}}`, u.Input+u.CacheRead, u.Output, u.CacheRead))
}
