package gemini_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"lashd/engine/provider"
	"lashd/engine/provider/gemini"
	"lashd/engine/provider/providertest"
	"lashd/rpc/protocol"
)

const done = `data: {"candidates":[{"finishReason":"STOP"}]}` + "\r\n\r\n"

func record(t *testing.T) (*providertest.Recorder, *gemini.Provider) {
	rec := providertest.Record(t, done)
	return rec, gemini.New(gemini.Config{BaseURL: rec.URL, HTTPClient: rec.Client})
}

func TestRequestBody(t *testing.T) {
	rec, p := record(t)
	got, receipts, code := rec.Sent(t, p, providertest.Conversation(p.Route("model"), json.RawMessage(`{"thoughtSignature":"c2ln"}`)))
	if receipts != "attachments omittedUnsupported, reasoning omittedOtherRoute" || code != "" {
		t.Errorf("runtime/S15 receipts %q, code %q", receipts, code)
	}
	providertest.SameJSON(t, `{
		"systemInstruction": {"parts": [{"text": "Be \"brief\" <b>."}]},
		"tools": [{"functionDeclarations": [
			{"name": "read", "description": "Reads.", "parametersJsonSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
			{"name": "list", "description": "", "parametersJsonSchema": {"type": "object", "properties": {}}}
		]}],
		"generationConfig": {},
		"contents": [
			{"role": "user", "parts": [
				{"text": "See → this."},
				{"inlineData": {"mimeType": "image/png", "data": "AQID"}},
				{"fileData": {"mimeType": "image/jpeg", "fileUri": "https://x.test/a.jpg"}},
				{"inlineData": {"mimeType": "application/pdf", "data": "BAUG"}},
				{"text": "[attachment c.txt]\nnote"},
				{"text": "[attachment d.ogg, audio/ogg: this model cannot read it]"}
			]},
			{"role": "model", "parts": [
				{"text": "", "thoughtSignature": "c2ln"},
				{"text": "I look."},
				{"functionCall": {"id": "call_c216cab2de2e56d547b4e6340edfc11a", "name": "read", "args": {"n": 12345678901234567890}}},
				{"functionCall": {"id": "c2", "name": "list", "args": {}}}
			]},
			{"role": "user", "parts": [
				{"functionResponse": {"id": "call_c216cab2de2e56d547b4e6340edfc11a", "name": "read", "response": {"output": "fine\n[attachment r.txt]\nhi"}}},
				{"functionResponse": {"id": "c2", "name": "list", "response": {"error": "The call failed. disk gone"}}},
				{"inlineData": {"mimeType": "image/png", "data": "CQ=="}},
				{"inlineData": {"mimeType": "application/pdf", "data": "Cg=="}}
			]},
			{"role": "model", "parts": [{"text": "Done."}, {"text": "", "thoughtSignature": "c2ln"}]},
			{"role": "user", "parts": [{"text": "A process ended."}]},
			{"role": "user", "parts": [{"text": "Plan first."}]},
			{"role": "user", "parts": [{"text": "It is noon."}]}
		]
	}`, got)
}

// TestResultFiles sends the conversation to a model whose effort is a level, as Gemini 3 takes it.
func TestResultFiles(t *testing.T) {
	rec, p := record(t)
	req := providertest.Conversation(p.Route("model"), nil)
	req.Messages = req.Messages[2:3]
	req.Model.Reasoning = &protocol.ReasoningSpec{Efforts: []string{"low"}, Encoding: protocol.EncodeEffort}
	got, _, _ := rec.Sent(t, p, req)
	want := `"contents":[{"role":"user","parts":[{"functionResponse":{"id":"call_c216cab2de2e56d547b4e6340edfc11a","name":"read","response":{"output":"fine\n[attachment r.txt]\nhi"},` +
		`"parts":[{"inlineData":{"mimeType":"image/png","data":"CQ=="}},{"inlineData":{"mimeType":"application/pdf","data":"Cg=="}}]}},` +
		`{"functionResponse":{"id":"c2","name":"list","response":{"error":"The call failed. disk gone"}}}]}]`
	if !strings.Contains(got, want) {
		t.Errorf("runtime/S15 a result with files for Gemini 3: sent %s\nwant %s", got, want)
	}
}

