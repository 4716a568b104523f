package oracles

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/google/go-cmp/cmp"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"lashd/engine/provider"
	lashdanthropic "lashd/engine/provider/anthropic"
	"lashd/engine/provider/endpoint"
	"lashd/engine/provider/gemini"
	"lashd/engine/provider/providertest"
	lashdresponses "lashd/engine/provider/responses"
	"lashd/rpc/protocol"
)

// reply is what a library and an adapter have in common of a reply.
type reply struct {
	Text, Reasoning          string
	Calls                    []string // id, name and arguments
	Input, Output, CacheRead int64
}

// call spells a call. Libraries keep arguments as floating-point numbers, so both sides are decoded.
func call(id, name string, args any) string {
	if text, ok := args.(string); ok {
		args = json.RawMessage(text)
	}
	data, err := json.Marshal(args)
	var value any
	if err == nil {
		err = json.Unmarshal(data, &value)
	}
	if err == nil {
		data, err = json.Marshal(value)
	}
	if err != nil {
		return err.Error()
	}
	return id + " " + name + " " + string(data)
}

// api is one API with its adapter and the vendor's library.
type api struct {
	name   string
	open   func(endpoint.Config) provider.Provider
	native string                                                   // replay state of the adapter
	read   func(ctx context.Context, url string) (reply, error)     // has the library read a stream
	encode func(body []byte) (got any, ignored []string, err error) // has the library's types read a request, without these members
}

var apis = []api{
	{
		"anthropic", func(c endpoint.Config) provider.Provider { return lashdanthropic.New(c) },
		`{"type":"thinking","thinking":"Hm.","signature":"c2ln"}`, readAnthropic,
		func(body []byte) (any, []string, error) {
			var p anthropic.MessageNewParams
			err := json.Unmarshal(body, &p)
			return p, []string{"stream"}, err
		},
	},
	{
		"responses", func(c endpoint.Config) provider.Provider { return lashdresponses.New(lashdresponses.Config{Config: c}) },
		`{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"ZW5j"}`, readResponses,
		func(body []byte) (any, []string, error) {
			var p responses.ResponseNewParams
			err := json.Unmarshal(body, &p)
			return p, []string{"stream"}, err
		},
	},
	{
		"gemini", func(c endpoint.Config) provider.Provider { return gemini.New(c) },
		`{"thoughtSignature":"c2ln"}`, readGemini,
		func(body []byte) (any, []string, error) {
			var p struct {
				Contents          []*genai.Content        `json:"contents"`
				SystemInstruction *genai.Content          `json:"systemInstruction,omitempty"`
				Tools             []*genai.Tool           `json:"tools,omitempty"`
				ToolConfig        *genai.ToolConfig       `json:"toolConfig,omitempty"`
				GenerationConfig  *genai.GenerationConfig `json:"generationConfig"`
			}
			d := json.NewDecoder(strings.NewReader(string(body)))
			d.DisallowUnknownFields()
			err := d.Decode(&p)
			return p, nil, err
		},
	},
}

func readAnthropic(ctx context.Context, url string) (reply, error) {
	service := anthropic.NewMessageService(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("none"), anthropicoption.WithMaxRetries(0))
	stream := service.NewStreaming(ctx, anthropic.MessageNewParams{Model: "model", MaxTokens: 1})
	var m anthropic.Message
	for stream.Next() {
		if err := m.Accumulate(stream.Current()); err != nil {
			return reply{}, err
		}
	}
	r := reply{Input: m.Usage.InputTokens, Output: m.Usage.OutputTokens, CacheRead: m.Usage.CacheReadInputTokens}
	for _, block := range m.Content {
		r.Text += block.Text
		r.Reasoning += block.Thinking
		if block.Type == "tool_use" {
			r.Calls = append(r.Calls, call(block.ID, block.Name, block.Input))
		}
	}
	return r, stream.Err()
}

func readResponses(ctx context.Context, url string) (reply, error) {
	service := responses.NewResponseService(openaioption.WithBaseURL(url+"/v1"), openaioption.WithAPIKey("none"), openaioption.WithMaxRetries(0))
	stream := service.NewStreaming(ctx, responses.ResponseNewParams{})
	var r reply
	for stream.Next() {
		switch e := stream.Current().AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			r.Text += e.Delta
		case responses.ResponseReasoningSummaryTextDeltaEvent:
			r.Reasoning += e.Delta
		case responses.ResponseOutputItemDoneEvent:
			if c, ok := e.Item.AsAny().(responses.ResponseFunctionToolCall); ok {
				r.Calls = append(r.Calls, call(c.CallID, c.Name, c.Arguments))
			}
		case responses.ResponseCompletedEvent:
			r.count(&e.Response.Usage)
		case responses.ResponseIncompleteEvent:
			r.count(&e.Response.Usage)
		}
	}
	return r, stream.Err()
}

func (r *reply) count(u *responses.ResponseUsage) {
	r.CacheRead = u.InputTokensDetails.CachedTokens
	r.Input, r.Output = u.InputTokens-r.CacheRead, u.OutputTokens
}

