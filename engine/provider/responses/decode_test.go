package responses_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/provider"
	"lashd/engine/provider/endpoint"
	"lashd/engine/provider/providertest"
	"lashd/engine/provider/responses"
	"lashd/rpc/protocol"
)

// read returns what a stream of events adds up to, with X in place of the route, and the code of its error.
func read(t *testing.T, events string) (provider.Reply, string) {
	t.Helper()
	rec := providertest.Record(t, events)
	p := responses.New(responses.Config{Config: endpoint.Config{BaseURL: rec.URL, HTTPClient: rec.Client}})
	var c provider.Collector
	code := ""
	for chunk, err := range p.Stream(t.Context(), providertest.Request()) {
		if failure, ok := err.(*provider.Error); ok {
			code = failure.Code
			continue
		}
		c.Add(&chunk)
	}
	reply := c.Reply()
	for i := range reply.Parts {
		if reply.Parts[i].Route == p.Route("model") {
			reply.Parts[i].Route = "X"
		}
	}
	return reply, code
}

func item(index int, item string) string {
	return fmt.Sprintf(`data: {"type":"response.output_item.done","output_index":%d,"item":%s}`+"\n\n", index, item)
}

func delta(kind string, index int, text string) string {
	return fmt.Sprintf(`data: {"type":"response.%s.delta","output_index":%d,"delta":%q}`+"\n\n", kind, index, text)
}

