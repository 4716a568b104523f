package fakemodel

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/provider"
	"lashd/engine/provider/anthropic"
	"lashd/engine/provider/chatcompletions"
	"lashd/engine/provider/endpoint"
	"lashd/engine/provider/gemini"
	"lashd/engine/provider/responses"
	"lashd/rpc/protocol"
)

// fakeKey is long enough to be removed from errors.
const fakeKey = "sk-fake-0123456789"

// adapter is a provider that can check its server.
type adapter interface {
	provider.Provider
	provider.Checker
}

// clientOf returns lashd's own client of an API.
func clientOf(t *testing.T, s *Server, api, key string) adapter {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	cfg := endpoint.Config{
		Name: "fake", BaseURL: Base(strings.TrimSuffix(s.URL, "/v1"), api), Key: provider.NewSecret(key), HTTPClient: &http.Client{Transport: transport},
	}
	switch api {
	case ResponsesAPI:
		return responses.New(responses.Config{Config: cfg})
	case AnthropicAPI:
		return anthropic.New(cfg)
	case GeminiAPI:
		return gemini.New(cfg)
	}
	return chatcompletions.New(chatcompletions.Config{Config: cfg})
}

func said(role protocol.Role, parts ...protocol.Part) *protocol.Message {
	return &protocol.Message{Role: role, Parts: parts}
}

func prompt(text string) *protocol.Message {
	return said(protocol.RoleUser, protocol.Part{Kind: protocol.PartText, Text: text})
}

// call streams one reply.
func call(ctx context.Context, p provider.Provider, messages ...*protocol.Message) (provider.Reply, error) {
	var c provider.Collector
	req := &provider.Request{
		Model: protocol.ModelSpec{
			Provider: "fake", ID: "m", Inputs: []protocol.Modality{protocol.ModalityImage},
			Reasoning: &protocol.ReasoningSpec{Efforts: []string{"low"}, Encoding: protocol.EncodeEffort},
		},
		Messages: messages,
		Tools:    []protocol.ToolManifest{{Name: "look", Description: "Looks.", Input: json.RawMessage(`{"properties":{},"type":"object"}`)}},
	}
	for chunk, err := range p.Stream(ctx, req) {
		if err != nil {
			return c.Reply(), err
		}
		c.Add(&chunk)
	}
	return c.Reply(), nil
}

// eachAPI runs a test for each API at once, with a server and a client of its own.
func eachAPI(t *testing.T, name string, test func(t *testing.T, api string, s *Server, p adapter)) {
	for _, api := range APIs() {
		t.Run(name+" in "+api, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.Strict(fakeKey)
			test(t, api, s, clientOf(t, s, api, fakeKey))
		})
	}
}

// conversation has reasoning, text and two calls whose results the second request sends back.
var conversation = []Step{
	{
		Parts: []Part{
			{Reasoning: "hm, "}, {Reasoning: "so", Signature: "signed-so"}, {Text: "I "}, {Text: "look.\n"},
			{Calls: []Call{{ID: "a", Name: "look", Args: `{"at":"é"}`, Pieces: 3}, {ID: "b", Name: "look", Args: `{"at":2}`}}},
		},
		Usage: &Usage{Prompt: 7, Completion: 3},
	},
	Say("Seen."),
}

func TestConversationInEachAPI(t *testing.T) {
	eachAPI(t, "part9/fakes one script gives the same reply", func(t *testing.T, api string, s *Server, p adapter) {
		s.Push(conversation...)
		question := prompt("what is there?")
		question.Parts = append(question.Parts, protocol.Part{Kind: protocol.PartAttachment, Attachment: &protocol.Attachment{Type: "image/png", Data: []byte("picture")}})
		first, err := call(t.Context(), p, question)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, part := range first.Parts {
			text := part.Text
			if part.Call != nil {
				text = string(part.Call.CallID) + string(part.Call.Args)
			}
			got = append(got, string(part.Kind)+": "+text)
		}
		want := []string{"reasoning: hm, so", "prose: I look.\n", `toolCall: a{"at":"é"}`, `toolCall: b{"at":2}`}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("parts (-want +got):\n%s", d)
		}
		if first.Stop != protocol.StopToolUse || first.Usage.Input != 7 || first.Usage.Output != 3 {
			t.Errorf("stop %q, usage %+v", first.Stop, first.Usage)
		}
		reply := first.Message()
		results := said(protocol.RoleUser)
		for _, id := range []protocol.CallID{"a", "b"} {
			results.Parts = append(results.Parts, protocol.Part{Kind: protocol.PartToolResult, Result: &protocol.ToolResult{
				CallID: id, Name: "look", Output: protocol.ToolOutput{Status: protocol.OutputSuccess, Text: "result of " + string(id)},
			}})
		}
		if second, err := call(t.Context(), p, question, &reply, results); err != nil || second.Parts[0].Text != "Seen." {
			t.Errorf("the second reply is %+v, %v", second.Parts, err)
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
		sent := s.Requests()[1].Chat
		checkSent(t, api, sent)
	})
}

