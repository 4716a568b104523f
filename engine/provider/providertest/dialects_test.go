package providertest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"lashd/engine/provider"
	"lashd/engine/provider/anthropic"
	"lashd/engine/provider/chatcompletions"
	"lashd/engine/provider/endpoint"
	"lashd/engine/provider/gemini"
	"lashd/engine/provider/providertest"
	"lashd/engine/provider/responses"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dialect is one API with its adapter.
type dialect struct {
	name   string // of its answers in testdata
	open   func(endpoint.Config) provider.Provider
	path   string                   // of a call, below the base URL
	header string                   // that the key is sent in
	begin  string                   // events before the first delta of text
	delta  func(text string) string // one event with a delta of text
	finish string                   // events after the last delta
	call   func(i int) string       // events with a whole call
}

var dialects = []dialect{
	{
		name: "chatcompletions",
		open: func(cfg endpoint.Config) provider.Provider {
			return chatcompletions.New(chatcompletions.Config{Config: cfg})
		},
		path: "/chat/completions", header: "Authorization",
		delta: func(text string) string {
			return `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1760000000,"model":"model","choices":[{"index":0,"delta":{"content":` +
				quote(text) + `},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"
		},
		finish: `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n",
		call: func(i int) string {
			return fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":"c%[1]d","type":"function","function":{"name":"f","arguments":"{}"}}]}}]}`+"\n\n", i)
		},
	},
	{
		name: "responses",
		open: func(cfg endpoint.Config) provider.Provider { return responses.New(responses.Config{Config: cfg}) },
		path: "/responses", header: "Authorization",
		delta: func(text string) string {
			return `event: response.output_text.delta` + "\n" + `data: {"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_0123456789abcdef",` +
				`"output_index":0,"content_index":0,"delta":` + quote(text) + `,"logprobs":[],"obfuscation":"abcdef"}` + "\n\n"
		},
		finish: `data: {"type":"response.completed","response":{"status":"completed"}}` + "\n\n",
		call: func(i int) string {
			return fmt.Sprintf(`data: {"type":"response.output_item.done","output_index":%d,"item":{"type":"function_call","call_id":"c%[1]d","name":"f","arguments":"{}"}}`+"\n\n", i)
		},
	},
	{
		name: "anthropic",
		open: func(cfg endpoint.Config) provider.Provider { return anthropic.New(cfg) },
		path: "/messages", header: "X-Api-Key",
		begin: `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n",
		delta: func(text string) string {
			return "event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":` + quote(text) + `}}` + "\n\n"
		},
		finish: `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n",
		call: func(i int) string {
			return fmt.Sprintf(`data: {"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"c%[1]d","name":"f","input":{}}}`+"\n\n"+
				`data: {"type":"content_block_stop","index":%[1]d}`+"\n\n", i)
		},
	},
	{
		name: "gemini",
		open: func(cfg endpoint.Config) provider.Provider { return gemini.New(cfg) },
		path: "/models/model:streamGenerateContent", header: "X-Goog-Api-Key",
		delta: func(text string) string {
			return `data: {"candidates":[{"content":{"parts":[{"text":` + quote(text) + `}],"role":"model"},"index":0}],` +
				`"usageMetadata":{"promptTokenCount":15,"totalTokenCount":15},"modelVersion":"model","responseId":"r1"}` + "\r\n\r\n"
		},
		finish: `data: {"candidates":[{"finishReason":"STOP"}]}` + "\r\n\r\n",
		call: func(i int) string {
			return fmt.Sprintf(`data: {"candidates":[{"content":{"parts":[{"functionCall":{"id":"c%d","name":"f","args":{}}}]}}]}`+"\n\n", i)
		},
	},
}

func quote(text string) string {
	data, _ := json.Marshal(text) // a string always can be
	return string(data)
}

// over runs a test for each API.
func over(t *testing.T, test func(t *testing.T, d *dialect)) {
	for i := range dialects {
		t.Run(dialects[i].name, func(t *testing.T) { test(t, &dialects[i]) })
	}
}

// recorded returns a recorded answer as raw HTTP.
func (d *dialect) recorded(t testing.TB, name string) []byte {
	t.Helper()
	raw, ok := providertest.Answers(t, d.name)[name]
	if !ok {
		t.Fatalf("testdata/%s.txtar has no answer %q", d.name, name)
	}
	return raw
}

// respond answers with raw HTTP, in pieces written by write.
func respond(w http.ResponseWriter, r *http.Request, raw []byte, write func([]byte)) {
	io.Copy(io.Discard, r.Body)
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), r)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	maps.Copy(w.Header(), resp.Header)
	w.WriteHeader(resp.StatusCode)
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(err)
	}
	write(body)
}

// replay answers every request with the same raw HTTP.
func replay(raw []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { respond(w, r, raw, func(body []byte) { w.Write(body) }) }
}

// serve starts a server on the network and returns the API's provider for it.
func (d *dialect) serve(t *testing.T, cfg endpoint.Config, h http.HandlerFunc) provider.Provider {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	cfg.BaseURL, cfg.HTTPClient = srv.URL+"/v1", &http.Client{Transport: transport}
	return d.open(cfg)
}

// ask reads a whole stream and checks that it has exactly one end. The error is of type *provider.Error or nil.
func ask(ctx context.Context, t *testing.T, p provider.Provider, req *provider.Request) (provider.Reply, *provider.Error) {
	t.Helper()
	var c provider.Collector
	var failure *provider.Error
	ended := false
	for chunk, err := range p.Stream(ctx, req) {
		if ended {
			t.Errorf("after the end came %+v, %v", chunk, err)
		}
		ended = err != nil || chunk.Stop != ""
		if err == nil {
			c.Add(&chunk)
			continue
		}
		var ok bool
		if failure, ok = errors.AsType[*provider.Error](err); !ok {
			failure = &provider.Error{Code: "untyped", Message: err.Error()}
		}
	}
	if !ended {
		t.Error("the stream ended without Stop or error")
	}
	return c.Reply(), failure
}

func codeOf(e *provider.Error) string {
	if e == nil {
		return ""
	}
	return e.Code
}

// pipes is a server reached without the network, for tests in a synctest bubble.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// servePipe is serve for a synctest bubble.
func (d *dialect) servePipe(t *testing.T, h http.HandlerFunc) provider.Provider {
	p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	srv := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.Serve(p) // ends by Close
	}()
	transport := &http.Transport{DialContext: p.dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		srv.Close()
		<-done
	})
	return d.open(endpoint.Config{BaseURL: "http://model.test/v1", HTTPClient: &http.Client{Transport: transport}})
}

// flushed writes and sends at once.
func flushed(w http.ResponseWriter, text string) {
	io.Copy(w, strings.NewReader(text))
	http.NewResponseController(w).Flush()
}
