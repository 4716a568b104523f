package chatcompletions_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/provider"
	"lashd/engine/provider/chatcompletions"
	"lashd/engine/provider/endpoint"
	"lashd/engine/provider/providertest"
	"lashd/rpc/protocol"
)

func read(t *testing.T, r *http.Request) string {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	return string(data)
}

// recorder is a server that keeps the bodies it was sent.
type recorder struct {
	*chatcompletions.Provider
	mu     sync.Mutex
	bodies []string // guarded by mu
}

func record(t *testing.T) *recorder {
	r := &recorder{}
	r.Provider = serve(t, chatcompletions.Config{}, func(w http.ResponseWriter, req *http.Request) {
		body := read(t, req)
		if req.ContentLength != int64(len(body)) {
			t.Errorf("Content-Length %d, body of %d bytes", req.ContentLength, len(body))
		}
		r.mu.Lock()
		r.bodies = append(r.bodies, body)
		r.mu.Unlock()
		stream(finish("stop"))(w, req)
	})
	return r
}

// sent is the body of a request, with its receipts.
func (r *recorder) sent(t *testing.T, req *provider.Request) (string, []protocol.OptionReceipt) {
	t.Helper()
	reply, err := ask(t.Context(), r, req)
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bodies[len(r.bodies)-1], reply.Options
}

func sameJSON(t *testing.T, want, got string) {
	t.Helper()
	var w, g any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("want is not JSON: %v", err)
	}
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("sent is not JSON: %v\n%s", err, got)
	}
	if d := cmp.Diff(w, g); d != "" {
		t.Errorf("sent (-want +got):\n%s", d)
	}
}

func result(id protocol.CallID, out protocol.ToolOutput) protocol.Part {
	return protocol.Part{Kind: protocol.PartToolResult, Result: &protocol.ToolResult{CallID: id, Name: "f", Output: out}}
}

func TestRequestBody(t *testing.T) {
	image := &protocol.Attachment{Type: "image/png", Data: []byte{1, 2, 3}}
	linked := &protocol.Attachment{Type: "image/png", URL: "https://x.test/a.png"}
	notes := &protocol.Attachment{Type: "text/plain", Name: "a.txt", Data: []byte("note")}
	empty := &protocol.Attachment{Type: "text/plain", Name: "b.txt"}
	sound := &protocol.Attachment{Type: "audio/ogg", Name: "a.ogg"}
	cleared := result("c5", protocol.Succeed("long"))
	cleared.Prune = &protocol.Prune{State: protocol.PruneCleared, Breadcrumb: "[cleared]"}
	req := request(
		user("hi \"you\" <b> \u2028 \xff\x01"),
		&protocol.Message{Role: protocol.RoleAssistant, Parts: []protocol.Part{
			{Kind: protocol.PartReasoning, Text: "secret thought", Replay: json.RawMessage(`{"reasoning":"x"}`)},
			{Kind: protocol.PartProse, Text: "look"},
			{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: "c1", Name: "f", Args: json.RawMessage(`{"a":1}`)}},
			{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: "c2", Name: "g"}},
			{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: "c5", Name: "g", Args: json.RawMessage(`"{\"cut"`)}},
		}},
		&protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{
			result("c1", protocol.ToolOutput{Status: protocol.OutputSuccess, Text: "fine", Attachments: []protocol.Attachment{*notes, *image}}),
			result("c2", protocol.Fail(protocol.FailIO, "io", "disk gone", protocol.FromTool)),
			result("c3", protocol.ToolOutput{Status: protocol.OutputUnknown}),
			result("c4", protocol.ToolOutput{Status: protocol.OutputCancelled}),
			cleared,
		}},
		&protocol.Message{Role: protocol.RoleAssistant, Parts: []protocol.Part{{Kind: protocol.PartReasoning, Text: "only thought"}}},
		&protocol.Message{Role: protocol.RoleEvent, Parts: []protocol.Part{{Kind: protocol.PartText, Text: "woken"}}},
		&protocol.Message{Role: protocol.RoleSystem, Parts: []protocol.Part{{Kind: protocol.PartText, Text: "rule"}}},
		&protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{
			{Kind: protocol.PartText, Text: "see"},
			{Kind: protocol.PartAttachment, Attachment: image},
			{Kind: protocol.PartAttachment, Attachment: linked},
			{Kind: protocol.PartAttachment, Attachment: notes},
			{Kind: protocol.PartAttachment, Attachment: empty},
			{Kind: protocol.PartAttachment, Attachment: sound},
		}},
	)
	req.System = "Be brief."
	req.Tools = []protocol.ToolManifest{
		{Name: "f", Description: "does f", Input: json.RawMessage(`{"type": "object"}`)},
		{Name: "g"},
	}
	req.Choice = provider.ToolsRequired
	req.Output = provider.OutputSpec{Schema: json.RawMessage(`{"type":"object"}`)}
	got, _ := record(t).sent(t, req)
	sameJSON(t, `{
		"model": "m",
		"messages": [
			{"role": "system", "content": "Be brief."},
			{"role": "user", "content": "hi \"you\" <b> \u2028 \ufffd\u0001"},
			{"role": "assistant", "content": "look", "tool_calls": [
				{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
				{"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
				{"id": "c5", "type": "function", "function": {"name": "g", "arguments": "{}"}}
			]},
			{"role": "tool", "tool_call_id": "c1", "content": "fine\n[attachment a.txt]\nnote"},
			{"role": "tool", "tool_call_id": "c2", "content": "The call failed. disk gone"},
			{"role": "tool", "tool_call_id": "c3", "content": "The outcome of this call is unknown: it was started, and it may or may not have taken effect."},
			{"role": "tool", "tool_call_id": "c4", "content": "The call was cancelled."},
			{"role": "tool", "tool_call_id": "c5", "content": "[cleared]"},
			{"role": "user", "content": [
				{"type": "text", "text": "[files of the result of f, call c1]"},
				{"type": "image_url", "image_url": {"url": "data:image/png;base64,AQID"}}
			]},
			{"role": "user", "content": "woken"},
			{"role": "system", "content": "rule"},
			{"role": "user", "content": [
				{"type": "text", "text": "see"},
				{"type": "image_url", "image_url": {"url": "data:image/png;base64,AQID"}},
				{"type": "image_url", "image_url": {"url": "https://x.test/a.png"}},
				{"type": "text", "text": "[attachment a.txt]\nnote"},
				{"type": "text", "text": "[attachment b.txt, which is empty]"},
				{"type": "text", "text": "[attachment a.ogg, audio/ogg: this model cannot read it]"}
			]}
		],
		"tools": [
			{"type": "function", "function": {"name": "f", "description": "does f", "parameters": {"type": "object", "properties": {}}}},
			{"type": "function", "function": {"name": "g", "description": "", "parameters": {"type": "object", "properties": {}}}}
		],
		"tool_choice": "required",
		"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}},
		"stream": true,
		"stream_options": {"include_usage": true}
	}`, got)
}

