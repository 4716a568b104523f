package chatcompletions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"lashd/engine/provider"
	"lashd/engine/provider/chatcompletions"
	"lashd/engine/provider/endpoint"
	"lashd/engine/provider/providertest"
	"lashd/rpc/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server and gives a provider for it.
func serve(t *testing.T, cfg chatcompletions.Config, h http.HandlerFunc) *chatcompletions.Provider {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	if cfg.HTTPClient == nil {
		transport := &http.Transport{}
		cfg.HTTPClient = &http.Client{Transport: transport}
		t.Cleanup(transport.CloseIdleConnections)
	}
	cfg.BaseURL = srv.URL + "/v1" + cfg.BaseURL
	return chatcompletions.New(cfg)
}

// stream answers with these lines of data.
func stream(data ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, d := range data {
			fmt.Fprintf(w, "data: %s\n\n", d)
		}
	}
}

// answer replies with a status and a body.
func answer(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// deltaOf is a chunk with this delta.
func deltaOf(delta string) string {
	return `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta +
		`,"finish_reason":null}]}`
}

func finish(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

func textDelta(field, text string) string {
	quoted, _ := json.Marshal(text) // a string always can be
	return deltaOf(`{"` + field + `":` + string(quoted) + `}`)
}

// ask reads a whole stream. The error is of type *provider.Error or nil.
func ask(ctx context.Context, p provider.Provider, req *provider.Request) (provider.Reply, *provider.Error) {
	var c provider.Collector
	for chunk, err := range p.Stream(ctx, req) {
		if err != nil {
			e, ok := errors.AsType[*provider.Error](err)
			if !ok {
				e = &provider.Error{Code: "untyped", Message: err.Error()}
			}
			return c.Reply(), e
		}
		c.Add(&chunk)
	}
	return c.Reply(), nil
}

func TestContract(t *testing.T) {
	providertest.Run(t, func(t *testing.T, r providertest.Reply) provider.Provider {
		return serve(t, chatcompletions.Config{}, func(w http.ResponseWriter, req *http.Request) { tell(w, req, r) })
	})
}

// tell is a model that answers with a reply of the contract test.
func tell(w http.ResponseWriter, req *http.Request, r providertest.Reply) {
	var sent struct {
		Stream  bool `json:"stream"`
		Options struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	if err := json.NewDecoder(req.Body).Decode(&sent); err != nil || !sent.Stream {
		http.Error(w, "not a streaming request", http.StatusBadRequest)
		return
	}
	data := []string{deltaOf(`{"role":"assistant","content":""}`)}
	for _, text := range r.Reasoning {
		data = append(data, textDelta("reasoning_content", text))
	}
	for _, text := range r.Text {
		data = append(data, textDelta("content", text))
	}
	if r.Cut || r.Stall {
		stream(data...)(w, req)
		http.NewResponseController(w).Flush()
		if r.Stall {
			<-req.Context().Done()
		}
		return
	}
	for i, c := range r.Calls {
		half := len(c.Args) / 2
		first, _ := json.Marshal(string(c.Args[:half]))
		second, _ := json.Marshal(string(c.Args[half:]))
		data = append(data,
			deltaOf(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}]}`, i, c.CallID, c.Name, first)),
			deltaOf(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, second)))
	}
	data = append(data, finish("tool_calls"))
	if u := r.Usage; sent.Options.Usage && u != nil {
		data = append(data, fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}}`,
			u.Input+u.CacheRead, u.Output, u.CacheRead))
	}
	stream(append(data, "[DONE]")...)(w, req)
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
func servePipe(t *testing.T, h http.HandlerFunc) *chatcompletions.Provider {
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
	return chatcompletions.New(chatcompletions.Config{Config: endpoint.Config{BaseURL: "http://model.test/v1", HTTPClient: &http.Client{Transport: transport}}})
}

func user(text string) *protocol.Message {
	return &protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: text}}}
}

func request(messages ...*protocol.Message) *provider.Request {
	return &provider.Request{
		Model:    protocol.ModelSpec{Provider: "openai", ID: "m"},
		Messages: messages,
		Scope:    provider.Scope{SessionID: "ses_1"},
	}
}