// checkSent checks the second request of the conversation.
func checkSent(t *testing.T, api string, sent Chat) {
	t.Helper()
	var signatures, calls, results, images []string
	for _, m := range sent.Messages {
		signatures = append(signatures, m.Signatures...)
		for _, c := range m.ToolCalls {
			calls = append(calls, c.ID+c.Function.Name+c.Function.Arguments)
		}
		for _, i := range m.Images {
			images = append(images, i.Type+" "+string(i.Data))
		}
		if m.Role == "tool" {
			results = append(results, m.ToolCallID+": "+string(m.Content))
		}
	}
	want := []string{"signed-so"}
	if api == ChatAPI {
		want = nil
	}
	if !slices.Equal(signatures, want) {
		t.Errorf("the signatures %q came back, want %q", signatures, want)
	}
	if want := []string{`alook{"at":"é"}`, `blook{"at":2}`}; !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
	if want := []string{"a: result of a", "b: result of b"}; !slices.Equal(results, want) {
		t.Errorf("results %q, want %q", results, want)
	}
	if want := []string{"image/png picture"}; !slices.Equal(images, want) {
		t.Errorf("images %q, want %q", images, want)
	}
	if sent.Model != "m" || len(sent.Tools) != 1 || sent.Tools[0].Function.Name != "look" || string(sent.Tools[0].Function.Parameters) != `{"properties":{},"type":"object"}` {
		t.Errorf("model %q, tools %+v", sent.Model, sent.Tools)
	}
}

func TestFaultsInEachAPI(t *testing.T) {
	say := []Part{{Text: "partial"}}
	for name, c := range map[string]struct {
		step Step
		kind provider.ErrorKind
		says string
	}{
		"a cut stream":     {Step{Parts: say, End: Cut}, provider.KindStream, "without"},
		"a reset stream":   {Step{Parts: say, End: Reset}, provider.KindStream, "reset"},
		"a malformed one":  {Step{Parts: append(slices.Clone(say), Part{Raw: "data: {oops"})}, provider.KindStream, "expected form"},
		"an error event":   {Step{Parts: append(slices.Clone(say), Part{Error: "we are overloaded"})}, provider.KindStream, "we are overloaded"},
		"a rejected key":   {Step{Status: 401}, provider.KindAuth, "scripted unauthorized"},
		"an echo of a key": {Step{Status: 401, Echo: true}, provider.KindAuth, "[redacted]"},
	} {
		eachAPI(t, "part9/fakes "+name+" is an error", func(t *testing.T, _ string, s *Server, p adapter) {
			s.Push(c.step)
			_, err := call(t.Context(), p, prompt("hi"))
			failure, ok := errors.AsType[*provider.Error](err)
			if !ok || failure.Kind != c.kind || !strings.Contains(failure.Message, c.says) {
				t.Errorf("error %+v, want kind %s and %q", err, c.kind, c.says)
			}
		})
	}
}

func TestStopReasonsOfEachAPI(t *testing.T) {
	for finish, want := range map[string]protocol.StopReason{
		"stop": protocol.StopEnd, "length": protocol.StopOutputLimit, "content_filter": protocol.StopContentFilter,
	} {
		eachAPI(t, "part9/fakes the finish "+finish+" has the API's word", func(t *testing.T, _ string, s *Server, p adapter) {
			s.Push(Step{Parts: []Part{{Text: "x"}}, Finish: finish})
			if r, err := call(t.Context(), p, prompt("hi")); err != nil || r.Stop != want {
				t.Errorf("stop %q, %v, want %q", r.Stop, err, want)
			}
		})
	}
}

func TestMarkersInEachAPI(t *testing.T) {
	eachAPI(t, "part9/fakes a marker streams", func(t *testing.T, _ string, _ *Server, p adapter) {
		r, err := call(t.Context(), p, prompt("go [[fake deltas=50 size=10 flush=8 think=2]]"))
		if err != nil || len(r.Parts) != 2 || len(r.Parts[0].Text) != 20 || len(r.Parts[1].Text) != 500 {
			t.Errorf("reply %+v, %v; want 20 bytes of reasoning and 500 of text", r.Parts, err)
		}
	})
}

func TestStrictServer(t *testing.T) {
	eachAPI(t, "part9/fakes a strict server rejects", func(t *testing.T, api string, s *Server, p adapter) {
		if err := p.Check(t.Context()); err != nil {
			t.Errorf("the list of models: %v", err)
		}
		_, err := call(t.Context(), clientOf(t, s, api, "sk-other"), prompt("hi"))
		if failure, ok := errors.AsType[*provider.Error](err); !ok || failure.Status != 401 {
			t.Errorf("another key: %v, want status 401", err)
		}
		lone := said(protocol.RoleAssistant, protocol.Part{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: "a", Name: "look", Args: []byte("{}")}})
		_, err = call(t.Context(), p, prompt("hi"), lone, prompt("and?"))
		if failure, ok := errors.AsType[*provider.Error](err); !ok || failure.Status != 400 {
			t.Errorf("a call without a result: %v, want status 400", err)
		}
		foreign := said(protocol.RoleAssistant, protocol.Part{
			Kind: protocol.PartReasoning, Text: "hm", Route: "fake " + Base(strings.TrimSuffix(s.URL, "/v1"), api) + " m",
			Replay: json.RawMessage(map[string]string{
				AnthropicAPI: `{"type":"thinking","thinking":"hm","signature":"made up"}`,
				ResponsesAPI: `{"type":"reasoning","summary":[],"encrypted_content":"made up"}`,
				GeminiAPI:    `{"thoughtSignature":"made up"}`,
				ChatAPI:      `null`,
			}[api]),
		}, protocol.Part{Kind: protocol.PartProse, Text: "yes"})
		_, err = call(t.Context(), p, prompt("hi"), foreign, prompt("and?"))
		if failure, ok := errors.AsType[*provider.Error](err); (!ok || failure.Status != 400) && api != ChatAPI {
			t.Errorf("a signature that the server did not give: %v, want status 400", err)
		}
	})
}