func TestOptions(t *testing.T) {
	full := protocol.GenerationOptions{MaxOutput: 500, Temperature: new(0.5), Seed: new(int64(7)), Stop: []string{"\n"}}
	for _, c := range []struct {
		name     string
		model    protocol.ModelSpec
		options  protocol.GenerationOptions
		want     string // what the body holds besides the rest
		receipts string
	}{
		{"none", protocol.ModelSpec{}, protocol.GenerationOptions{}, `{}`, ""},
		{
			"all", protocol.ModelSpec{}, full, `{"max_tokens":500,"temperature":0.5,"seed":7,"stop":["\n"]}`,
			"maxOutput applied, temperature applied, seed applied, stop applied",
		},
		{
			"pinned sampling", protocol.ModelSpec{PinnedOptions: true}, full, `{"max_tokens":500,"stop":["\n"]}`,
			"maxOutput applied, temperature omittedPinned, seed omittedPinned, stop applied",
		},
		{
			"clamped", protocol.ModelSpec{OutputLimit: 100}, protocol.GenerationOptions{MaxOutput: 500}, `{"max_tokens":100}`,
			"maxOutput clamped",
		},
		{
			"effort", protocol.ModelSpec{Effort: "high", Reasoning: &protocol.ReasoningSpec{Efforts: []string{"low", "high"}}},
			protocol.GenerationOptions{}, `{"reasoning_effort":"high"}`, "effort applied",
		},
		{
			"effort beside a temperature", protocol.ModelSpec{Effort: "low", Reasoning: &protocol.ReasoningSpec{Efforts: []string{"low"}}},
			protocol.GenerationOptions{Temperature: new(0.0), Verbosity: "high"}, `{"temperature":0,"verbosity":"high","reasoning_effort":"low"}`,
			"temperature applied, verbosity applied, effort applied",
		},
		{
			"default effort", protocol.ModelSpec{Reasoning: &protocol.ReasoningSpec{Efforts: []string{"low"}, Default: "low", Mandatory: true}},
			protocol.GenerationOptions{}, `{"reasoning_effort":"low"}`, "effort applied",
		},
	} {
		t.Run("runtime/M02 "+c.name, func(t *testing.T) {
			req := request(user("hi"))
			c.model.ID = "m"
			req.Model, req.Options = c.model, c.options
			got, receipts := record(t).sent(t, req)
			rest := `{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true}`
			sameJSON(t, strings.TrimSuffix(rest+","+c.want[1:], ",}")+map[bool]string{true: "}"}[c.want == "{}"], got)
			var fates []string
			for _, r := range receipts {
				fates = append(fates, r.Option+" "+r.Fate)
			}
			if got := strings.Join(fates, ", "); got != c.receipts {
				t.Errorf("receipts %q, want %q", got, c.receipts)
			}
		})
	}
}

