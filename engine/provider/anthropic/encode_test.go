package anthropic_test

import (
	"encoding/json"
	"testing"

	"lashd/engine/provider"
	"lashd/engine/provider/anthropic"
	"lashd/engine/provider/providertest"
	"lashd/rpc/protocol"
)

const done = `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n"

func record(t *testing.T) (*providertest.Recorder, *anthropic.Provider) {
	rec := providertest.Record(t, done)
	return rec, anthropic.New(anthropic.Config{BaseURL: rec.URL, HTTPClient: rec.Client})
}

func TestRequestBody(t *testing.T) {
	rec, p := record(t)
	native := json.RawMessage(`{"type":"thinking","thinking":"Hm.","signature":"c2ln"}`)
	got, receipts, code := rec.Sent(t, p, providertest.Conversation(p.Route("model"), native))
	if receipts != "attachments omittedUnsupported, reasoning omittedOtherRoute" || code != "" {
		t.Errorf("runtime/S15 receipts %q, code %q", receipts, code)
	}
	providertest.SameJSON(t, `{
		"model": "model", "max_tokens": 16384, "stream": true,
		"tools": [
			{"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
			{"name": "list", "description": "", "input_schema": {"type": "object", "properties": {}}, "cache_control": {"type": "ephemeral"}}
		],
		"system": [{"type": "text", "text": "Be \"brief\" <b>.", "cache_control": {"type": "ephemeral"}}],
		"messages": [
			{"role": "user", "content": [
				{"type": "text", "text": "See → this."},
				{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AQID"}},
				{"type": "image", "source": {"type": "url", "url": "https://x.test/a.jpg"}},
				{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "BAUG"}},
				{"type": "text", "text": "[attachment c.txt]\nnote"},
				{"type": "text", "text": "[attachment d.ogg, audio/ogg: this model cannot read it]"}
			]},
			{"role": "assistant", "content": [
				{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
				{"type": "text", "text": "I look."},
				{"type": "tool_use", "id": "call_c216cab2de2e56d547b4e6340edfc11a", "name": "read", "input": {"n": 12345678901234567890}},
				{"type": "tool_use", "id": "c2", "name": "list", "input": {}}
			]},
			{"role": "user", "content": [
				{"type": "tool_result", "tool_use_id": "call_c216cab2de2e56d547b4e6340edfc11a", "content": [
					{"type": "text", "text": "fine\n[attachment r.txt]\nhi"},
					{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "CQ=="}},
					{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "Cg=="}}
				]},
				{"type": "tool_result", "tool_use_id": "c2", "content": "The call failed. disk gone", "is_error": true}
			]},
			{"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
			{"role": "user", "content": [{"type": "text", "text": "A process ended.", "cache_control": {"type": "ephemeral"}}]},
			{"role": "user", "content": [{"type": "text", "text": "Plan first.", "cache_control": {"type": "ephemeral"}}]},
			{"role": "user", "content": [{"type": "text", "text": "It is noon."}]}
		]
	}`, got)
}

// reasoning returns the settings of a model whose effort is sent by name or as a budget.
func reasoning(effort string, encoding protocol.ReasoningEncoding) protocol.ModelSpec {
	return protocol.ModelSpec{Effort: effort, Reasoning: &protocol.ReasoningSpec{Efforts: []string{"off", "low", "high"}, Encoding: encoding}}
}

func TestOptions(t *testing.T) {
	schema := provider.OutputSpec{Schema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)}
	limited := reasoning("high", protocol.EncodeBudget)
	limited.OutputLimit = 10_000
	tools := []protocol.ToolManifest{{Name: "f", Description: "d", Input: json.RawMessage(`{"type":"object"}`)}}
	const sent = `"tools":[{"name":"f","description":"d","input_schema":{"type":"object","properties":{}},"cache_control":{"type":"ephemeral"}}]`
	for _, c := range []struct {
		name     string
		req      provider.Request
		want     string // what the body holds besides the rest
		receipts string
	}{
		{"none", provider.Request{}, `"max_tokens":16384`, ""},
		{
			"all", provider.Request{Options: protocol.GenerationOptions{MaxOutput: 500, Temperature: new(0.5), Seed: new(int64(7)), Stop: []string{"END", "\n"}, Verbosity: "low"}},
			`"max_tokens":500,"temperature":0.5,"stop_sequences":["END"]`,
			"maxOutput applied, temperature applied, seed omittedUnsupported, verbosity omittedUnsupported, stop omittedUnsupported",
		},
		{
			"clamped", provider.Request{Model: protocol.ModelSpec{OutputLimit: 100}, Options: protocol.GenerationOptions{MaxOutput: 500, Temperature: new(1.5)}},
			`"max_tokens":100,"temperature":1`, "maxOutput clamped, temperature clamped",
		},
		{"the model's own limit", provider.Request{Model: protocol.ModelSpec{OutputLimit: 64_000}}, `"max_tokens":64000`, ""},
		{
			"pinned sampling", provider.Request{Model: protocol.ModelSpec{PinnedOptions: true}, Options: protocol.GenerationOptions{Temperature: new(0.5)}},
			`"max_tokens":16384`, "temperature omittedPinned",
		},
		{
			"effort, which excludes a temperature", provider.Request{Model: reasoning("high", ""), Options: protocol.GenerationOptions{Temperature: new(0.5)}},
			`"max_tokens":16384,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"}`, "temperature omittedPinned, effort applied",
		},
		{
			"effort off", provider.Request{Model: reasoning("off", ""), Options: protocol.GenerationOptions{Temperature: new(0.5)}},
			`"max_tokens":16384,"temperature":0.5,"thinking":{"type":"disabled"}`, "temperature applied, effort applied",
		},
		{
			"budget, with room for the answer", provider.Request{Model: reasoning("high", protocol.EncodeBudget)},
			`"max_tokens":32768,"thinking":{"type":"enabled","display":"summarized","budget_tokens":24576}`, "effort applied",
		},
		{
			"budget within the model's limit", provider.Request{Model: limited},
			`"max_tokens":10000,"thinking":{"type":"enabled","display":"summarized","budget_tokens":5000}`, "effort applied",
		},
		{
			"budget that does not fit", provider.Request{Model: reasoning("low", protocol.EncodeBudget), Options: protocol.GenerationOptions{MaxOutput: 1_500}},
			`"max_tokens":1500,"thinking":{"type":"disabled"}`, "maxOutput applied, effort omittedUnsupported",
		},
		{"no tools", provider.Request{Tools: tools, Choice: provider.ToolsNone}, `"max_tokens":16384,"tool_choice":{"type":"none"},` + sent, ""},
		{
			"required tools, which exclude thinking", provider.Request{Tools: tools, Choice: provider.ToolsRequired, Model: reasoning("high", "")},
			`"max_tokens":16384,"thinking":{"type":"disabled"},"tool_choice":{"type":"any"},` + sent, "effort omittedUnsupported",
		},
		{"a choice without tools", provider.Request{Choice: provider.ToolsRequired}, `"max_tokens":16384`, ""},
		{
			"a schema with effort", provider.Request{Output: schema, Model: reasoning("low", "")},
			`"max_tokens":16384,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object","properties":{},"additionalProperties":false}}}`,
			"effort applied",
		},
		{
			"a schema that the API would reject", provider.Request{Output: provider.OutputSpec{JSON: true, Schema: json.RawMessage(`{"type":"object"}`)}, Model: reasoning("low", "")},
			`"max_tokens":16384,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low"}`,
			"effort applied, output omittedUnsupported",
		},
		{"JSON without a schema", provider.Request{Output: provider.OutputSpec{JSON: true}}, `"max_tokens":16384`, "output omittedUnsupported"},
	} {
		t.Run("runtime/M08 "+c.name, func(t *testing.T) {
			rec, p := record(t)
			c.req.Messages = providertest.Request().Messages
			c.req.Model.ID = "model"
			got, receipts, code := rec.Sent(t, p, &c.req)
			providertest.SameJSON(t, `{"model":"model","messages":[{"role":"user","content":[{"type":"text","text":"hello","cache_control":{"type":"ephemeral"}}]}],"stream":true,`+c.want+`}`, got)
			if receipts != c.receipts || code != "" {
				t.Errorf("receipts %q, code %q; want %q", receipts, code, c.receipts)
			}
		})
	}
}

