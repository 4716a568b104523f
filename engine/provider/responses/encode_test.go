package responses_test

import (
	"encoding/json"
	"testing"

	"lashd/engine/provider"
	"lashd/engine/provider/endpoint"
	"lashd/engine/provider/providertest"
	"lashd/engine/provider/responses"
	"lashd/rpc/protocol"
)

const done = `data: {"type":"response.completed","response":{"status":"completed"}}` + "\n\n"

func record(t *testing.T) (*providertest.Recorder, *responses.Provider) {
	rec := providertest.Record(t, done)
	return rec, responses.New(responses.Config{Config: endpoint.Config{BaseURL: rec.URL, HTTPClient: rec.Client}})
}

func TestRequestBody(t *testing.T) {
	rec, p := record(t)
	native := json.RawMessage(`{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"ZW5j"}`)
	got, receipts, code := rec.Sent(t, p, providertest.Conversation(p.Route("model"), native))
	if receipts != "attachments omittedUnsupported, reasoning omittedOtherRoute" || code != "" {
		t.Errorf("runtime/S15 receipts %q, code %q", receipts, code)
	}
	providertest.SameJSON(t, `{
		"model": "model", "stream": true, "store": false, "prompt_cache_key": "ses_1",
		"instructions": "Be \"brief\" <b>.",
		"tools": [
			{"type": "function", "name": "read", "description": "Reads.", "strict": false,
				"parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
			{"type": "function", "name": "list", "description": "", "strict": false, "parameters": {"type": "object", "properties": {}}}
		],
		"input": [
			{"type": "message", "role": "user", "content": [
				{"type": "input_text", "text": "See → this."},
				{"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AQID"},
				{"type": "input_image", "detail": "auto", "image_url": "https://x.test/a.jpg"},
				{"type": "input_file", "filename": "b.pdf", "file_data": "data:application/pdf;base64,BAUG"},
				{"type": "input_text", "text": "[attachment c.txt]\nnote"},
				{"type": "input_text", "text": "[attachment d.ogg, audio/ogg: this model cannot read it]"}
			]},
			{"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "ZW5j"},
			{"type": "message", "role": "assistant", "content": "I look.", "phase": "commentary"},
			{"type": "function_call", "call_id": "call_c216cab2de2e56d547b4e6340edfc11a", "name": "read", "arguments": "{\"n\":12345678901234567890}"},
			{"type": "function_call", "call_id": "c2", "name": "list", "arguments": "{}"},
			{"type": "function_call_output", "call_id": "call_c216cab2de2e56d547b4e6340edfc11a", "output": [
				{"type": "input_text", "text": "fine\n[attachment r.txt]\nhi"},
				{"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,CQ=="},
				{"type": "input_file", "filename": "r.pdf", "file_data": "data:application/pdf;base64,Cg=="}
			]},
			{"type": "function_call_output", "call_id": "c2", "output": "The call failed. disk gone"},
			{"type": "message", "role": "assistant", "content": "Done."},
			{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "A process ended."}]},
			{"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Plan first."}]},
			{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "It is noon."}]}
		]
	}`, got)
}

func TestOptions(t *testing.T) {
	reasoning := func(effort string) protocol.ModelSpec {
		return protocol.ModelSpec{Effort: effort, Reasoning: &protocol.ReasoningSpec{Efforts: []string{"off", "low", "high"}}}
	}
	tools := []protocol.ToolManifest{{Name: "f", Description: "d", Input: json.RawMessage(`{"type":"object"}`)}}
	const sent = `"tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object","properties":{}},"strict":false}],`
	const include = `"include":["reasoning.encrypted_content"],`
	for _, c := range []struct {
		name     string
		req      provider.Request
		want     string // what the body holds besides the rest
		receipts string
	}{
		{"none", provider.Request{}, ``, ""},
		{
			"all", provider.Request{Options: protocol.GenerationOptions{MaxOutput: 500, Temperature: new(0.5), Seed: new(int64(7)), Stop: []string{"END"}, Verbosity: "low"}},
			`"max_output_tokens":500,"temperature":0.5,"text":{"verbosity":"low"},`,
			"maxOutput applied, temperature applied, seed omittedUnsupported, stop omittedUnsupported, verbosity applied",
		},
		{
			"clamped and pinned", provider.Request{Model: protocol.ModelSpec{OutputLimit: 100, PinnedOptions: true}, Options: protocol.GenerationOptions{MaxOutput: 500, Temperature: new(0.5)}},
			`"max_output_tokens":100,`, "maxOutput clamped, temperature omittedPinned",
		},
		{"effort", provider.Request{Model: reasoning("high")}, include + `"reasoning":{"effort":"high","summary":"auto"},`, "effort applied"},
		{"effort off", provider.Request{Model: reasoning("off")}, include + `"reasoning":{"effort":"none","summary":"auto"},`, "effort applied"},
		{"the model's own effort", provider.Request{Model: reasoning("")}, include + `"reasoning":{"summary":"auto"},`, ""},
		{"no tools", provider.Request{Tools: tools, Choice: provider.ToolsNone}, sent + `"tool_choice":"none",`, ""},
		{"required tools", provider.Request{Tools: tools, Choice: provider.ToolsRequired}, sent + `"tool_choice":"required",`, ""},
		{"a choice without tools", provider.Request{Choice: provider.ToolsRequired}, ``, ""},
		{
			"a schema with verbosity", provider.Request{Output: provider.OutputSpec{Schema: json.RawMessage(`{"type":"object"}`)}, Options: protocol.GenerationOptions{Verbosity: "high"}},
			`"text":{"verbosity":"high","format":{"type":"json_schema","name":"answer","schema":{"type":"object"}}},`, "verbosity applied",
		},
		{"JSON without a schema", provider.Request{Output: provider.OutputSpec{JSON: true}}, `"text":{"format":{"type":"json_object"}},`, ""},
	} {
		t.Run("runtime/M08 "+c.name, func(t *testing.T) {
			rec, p := record(t)
			c.req.Messages = providertest.Request().Messages
			c.req.Model.ID = "model"
			got, receipts, code := rec.Sent(t, p, &c.req)
			providertest.SameJSON(t, `{"model":"model",`+c.want+`"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}],"store":false,"stream":true}`, got)
			if receipts != c.receipts || code != "" {
				t.Errorf("receipts %q, code %q; want %q", receipts, code, c.receipts)
			}
		})
	}
}

func TestEffortIsCheckedBeforeTheCall(t *testing.T) {
	providertest.Efforts(t, func(t *testing.T) (*providertest.Recorder, provider.Provider) { return record(t) })
}

func TestNotes(t *testing.T) {
	providertest.Notes(t, func(t *testing.T) (*providertest.Recorder, provider.Provider) { return record(t) })
}