func TestEffortIsCheckedBeforeTheCall(t *testing.T) {
	spec := &protocol.ReasoningSpec{Efforts: []string{"low", "high"}, Mandatory: true}
	for code, model := range map[string]protocol.ModelSpec{
		"unsupported_effort":      {Effort: "extreme", Reasoning: spec},
		"effort_not_configurable": {Effort: "low"},
		"effort_required":         {Reasoning: spec},
	} {
		t.Run("runtime/M08 "+code, func(t *testing.T) {
			r := record(t)
			_, err := ask(t.Context(), r, &provider.Request{Model: model})
			if codeOf(err) != code || err.Kind != provider.KindValidation || len(r.bodies) != 0 {
				t.Errorf("error %+v after %d requests, want %s before any", err, len(r.bodies), code)
			}
		})
	}
}

// TestHistoryIsWhatWasAsked compares what one provider sends, call after call, with what a fresh one sends.
func TestHistoryIsWhatWasAsked(t *testing.T) {
	var all []*protocol.Message
	for i := range 8 {
		all = append(all, user(fmt.Sprint("message ", i)))
	}
	passing := user("it is noon")
	passing.Origin = &protocol.Origin{Transient: true}
	kept := record(t)
	for i, messages := range [][]*protocol.Message{
		all[:2], all[:4], all[:4],
		{all[0], all[1], all[6]}, // rewound, and gone another way
		all[:5],
		all[:3], // a look back
		{all[0], all[1], all[2], passing},
		all[:6],
		{all[5], all[6]}, // compacted
		{},
		all[:8],
		{passing, all[0]},
	} {
		t.Run(fmt.Sprint("runtime/M02 call ", i), func(t *testing.T) {
			req := request(messages...)
			got, _ := kept.sent(t, req)
			want, _ := record(t).sent(t, req)
			if got != want {
				t.Errorf("sent %s\nwant %s", got, want)
			}
		})
	}
}

func TestHistoriesAtOnce(t *testing.T) {
	r := record(t)
	first := user("start")
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			messages := []*protocol.Message{first}
			for j := range 20 {
				messages = append(messages, user(strings.Repeat(fmt.Sprintf("%d/%d ", i, j), 100)))
				if _, err := ask(t.Context(), r, request(messages...)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	for _, body := range r.bodies {
		var sent struct {
			Messages []struct {
				Content string `json:"content"`
			} `json:"messages"`
		}
		if err := json.Unmarshal([]byte(body), &sent); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		who, _, _ := strings.Cut(sent.Messages[1].Content, "/")
		for j, m := range sent.Messages[1:] {
			if want := strings.Repeat(fmt.Sprintf("%s/%d ", who, j), 100); m.Content != want {
				t.Fatalf("message %d is %.20q, want %.20q", j, m.Content, want)
			}
		}
	}
}

func TestNotes(t *testing.T) {
	providertest.Notes(t, func(t *testing.T) (*providertest.Recorder, provider.Provider) {
		rec := providertest.Record(t, `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
		return rec, chatcompletions.New(chatcompletions.Config{Config: endpoint.Config{BaseURL: rec.URL, HTTPClient: rec.Client}})
	})
}

// TestCallsAlone has a reply without text: servers require its content, which is null.
func TestCallsAlone(t *testing.T) {
	rec := providertest.Record(t, "")
	p := chatcompletions.New(chatcompletions.Config{Config: endpoint.Config{BaseURL: rec.URL, HTTPClient: rec.Client}})
	call := protocol.ToolCall{CallID: "c", Name: "f", Args: json.RawMessage(`{"a":1}`)}
	body, _, _ := rec.Sent(t, p, request(&protocol.Message{Role: protocol.RoleAssistant, Parts: []protocol.Part{{Kind: protocol.PartToolCall, Call: &call}}}))
	var got struct{ Messages json.RawMessage }
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	providertest.SameJSON(t, `[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}]`, string(got.Messages))
}