func TestEffortIsCheckedBeforeTheCall(t *testing.T) {
	providertest.Efforts(t, func(t *testing.T) (*providertest.Recorder, provider.Provider) { return record(t) })
}

// TestThinkingInATurn has a turn whose last reply called a tool without thinking of this route: with a budget the API wants thinking
// before the call.
func TestThinkingInATurn(t *testing.T) {
	for _, c := range []struct {
		name, route, thinking string
		more                  *protocol.Message // after the results
	}{
		{"thought of this route goes on", "", `{"type":"enabled","display":"summarized","budget_tokens":2048}`, nil},
		{"thought of another route does not", "elsewhere", `{"type":"disabled"}`, nil},
		{
			"thought of another route does not, whatever lashd adds for the moment", "elsewhere", `{"type":"disabled"}`,
			&protocol.Message{Role: protocol.RoleUser, Origin: &protocol.Origin{Transient: true}, Parts: []protocol.Part{{Kind: protocol.PartText, Text: "It is noon."}}},
		},
		{
			"a new input begins with thought", "elsewhere", `{"type":"enabled","display":"summarized","budget_tokens":2048}`,
			&protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: "And now?"}}},
		},
		{
			"a reply without calls begins with thought", "elsewhere", `{"type":"enabled","display":"summarized","budget_tokens":2048}`,
			&protocol.Message{Role: protocol.RoleAssistant, Parts: []protocol.Part{{Kind: protocol.PartProse, Text: "So."}}},
		},
	} {
		t.Run("runtime/M04 "+c.name, func(t *testing.T) {
			rec, p := record(t)
			route := p.Route("model")
			if c.route != "" {
				route = c.route
			}
			req := providertest.Conversation(route, json.RawMessage(`{"type":"thinking","thinking":"Hm.","signature":"c2ln"}`))
			req.Messages = req.Messages[:3:3]
			if c.more != nil {
				req.Messages = append(req.Messages, c.more)
			}
			req.Model.Effort, req.Model.Reasoning = "low", &protocol.ReasoningSpec{Efforts: []string{"low"}, Encoding: protocol.EncodeBudget}
			body, _, _ := rec.Sent(t, p, req)
			var got struct{ Thinking json.RawMessage }
			if err := json.Unmarshal([]byte(body), &got); err != nil || string(got.Thinking) != c.thinking {
				t.Errorf("thinking %s, error %v; want %s", got.Thinking, err, c.thinking)
			}
		})
	}
}

func TestCacheRetention(t *testing.T) {
	for retention, want := range map[protocol.CacheRetention]string{
		"":                  `{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}`,
		protocol.CacheShort: `{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}`,
		protocol.CacheLong:  `{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral","ttl":"1h"}}`,
		protocol.CacheNone:  `{"type":"text","text":"Be brief."}`,
	} {
		t.Run("runtime/S13 "+string(retention), func(t *testing.T) {
			rec, p := record(t)
			req := providertest.Request()
			req.Model.Cache = retention
			body, _, _ := rec.Sent(t, p, req)
			var got struct{ System []json.RawMessage }
			if err := json.Unmarshal([]byte(body), &got); err != nil || len(got.System) != 1 || string(got.System[0]) != want {
				t.Errorf("system %s, error %v; want %s", got.System, err, want)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	providertest.Notes(t, func(t *testing.T) (*providertest.Recorder, provider.Provider) { return record(t) })
}
