package anthropic_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/provider"
	"lashd/engine/provider/anthropic"
	"lashd/engine/provider/providertest"
	"lashd/rpc/protocol"
)

// read returns what a stream of events adds up to, with X in place of the route.
func read(t *testing.T, events string) provider.Reply {
	t.Helper()
	rec := providertest.Record(t, events)
	p := anthropic.New(anthropic.Config{BaseURL: rec.URL, HTTPClient: rec.Client})
	var c provider.Collector
	for chunk, err := range p.Stream(t.Context(), providertest.Request()) {
		if err != nil {
			t.Fatal(err)
		}
		c.Add(&chunk)
	}
	reply := c.Reply()
	for i := range reply.Parts {
		if reply.Parts[i].Route == p.Route("model") {
			reply.Parts[i].Route = "X"
		}
	}
	return reply
}

func start(index, block string) string {
	return `data: {"type":"content_block_start","index":` + index + `,"content_block":` + block + "}\n\n"
}

func delta(index, delta string) string {
	return `data: {"type":"content_block_delta","index":` + index + `,"delta":` + delta + "}\n\n"
}

func stop(index string) string {
	return `data: {"type":"content_block_stop","index":` + index + "}\n\n"
}

func TestBlocks(t *testing.T) {
	const thinking, text = `{"type":"thinking","thinking":"","signature":""}`, `{"type":"text","text":""}`
	const hm, signed = `{"type":"thinking_delta","thinking":"hm"}`, `{"type":"signature_delta","signature":"c2ln"}`
	native := json.RawMessage(`{"type":"thinking","thinking":"hm","signature":"c2ln"}`)
	redacted := json.RawMessage(`{"type":"redacted_thinking","data":"eA=="}`)
	hidden := func(native json.RawMessage) protocol.Part {
		return protocol.Part{Kind: protocol.PartReasoning, Replay: native, Route: "X"}
	}
	said := protocol.Part{Kind: protocol.PartProse, Text: "a"}
	for _, c := range []struct {
		name, events string
		want         []protocol.Part
	}{
		{
			"redacted thinking is kept without a text", start("0", string(redacted)) + stop("0") + start("1", text) + delta("1", `{"type":"text_delta","text":"a"}`) + stop("1"),
			[]protocol.Part{hidden(redacted), said},
		},
		{
			"thinking that is not shown keeps its signature", start("0", thinking) + delta("0", signed) + stop("0"),
			[]protocol.Part{hidden(json.RawMessage(`{"type":"thinking","thinking":"","signature":"c2ln"}`))},
		},
		{
			"two thoughts in a row keep both signatures",
			start("0", thinking) + delta("0", hm) + delta("0", signed) + stop("0") + start("1", thinking) + delta("1", hm) + delta("1", signed) + stop("1"),
			[]protocol.Part{{Kind: protocol.PartReasoning, Text: "hm", Replay: native, Route: "X"}, {Kind: protocol.PartReasoning, Text: "hm", Replay: native, Route: "X"}},
		},
		{
			"a thought that overlaps a text is not that text's",
			start("0", thinking) + delta("0", hm) + start("1", text) + delta("1", `{"type":"text_delta","text":"a"}`) + delta("0", signed) + stop("0") + stop("1"),
			[]protocol.Part{{Kind: protocol.PartReasoning, Text: "hm"}, said, hidden(native)},
		},
		{
			"a thought that overlaps a call is not that call's",
			start("0", thinking) + delta("0", hm) + start("1", `{"type":"tool_use","id":"c","name":"f","input":{"a":1}}`) + stop("1") + delta("0", signed) + stop("0"),
			[]protocol.Part{
				{Kind: protocol.PartReasoning, Text: "hm"},
				{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: "c", Name: "f", Args: json.RawMessage(`{"a":1}`)}},
				hidden(native),
			},
		},
		{
			"a thought that overlaps a redacted one keeps both",
			start("0", thinking) + delta("0", hm) + start("1", string(redacted)) + stop("1") + delta("0", signed) + stop("0"),
			[]protocol.Part{{Kind: protocol.PartReasoning, Text: "hm"}, hidden(redacted), hidden(native)},
		},
		{
			"blocks may begin with a text or a thought", start("0", `{"type":"thinking","thinking":"h","signature":""}`) + delta("0", `{"type":"thinking_delta","thinking":"m"}`) + delta("0", signed) + stop("0") +
				start("1", `{"type":"text","text":"a"}`) + stop("1"),
			[]protocol.Part{{Kind: protocol.PartReasoning, Text: "hm", Replay: native, Route: "X"}, said},
		},
		{"a call that did not end is left out", start("0", `{"type":"tool_use","id":"c","name":"f","input":{}}`) + delta("0", `{"type":"input_json_delta","partial_json":"{"}`), nil},
	} {
		t.Run("runtime/M04 "+c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, read(t, c.events+done).Parts); d != "" {
				t.Errorf("parts (-want +got):\n%s", d)
			}
		})
	}
}

// TestUsage has counts that come in two events: a later count replaces an earlier one, and one that is missing changes nothing.
func TestUsage(t *testing.T) {
	reply := read(t, `data: {"type":"message_start","message":{"usage":{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":30,"output_tokens":1}}}`+"\n\n"+
		`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":11,"output_tokens":5,"output_tokens_details":{"thinking_tokens":4}}}`+"\n\n"+
		`data: {"type":"message_stop"}`+"\n\n")
	if want := (protocol.Usage{Input: 11, Output: 5, CacheRead: 30, CacheWrite: 20, Reasoning: 4}); reply.Usage == nil || *reply.Usage != want {
		t.Errorf("runtime/M04 usage %+v, want %+v", reply.Usage, want)
	}
}

// TestOpenBlocks has ever more blocks, none of which ends.
func TestOpenBlocks(t *testing.T) {
	var events strings.Builder
	for i := range 300 {
		events.WriteString(start(strconv.Itoa(i), `{"type":"text","text":""}`))
	}
	rec := providertest.Record(t, events.String()+done)
	_, _, code := rec.Sent(t, anthropic.New(anthropic.Config{BaseURL: rec.URL, HTTPClient: rec.Client}), providertest.Request())
	if code != "too_many_calls" {
		t.Errorf("runtime/M02 error %q after 300 open blocks, want too_many_calls", code)
	}
}