func TestOptions(t *testing.T) {
	reasoning := func(effort string, encoding protocol.ReasoningEncoding) protocol.ModelSpec {
		return protocol.ModelSpec{Effort: effort, Reasoning: &protocol.ReasoningSpec{Efforts: []string{"off", "low", "high"}, Encoding: encoding}}
	}
	tools := []protocol.ToolManifest{{Name: "f", Description: "d", Input: json.RawMessage(`{"type":"object"}`)}}
	const sent = `"tools":[{"functionDeclarations":[{"name":"f","description":"d","parametersJsonSchema":{"type":"object","properties":{}}}]}],`
	for _, c := range []struct {
		name     string
		req      provider.Request
		want     string // what the body holds besides the rest
		receipts string
	}{
		{"none", provider.Request{}, `"generationConfig":{}`, ""},
		{
			"all", provider.Request{Options: protocol.GenerationOptions{MaxOutput: 500, Temperature: new(0.1), Seed: new(int64(7)), Stop: []string{"END"}, Verbosity: "low"}},
			`"generationConfig":{"maxOutputTokens":500,"temperature":0.1,"seed":7,"stopSequences":["END"]}`,
			"maxOutput applied, temperature applied, seed applied, stop applied, verbosity omittedUnsupported",
		},
		{
			"a seed of more than 32 bits", provider.Request{Options: protocol.GenerationOptions{Seed: new(int64(1) << 31)}},
			`"generationConfig":{}`, "seed omittedUnsupported",
		},
		{
			"clamped and pinned", provider.Request{Model: protocol.ModelSpec{OutputLimit: 100, PinnedOptions: true}, Options: protocol.GenerationOptions{MaxOutput: 500, Temperature: new(0.5), Seed: new(int64(7))}},
			`"generationConfig":{"maxOutputTokens":100}`, "maxOutput clamped, temperature omittedPinned, seed omittedPinned",
		},
		{
			"effort", provider.Request{Model: reasoning("high", "")},
			`"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"HIGH"}}`, "effort applied",
		},
		{
			"budget", provider.Request{Model: reasoning("low", protocol.EncodeBudget)},
			`"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":2048}}`, "effort applied",
		},
		{
			"effort off", provider.Request{Model: reasoning("off", protocol.EncodeBudget)},
			`"generationConfig":{"thinkingConfig":{"includeThoughts":false,"thinkingBudget":0}}`, "effort applied",
		},
		{
			"effort off of a model whose effort is a level", provider.Request{Model: reasoning("off", "")},
			`"generationConfig":{"thinkingConfig":{"includeThoughts":false,"thinkingBudget":0}}`, "effort applied",
		},
		{
			"the largest seed", provider.Request{Options: protocol.GenerationOptions{Seed: new(int64(2147483647))}},
			`"generationConfig":{"seed":2147483647}`, "seed applied",
		},
		{
			"the smallest seed", provider.Request{Options: protocol.GenerationOptions{Seed: new(int64(-2147483648))}},
			`"generationConfig":{"seed":-2147483648}`, "seed applied",
		},
		{
			"a smaller seed", provider.Request{Options: protocol.GenerationOptions{Seed: new(int64(-2147483649))}},
			`"generationConfig":{}`, "seed omittedUnsupported",
		},
		{
			"a limit of more than 32 bits", provider.Request{Options: protocol.GenerationOptions{MaxOutput: 1 << 40}},
			`"generationConfig":{"maxOutputTokens":2147483647}`, "maxOutput clamped",
		},
		{"the model's own effort", provider.Request{Model: reasoning("", "")}, `"generationConfig":{"thinkingConfig":{"includeThoughts":true}}`, ""},
		{
			"no tools", provider.Request{Tools: tools, Choice: provider.ToolsNone},
			sent + `"toolConfig":{"functionCallingConfig":{"mode":"NONE"}},"generationConfig":{}`, "",
		},
		{
			"required tools", provider.Request{Tools: tools, Choice: provider.ToolsRequired},
			sent + `"toolConfig":{"functionCallingConfig":{"mode":"ANY"}},"generationConfig":{}`, "",
		},
		{"a choice without tools", provider.Request{Choice: provider.ToolsRequired}, `"generationConfig":{}`, ""},
		{
			"a schema", provider.Request{Output: provider.OutputSpec{Schema: json.RawMessage(`{"type":"object"}`)}},
			`"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"object"}}`, "",
		},
		{
			"a schema beside tools", provider.Request{Output: provider.OutputSpec{JSON: true, Schema: json.RawMessage(`{"type":"object"}`)}, Tools: tools},
			sent + `"generationConfig":{}`, "output omittedUnsupported",
		},
		{
			"JSON without a schema", provider.Request{Output: provider.OutputSpec{JSON: true}},
			`"generationConfig":{"responseMimeType":"application/json"}`, "",
		},
	} {
		t.Run("runtime/M08 "+c.name, func(t *testing.T) {
			rec, p := record(t)
			c.req.Messages = providertest.Request().Messages
			c.req.Model.ID = "model"
			got, receipts, code := rec.Sent(t, p, &c.req)
			providertest.SameJSON(t, `{"contents":[{"role":"user","parts":[{"text":"hello"}]}],`+c.want+`}`, got)
			if receipts != c.receipts || code != "" {
				t.Errorf("receipts %q, code %q; want %q", receipts, code, c.receipts)
			}
		})
	}
}