func TestItems(t *testing.T) {
	const native = `{"id":"rs","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"ZW5j"}`
	const bare = `{"id":"rs","type":"reasoning","summary":[],"encrypted_content":"ZW5j"}`
	hidden := func(native string) protocol.Part {
		return protocol.Part{Kind: protocol.PartReasoning, Replay: json.RawMessage(native), Route: "X"}
	}
	for _, c := range []struct {
		name, events string
		want         []protocol.Part
	}{
		{"reasoning without a summary is kept without a text", item(0, bare), []protocol.Part{hidden(bare)}},
		{
			"a summary without deltas is shown", item(0, native),
			[]protocol.Part{{Kind: protocol.PartReasoning, Text: "hm", Replay: json.RawMessage(native), Route: "X"}},
		},
		{
			"reasoning that is not encrypted does not go back", delta("reasoning_summary_text", 0, "hm") + item(0, `{"type":"reasoning","summary":[{"text":"hm"}]}`),
			[]protocol.Part{{Kind: protocol.PartReasoning, Text: "hm"}},
		},
		{
			"the parts of a summary are apart, with deltas and without", `data: {"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"a"}` + "\n\n" +
				`data: {"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"b"}` + "\n\n" + item(0, `{"type":"reasoning"}`) +
				delta("output_text", 1, "-") + item(2, `{"type":"reasoning","summary":[{"text":"c"},{"text":"d"}]}`),
			[]protocol.Part{{Kind: protocol.PartReasoning, Text: "a\n\nb"}, {Kind: protocol.PartProse, Text: "-"}, {Kind: protocol.PartReasoning, Text: "c\n\nd"}},
		},
		{
			"reasoning around a call is not that call's", delta("reasoning_summary_text", 0, "hm") + item(1, `{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`) + item(0, native),
			[]protocol.Part{
				{Kind: protocol.PartReasoning, Text: "hm"},
				{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: "c", Name: "f", Args: json.RawMessage("{}")}}, hidden(native),
			},
		},
		{
			"reasoning around hidden reasoning keeps both", delta("reasoning_summary_text", 0, "hm") + item(1, bare) + item(0, native),
			[]protocol.Part{{Kind: protocol.PartReasoning, Text: "hm"}, hidden(bare), hidden(native)},
		},
		{
			"commentary without deltas is commentary", item(0, `{"type":"message","phase":"commentary","content":[{"type":"output_text","text":"a"}]}`),
			[]protocol.Part{{Kind: protocol.PartCommentary, Text: "a"}},
		},
		{
			"reasoning that overlaps a text is not that text's", delta("reasoning_summary_text", 0, "hm") + delta("output_text", 1, "a") + item(0, native),
			[]protocol.Part{{Kind: protocol.PartReasoning, Text: "hm"}, {Kind: protocol.PartProse, Text: "a"}, hidden(native)},
		},
		{
			"a message without deltas is shown, a refusal too",
			item(0, `{"type":"message","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"b"}]}`),
			[]protocol.Part{{Kind: protocol.PartProse, Text: "ab"}},
		},
		{
			"commentary is recognized by its item",
			`data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message","phase":"commentary"}}` + "\n\n" + delta("output_text", 0, "a") + delta("output_text", 1, "b"),
			[]protocol.Part{{Kind: protocol.PartCommentary, Text: "a"}, {Kind: protocol.PartProse, Text: "b"}},
		},
		{"a call that did not end is left out", `data: {"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"f"}}` + "\n\n", nil},
	} {
		t.Run("runtime/M03 "+c.name, func(t *testing.T) {
			reply, code := read(t, c.events+done)
			if d := cmp.Diff(c.want, reply.Parts); d != "" || code != "" {
				t.Errorf("error %q, parts (-want +got):\n%s", code, d)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for events, want := range map[string]protocol.StopReason{
		delta("refusal", 0, "I can") + delta("refusal", 0, "not."):                          protocol.StopContentFilter,
		item(0, `{"type":"message","content":[{"type":"refusal","refusal":"I cannot."}]}`):  protocol.StopContentFilter,
		item(0, `{"type":"message","content":[{"type":"output_text","text":"I cannot."}]}`): protocol.StopEnd,
	} {
		t.Run("part9/structured a refusal is shown, and counts as filtered: "+string(want), func(t *testing.T) {
			reply, code := read(t, events+done)
			if msg := reply.Message(); reply.Stop != want || msg.Answer() != "I cannot." || code != "" {
				t.Errorf("stop %s, want %s; text %q, error %q", reply.Stop, want, msg.Answer(), code)
			}
		})
	}
}

// TestOpenItems has deltas of ever more items, none of which ends and none of which has a text.
func TestOpenItems(t *testing.T) {
	var events strings.Builder
	for i := range 300 {
		events.WriteString(delta("output_text", i, ""))
	}
	if _, code := read(t, events.String()+done); code != "too_many_calls" {
		t.Errorf("runtime/M02 error %q after 300 open items, want too_many_calls", code)
	}
}

// TestEvents has errors in the forms that servers send them, and usage of both.
func TestEvents(t *testing.T) {
	const usage = `"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":30,"cache_write_tokens":20},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":4}}`
	counted := &protocol.Usage{Input: 50, Output: 9, CacheRead: 30, CacheWrite: 20, Reasoning: 4}
	for _, c := range []struct {
		name, event string
		code        string
		usage       *protocol.Usage
	}{
		{"completed", `{"type":"response.completed","response":{` + usage + `}}`, "", counted},
		{"failed", `{"type":"response.failed","response":{` + usage + `,"error":{"code":"server_error","message":"no"}}}`, "server_error", counted},
		{"failed without a reason", `{"type":"response.failed","response":{"error":null}}`, "server_error", nil},
		{"an end that is no evidence", `[DONE]`, "ended_without_evidence", nil},
		{"a flat error", `{"type":"error","code":"rate_limit_exceeded","message":"no","param":null,"sequence_number":3}`, "rate_limit_exceeded", nil},
		{"a flat error with a number", `{"type":"error","code":429,"message":"no"}`, "too_many_requests", nil},
		{"a nested error", `{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"no"}}`, "context_length_exceeded", nil},
		{"an error without a type", `{"error":{"message":"no","code":"invalid_prompt"}}`, "invalid_prompt", nil},
	} {
		t.Run("runtime/M03 "+c.name, func(t *testing.T) {
			reply, code := read(t, "data: "+c.event+"\n\n")
			if d := cmp.Diff(c.usage, reply.Usage); d != "" || code != c.code {
				t.Errorf("error %q, want %q; usage (-want +got):\n%s", code, c.code, d)
			}
		})
	}
}
