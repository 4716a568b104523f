package oracles

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicshared "github.com/anthropics/anthropic-sdk-go/shared"
	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	openaishared "github.com/openai/openai-go/v3/shared"
	"google.golang.org/genai"

	"lashd/engine/provider/providertest"
	"lashd/test/fakemodel"
)

// frames is one API with the vendor's types of all that a server sends.
type frames struct {
	api    string
	path   string
	body   string // of a request for a stream
	header string // that carries the key
	named  bool   // events have a name, which is also their type

	event   func(name string, data []byte) []string // misfits of one event
	failure func(data []byte) []string              // of the body of a rejection
	model   func(data []byte) []string              // of one entry in the list of models
	list    string                                  // member of that list with the entries
	kinds   []string                                // of frames that the fake sends, sorted
}

var served = []frames{
	{
		api: fakemodel.ChatAPI, path: "/v1/chat/completions", header: "Authorization", list: "data",
		body:    `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`,
		event:   chatEvent,
		failure: openAIFailure,
		model:   func(data []byte) []string { return misfits(data, new(openai.Model)) },
		kinds:   []string{"[DONE]", "chat.completion.chunk", "error"},
	},
	{
		api: fakemodel.ResponsesAPI, path: "/v1/responses", header: "Authorization", list: "data", named: true,
		body:    `{"model":"m","stream":true,"input":[{"role":"user","content":"hi"}]}`,
		event:   func(_ string, data []byte) []string { return misfits(data, new(responses.ResponseStreamEventUnion)) },
		failure: openAIFailure,
		model:   func(data []byte) []string { return misfits(data, new(openai.Model)) },
		kinds: []string{
			"error", "response.completed", "response.content_part.added", "response.content_part.done", "response.created",
			"response.function_call_arguments.delta", "response.function_call_arguments.done", "response.in_progress",
			"response.incomplete", "response.output_item.added", "response.output_item.done", "response.output_text.delta",
			"response.output_text.done", "response.reasoning_summary_part.added", "response.reasoning_summary_part.done",
			"response.reasoning_summary_text.delta", "response.reasoning_summary_text.done",
		},
	},
	{
		api: fakemodel.AnthropicAPI, path: "/v1/messages", header: "X-Api-Key", list: "data", named: true,
		body:    `{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`,
		event:   anthropicEvent,
		failure: func(data []byte) []string { return misfits(data, new(anthropicshared.ErrorResponse)) },
		model:   func(data []byte) []string { return misfits(data, new(anthropic.ModelInfo)) },
		kinds: []string{
			"content_block_delta", "content_block_start", "content_block_stop", "error", "message_delta", "message_start", "message_stop", "ping",
		},
	},
	{
		api: fakemodel.GeminiAPI, path: "/v1beta/models/m:streamGenerateContent?alt=sse", header: "X-Goog-Api-Key", list: "models",
		body:    `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
		event:   geminiEvent,
		failure: geminiFailure,
		model:   func(data []byte) []string { return exactly(data, new(geminiModel)) },
		kinds:   []string{"candidates", "error"},
	},
}

// The types of Google's library without their UnmarshalJSON, which would accept unknown members.
type (
	geminiReply genai.GenerateContentResponse
	geminiModel struct {
		genai.Model
		Methods []string `json:"supportedGenerationMethods"` // the library calls it supportedActions, and translates
	}
)

// geminiFailure checks the body of a rejection, which is also that of an error event.
func geminiFailure(data []byte) []string {
	return exactly(data, &struct {
		Error *genai.APIError `json:"error"`
	}{})
}

func geminiEvent(_ string, data []byte) []string {
	if bytes.HasPrefix(data, []byte(`{"error"`)) {
		return geminiFailure(data)
	}
	return exactly(data, new(geminiReply))
}

func openAIFailure(data []byte) []string {
	var body map[string]json.RawMessage
	if err := json.Unmarshal(data, &body); err != nil || len(body) != 1 {
		return []string{"the body is not one object error: " + string(data)}
	}
	return misfits(body["error"], new(openaishared.ErrorObject))
}

func chatEvent(_ string, data []byte) []string {
	switch {
	case string(data) == "[DONE]":
		return nil
	case bytes.HasPrefix(data, []byte(`{"error"`)):
		return openAIFailure(data)
	}
	return misfits(data, new(openai.ChatCompletionChunk))
}

func anthropicEvent(name string, data []byte) []string {
	switch name {
	case "ping":
		if string(data) != `{"type":"ping"}` {
			return []string{"a ping has more than a type"}
		}
		return nil
	case "error":
		return misfits(data, new(anthropicshared.ErrorResponse))
	}
	return misfits(data, new(anthropic.MessageStreamEventUnion))
}

// script has replies with everything that a fake can be told to send, beside raw events.
func script() []fakemodel.Step {
	calls := fakemodel.Part{Calls: []fakemodel.Call{{Name: "read", Args: `{"path":"a"}`}, {ID: "c2", Name: "list", Args: `{}`}}}
	usage := &fakemodel.Usage{Prompt: 12, Completion: 7}
	usage.PromptDetails.Cached, usage.CompletionDetails.Reasoning = 3, 2
	return []fakemodel.Step{
		fakemodel.Say("Hello, ", "w\u00f6rld\n\"<&>"),
		{Parts: []fakemodel.Part{{Reasoning: "Hm."}, {Reasoning: "So.", Signature: "c2ln"}, {Text: "Look:"}, calls, {Text: "and"}, calls}, Usage: usage},
		{Parts: []fakemodel.Part{{Reasoning: "Hm."}, calls}},
		{Parts: []fakemodel.Part{{Reasoning: "Hm."}}},
		{Parts: []fakemodel.Part{{Text: "Once upon"}}, Finish: "length"},
		{Parts: []fakemodel.Part{{Text: "I "}}, Finish: "content_filter"},
		{Parts: []fakemodel.Part{{Text: "Hel"}, {Error: "broken"}}},
		{},
	}
}

// post sends a request to the fake and returns the status and the body of its answer.
func (f *frames) post(t *testing.T, method, url, body, key string) (status int, answer []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Anthropic-Version", "2023-06-01")
	if f.api != fakemodel.AnthropicAPI {
		req.Header.Del("Anthropic-Version")
	}
	if key != "" {
		req.Header.Set(f.header, key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// check decodes a whole stream and counts its frames by kind. An older server may lack members that the vendor's newest types require.
func (f *frames) check(t *testing.T, stream []byte, older bool, seen map[string]int) {
	t.Helper()
	for frame := range strings.SplitSeq(strings.TrimSpace(strings.ReplaceAll(string(stream), "\r\n", "\n")), "\n\n") {
		name, data := "", ""
		for line := range strings.SplitSeq(frame, "\n") {
			key, value, _ := strings.Cut(line, ": ")
			switch key {
			case "event":
				name = value
			case "data":
				data += value
			default:
				t.Errorf("a line is neither an event nor data: %q", line)
			}
		}
		kind := f.kind(data)
		if seen[kind]++; f.named && name != kind || !f.named && name != "" {
			t.Errorf("the event %q has the type %q", name, kind)
		}
		for _, misfit := range f.event(kind, []byte(data)) {
			if older && strings.HasSuffix(misfit, " is missing") {
				continue
			}
			t.Errorf("%s: %s\nin %s", kind, misfit, data)
		}
	}
}

// kind is the kind of a frame: its type, or the member that says what it is.
func (f *frames) kind(data string) string {
	var frame struct {
		Type, Object string
		Error        json.RawMessage
	}
	if err := json.Unmarshal([]byte(data), &frame); err != nil {
		return data
	}
	switch {
	case frame.Type != "":
		return frame.Type
	case frame.Error != nil:
		return "error"
	case f.api == fakemodel.GeminiAPI:
		return "candidates"
	}
	return frame.Object
}

// overAPIs runs a test for each API, with a fake server of its own on the network.
func overAPIs(t *testing.T, test func(t *testing.T, f *frames, model *fakemodel.Server, root string)) {
	for i := range served {
		t.Run("runtime/M01 "+served[i].api, func(t *testing.T) {
			model, err := fakemodel.Start()
			if err != nil {
				t.Fatal(err)
			}
			defer model.Close()
			test(t, &served[i], model, strings.TrimSuffix(model.URL, "/v1"))
		})
	}
}

// TestFakeStreams has each kind of frame that the fake model server sends decoded by the vendor's types. A member that these do not
// have, or that has another type, fails, and so does a missing one that they require.
func TestFakeStreams(t *testing.T) {
	overAPIs(t, func(t *testing.T, f *frames, model *fakemodel.Server, root string) {
		seen := map[string]int{}
		steps := script()
		model.Push(steps...)
		for range steps {
			_, stream := f.post(t, http.MethodPost, root+f.path, f.body, "")
			f.check(t, stream, false, seen)
		}
		_, stream := f.post(t, http.MethodPost, root+f.path, strings.Replace(f.body, `hi"`, `[[fake deltas=3 size=6 think=2]]"`, 1), "")
		f.check(t, stream, false, seen)
		if kinds := slices.Sorted(maps.Keys(seen)); !slices.Equal(kinds, f.kinds) {
			t.Errorf("the fake sends frames of the kinds %q, want %q", kinds, f.kinds)
		}
		if err := model.Check(); err != nil {
			t.Error(err)
		}
	})
}

// TestFakeAnswers is TestFakeStreams for rejections, for lists of models, and for the replies of Chat Completions in one piece.
func TestFakeAnswers(t *testing.T) {
	overAPIs(t, func(t *testing.T, f *frames, model *fakemodel.Server, root string) {
		for _, want := range []int{400, 401, 403, 404, 429, 500, 503, 529} {
			model.Push(fakemodel.Fail(want))
			status, body := f.post(t, http.MethodPost, root+f.path, f.body, "")
			for _, misfit := range f.failure(body) {
				t.Errorf("HTTP %d: %s\nin %s", want, misfit, body)
			}
			if status != want {
				t.Errorf("HTTP %d, want %d", status, want)
			}
		}
		_, body := f.post(t, http.MethodGet, root+fakemodel.Base("", f.api)+"/models", "", "")
		var list map[string]json.RawMessage
		var models []json.RawMessage
		if json.Unmarshal(body, &list) != nil || json.Unmarshal(list[f.list], &models) != nil || len(models) == 0 {
			t.Fatalf("there is no list of models in %s", body)
		}
		for _, misfit := range f.model(models[0]) {
			t.Errorf("a model: %s\nin %s", misfit, body)
		}
		model.Strict("key")
		status, body := f.post(t, http.MethodPost, root+f.path, f.body, "another")
		if misfit := f.failure(body); misfit != nil || status != http.StatusUnauthorized {
			t.Errorf("HTTP %d: %s\nin %s", status, misfit, body)
		}
		if f.api == fakemodel.ChatAPI {
			model.Push(script()[1])
			_, body = f.post(t, http.MethodPost, root+f.path, strings.Replace(f.body, `"stream":true,`, "", 1), "key")
			if misfit := misfits(body, new(openai.ChatCompletion)); misfit != nil {
				t.Errorf("a reply in one piece: %s\nin %s", misfit, body)
			}
		}
	})
}

// TestRecordedFrames is TestFakeStreams for the recorded answers that the adapters' tests read. Those that a test needs malformed, or
// with news that no library knows, are not among them.
func TestRecordedFrames(t *testing.T) {
	for i := range served {
		f := &served[i]
		archive := map[string]string{fakemodel.ChatAPI: "chatcompletions"}[f.api]
		if archive == "" {
			archive = f.api
		}
		for _, name := range []string{"text", "reasoning", "calls", "interleaved", "limit", "filter", "overloaded"} {
			if f.api == fakemodel.ChatAPI && name == "overloaded" {
				continue // of another server, which adds an error to a chunk
			}
			t.Run("runtime/M01 "+f.api+" "+name, func(t *testing.T) {
				f.check(t, providertest.Body(t, providertest.Answers(t, archive)[name]), true, map[string]int{})
			})
		}
	}
}

// TestMisfits has the check itself find what it looks for.
func TestMisfits(t *testing.T) {
	for data, want := range map[string][]string{
		`{"type":"message_stop"}`:                   nil,
		`{"type":"message_stop","more":1}`:          {".more is unknown"},
		`{"type":"content_block_stop","index":"0"}`: {`.index has another type: "0"`},
		`{"type":"content_block_stop"}`:             {".index is missing"},
		`{"type":"message_begin"}`:                  {" is of an unknown kind"},
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":{"a":1}}}`:                      {`.delta.text has another type: {"a":1}`},
		`{"type":"content_block_delta","index":0,"delta":{"type":"words","text":"a"}}`:                               {".delta is of an unknown kind"},
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"","citations":null,"x":{}}}`: {".content_block.x is unknown"},
	} {
		if d := cmp.Diff(want, anthropicEvent("", []byte(data))); d != "" {
			t.Errorf("%s (-want +got):\n%s", data, d)
		}
	}
	if got := geminiEvent("", []byte(`{"candidates":[{"content":{"parts":[{"words":""}]}}]}`)); len(got) != 1 {
		t.Errorf("a part of an unknown kind: %q", got)
	}
}