func readGemini(ctx context.Context, url string) (reply, error) {
	client, err := genai.NewClient(ctx, &genai.ClientConfig{APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url}})
	if err != nil {
		return reply{}, err
	}
	var r reply
	for answer, err := range client.Models.GenerateContentStream(ctx, "model", genai.Text("hello"), nil) {
		if err != nil {
			return r, err
		}
		if u := answer.UsageMetadata; u != nil {
			r.CacheRead = int64(u.CachedContentTokenCount)
			r.Input, r.Output = int64(u.PromptTokenCount)-r.CacheRead, int64(u.CandidatesTokenCount+u.ThoughtsTokenCount)
		}
		for _, part := range answer.Candidates[0].Content.Parts {
			switch {
			case part.FunctionCall != nil:
				r.Calls = append(r.Calls, call(part.FunctionCall.ID, part.FunctionCall.Name, part.FunctionCall.Args))
			case part.Thought:
				r.Reasoning += part.Text
			default:
				r.Text += part.Text
			}
		}
	}
	return r, nil
}

// ours has the adapter read a stream.
func (a *api) ours(ctx context.Context, url string) (reply, error) {
	var c provider.Collector
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	p := a.open(endpoint.Config{BaseURL: url + "/v1", HTTPClient: &http.Client{Transport: transport}})
	for chunk, err := range p.Stream(ctx, providertest.Request()) {
		if err != nil {
			return reply{}, err
		}
		c.Add(&chunk)
	}
	said := c.Reply()
	r := reply{Input: said.Usage.Input, Output: said.Usage.Output, CacheRead: said.Usage.CacheRead}
	for _, part := range said.Parts {
		switch part.Kind {
		case protocol.PartProse:
			r.Text += part.Text
		case protocol.PartReasoning:
			r.Reasoning += part.Text
		case protocol.PartToolCall:
			r.Calls = append(r.Calls, call(string(part.Call.CallID), part.Call.Name, part.Call.Args))
		}
	}
	return r, nil
}

// TestReplies has the recorded replies read by both.
func TestReplies(t *testing.T) {
	for i := range apis {
		a := &apis[i]
		for _, name := range []string{"text", "reasoning", "calls", "interleaved", "limit"} {
			t.Run("runtime/M01 "+a.name+" "+name, func(t *testing.T) {
				body := providertest.Body(t, providertest.Answers(t, a.name)[name])
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					w.Write(body)
				}))
				defer server.Close()
				want, err := a.read(t.Context(), server.URL)
				if err != nil {
					t.Fatalf("the vendor's library: %v", err)
				}
				got, err := a.ours(t.Context(), server.URL)
				if err != nil {
					t.Fatalf("lashd: %v", err)
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("reply (-library +lashd):\n%s", d)
				}
			})
		}
	}
}

// TestRequests has the libraries' types read the requests that the adapters write: what comes out again must be the same.
func TestRequests(t *testing.T) {
	model := func(r *provider.Request, effort string, encoding protocol.ReasoningEncoding) {
		r.Model.Effort, r.Model.Reasoning = effort, &protocol.ReasoningSpec{Efforts: []string{"off", "high"}, Encoding: encoding}
	}
	for name, change := range map[string]func(*provider.Request){
		"everything":     func(*provider.Request) {},
		"effort":         func(r *provider.Request) { model(r, "high", protocol.EncodeEffort) },
		"budget":         func(r *provider.Request) { model(r, "high", protocol.EncodeBudget) },
		"effort off":     func(r *provider.Request) { model(r, "off", protocol.EncodeEffort) },
		"no tools":       func(r *provider.Request) { r.Choice = provider.ToolsNone },
		"required tools": func(r *provider.Request) { r.Choice = provider.ToolsRequired },
		"long cache":     func(r *provider.Request) { r.Model.Cache = protocol.CacheLong },
		"a schema":       func(r *provider.Request) { r.Output.Schema = json.RawMessage(`{"type":"object"}`) },
		"JSON":           func(r *provider.Request) { r.Output.JSON = true },
		"options": func(r *provider.Request) {
			r.Options = protocol.GenerationOptions{MaxOutput: 500, Temperature: new(0.5), Seed: new(int64(7)), Stop: []string{"END"}, Verbosity: "low"}
		},
	} {
		for i := range apis {
			a := &apis[i]
			t.Run("runtime/M01 "+a.name+" "+name, func(t *testing.T) {
				rec := providertest.Record(t, "")
				p := a.open(endpoint.Config{BaseURL: rec.URL, HTTPClient: rec.Client})
				route := p.(interface{ Route(model string) string }).Route("model")
				req := providertest.Conversation(route, json.RawMessage(a.native))
				change(req)
				body, _, _ := rec.Sent(t, p, req)
				// The API takes both alphabets of base64, the library's type only the other one.
				body = strings.ReplaceAll(body, "skip_thought_signature_validator", "skip/thought/signature/validator")
				params, ignored, err := a.encode([]byte(body))
				if err != nil {
					t.Fatalf("the vendor's types: %v\n%s", err, body)
				}
				again, err := json.Marshal(params)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(object(t, body, ignored...), object(t, string(again))); d != "" {
					t.Errorf("request (-lashd +library):\n%s", d)
				}
			})
		}
	}
}

// object decodes JSON without these members.
func object(t *testing.T, text string, without ...string) map[string]any {
	t.Helper()
	var value map[string]any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	for _, name := range without {
		delete(value, name)
	}
	return normal(value).(map[string]any)
}

// normal removes what the libraries spell in another way: they leave out what is empty, and write the text of a result as a list.
func normal(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if text, ok := v["content"].(string); ok && v["type"] == "tool_result" {
			v["content"] = []any{map[string]any{"type": "text", "text": text}}
		}
		for name, member := range v {
			if v[name] = normal(member); empty(v[name]) {
				delete(v, name)
			}
		}
	case []any:
		for i := range v {
			v[i] = normal(v[i])
		}
	}
	return value
}

func empty(value any) bool {
	switch v := value.(type) {
	case bool:
		return !v
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	}
	return false
}
