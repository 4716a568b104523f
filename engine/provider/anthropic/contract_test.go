package anthropic_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/goleak"

	"lashd/engine/provider"
	"lashd/engine/provider/anthropic"
	"lashd/engine/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server and returns a provider for it.
func serve(t *testing.T, cfg anthropic.Config, h http.HandlerFunc) *anthropic.Provider {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	if cfg.HTTPClient == nil {
		transport := &http.Transport{}
		cfg.HTTPClient = &http.Client{Transport: transport}
		t.Cleanup(transport.CloseIdleConnections)
	}
	cfg.BaseURL = srv.URL + "/v1"
	return anthropic.New(cfg)
}

func TestContract(t *testing.T) {
	providertest.Run(t, func(t *testing.T, r providertest.Reply) provider.Provider {
		return serve(t, anthropic.Config{}, func(w http.ResponseWriter, req *http.Request) { answer(w, req, r) })
	})
}

// answer writes a reply of the contract test in the API's events.
func answer(w http.ResponseWriter, req *http.Request, r providertest.Reply) {
	io.Copy(io.Discard, req.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(kind, data string) { fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,%s}\n\n", kind, kind, data) }
	quote := func(text string) string { data, _ := json.Marshal(text); return string(data) }
	usage := fmt.Sprintf(`{"input_tokens":%d,"output_tokens":1,"cache_read_input_tokens":%d}`, r.Usage.Input, r.Usage.CacheRead)
	event("message_start", `"message":{"id":"msg_1","role":"assistant","content":[],"usage":`+usage+`}`)
	index := 0
	block := func(start string, deltas ...string) {
		event("content_block_start", fmt.Sprintf(`"index":%d,"content_block":%s`, index, start))
		for _, d := range deltas {
			event("content_block_delta", fmt.Sprintf(`"index":%d,"delta":%s`, index, d))
		}
	}
	end := func() { event("content_block_stop", fmt.Sprintf(`"index":%d`, index)); index++ }
	var thoughts, texts []string
	for _, text := range r.Reasoning {
		thoughts = append(thoughts, `{"type":"thinking_delta","thinking":`+quote(text)+`}`)
	}
	block(`{"type":"thinking","thinking":""}`, thoughts...)
	end()
	for _, text := range r.Text {
		texts = append(texts, `{"type":"text_delta","text":`+quote(text)+`}`)
	}
	block(`{"type":"text","text":""}`, texts...)
	if r.Cut || r.Stall {
		http.NewResponseController(w).Flush()
		if r.Stall {
			<-req.Context().Done()
		}
		return
	}
	end()
	for _, c := range r.Calls {
		block(fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, c.CallID, c.Name), `{"type":"input_json_delta","partial_json":`+quote(string(c.Args))+`}`)
		end()
	}
	event("message_delta", fmt.Sprintf(`"delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":%d}`, r.Usage.Output))
	event("message_stop", `"x":1`)
}