func TestEffortIsCheckedBeforeTheCall(t *testing.T) {
	providertest.Efforts(t, func(t *testing.T) (*providertest.Recorder, provider.Provider) { return record(t) })
}

// TestSignatures has calls that this model did not make, for a model that checks signatures: the first one needs the word for none.
func TestSignatures(t *testing.T) {
	rec, p := record(t)
	req := providertest.Conversation("elsewhere", json.RawMessage(`{"thoughtSignature":"c2ln"}`))
	req.Model.Reasoning = &protocol.ReasoningSpec{Efforts: []string{"low"}}
	req.Messages = req.Messages[1:2]
	body, _, _ := rec.Sent(t, p, req)
	var got struct{ Contents json.RawMessage }
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	providertest.SameJSON(t, `[{"role": "model", "parts": [
		{"text": "I look."},
		{"functionCall": {"id": "call_c216cab2de2e56d547b4e6340edfc11a", "name": "read", "args": {"n": 12345678901234567890}}, "thoughtSignature": "skip_thought_signature_validator"},
		{"functionCall": {"id": "c2", "name": "list", "args": {}}}
	]}]`, string(got.Contents))
}

// TestPaths has ids that are resource names and ids with characters that a path does not take.
func TestPaths(t *testing.T) {
	for id, want := range map[string]string{
		"gemini-3-pro":  "/v1/models/gemini-3-pro:streamGenerateContent?alt=sse",
		"tunedModels/x": "/v1/tunedModels/x:streamGenerateContent?alt=sse",
		"a b?c":         "/v1/models/a%20b%3Fc:streamGenerateContent?alt=sse",
	} {
		t.Run("runtime/M05 "+id, func(t *testing.T) {
			p := serve(t, gemini.Config{}, func(_ http.ResponseWriter, r *http.Request) {
				if r.RequestURI != want {
					t.Errorf("asked for %s, want %s", r.RequestURI, want)
				}
			})
			req := providertest.Request()
			req.Model.ID = id
			for range p.Stream(t.Context(), req) {
			}
		})
	}
}

func TestNotes(t *testing.T) {
	providertest.Notes(t, func(t *testing.T) (*providertest.Recorder, provider.Provider) { return record(t) })
}
