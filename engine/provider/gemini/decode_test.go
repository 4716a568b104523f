package gemini_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/provider"
	"lashd/engine/provider/gemini"
	"lashd/engine/provider/providertest"
	"lashd/rpc/protocol"
)

// read returns what events add up to, with X in place of the route.
func read(t *testing.T, events ...string) (provider.Reply, *provider.Error) {
	t.Helper()
	var answer strings.Builder
	for _, e := range events {
		answer.WriteString("data: " + e + "\r\n\r\n")
	}
	rec := providertest.Record(t, answer.String())
	p := gemini.New(gemini.Config{BaseURL: rec.URL, HTTPClient: rec.Client})
	var c provider.Collector
	var failure *provider.Error
	for chunk, err := range p.Stream(t.Context(), providertest.Request()) {
		if err != nil {
			failure, _ = errors.AsType[*provider.Error](err)
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
	return reply, failure
}

func parts(list, more string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[` + list + `]}` + more + `}]}`
}

func TestParts(t *testing.T) {
	signed := json.RawMessage(`{"thoughtSignature":"c2ln"}`)
	call := func(id protocol.CallID) *protocol.ToolCall {
		return &protocol.ToolCall{CallID: id, Name: "f", Args: json.RawMessage(`{}`)}
	}
	for _, c := range []struct {
		name, list string
		want       []protocol.Part
	}{
		{
			"only the first of parallel calls is signed, and one has no id",
			`{"functionCall":{"id":"c","name":"f","args":{}},"thoughtSignature":"c2ln"},{"functionCall":{"name":"f"}}`,
			[]protocol.Part{{Kind: protocol.PartToolCall, Call: call("c"), Replay: signed, Route: "X"}, {Kind: protocol.PartToolCall, Call: call("")}},
		},
		{
			"a signature alone before any text", `{"text":"","thoughtSignature":"c2ln"},{"text":"a"}`,
			[]protocol.Part{{Kind: protocol.PartReasoning, Replay: signed, Route: "X"}, {Kind: protocol.PartProse, Text: "a"}},
		},
		{
			"a signature alone after a call", `{"functionCall":{"id":"c","name":"f","args":{}},"thoughtSignature":"c2ln"},{"text":"","thoughtSignature":"b3RoZXI="}`,
			[]protocol.Part{
				{Kind: protocol.PartToolCall, Call: call("c"), Replay: signed, Route: "X"},
				{Kind: protocol.PartReasoning, Replay: json.RawMessage(`{"thoughtSignature":"b3RoZXI="}`), Route: "X"},
			},
		},
		{
			"a thought may be signed", `{"text":"hm","thought":true,"thoughtSignature":"c2ln"},{"text":"a"}`,
			[]protocol.Part{{Kind: protocol.PartReasoning, Text: "hm", Replay: signed, Route: "X"}, {Kind: protocol.PartProse, Text: "a"}},
		},
		{
			"a call between a text and a signature keeps them apart", `{"text":"a"},{"functionCall":{"id":"c","name":"f","args":{}}},{"text":"","thoughtSignature":"c2ln"}`,
			[]protocol.Part{{Kind: protocol.PartProse, Text: "a"}, {Kind: protocol.PartToolCall, Call: call("c")}, {Kind: protocol.PartReasoning, Replay: signed, Route: "X"}},
		},
		{
			"a second signature is not that of the text before", `{"text":"a","thoughtSignature":"c2ln"},{"text":"","thoughtSignature":"c2ln"}`,
			[]protocol.Part{{Kind: protocol.PartProse, Text: "a", Replay: signed, Route: "X"}, {Kind: protocol.PartReasoning, Replay: signed, Route: "X"}},
		},
		{
			"two signed texts stay two", `{"text":"a","thoughtSignature":"c2ln"},{"text":"b","thoughtSignature":"c2ln"}`,
			[]protocol.Part{{Kind: protocol.PartProse, Text: "a", Replay: signed, Route: "X"}, {Kind: protocol.PartProse, Text: "b", Replay: signed, Route: "X"}},
		},
	} {
		t.Run("runtime/M05 "+c.name, func(t *testing.T) {
			reply, err := read(t, parts(c.list, `,"finishReason":"STOP"`))
			if d := cmp.Diff(c.want, reply.Parts); d != "" || err != nil {
				t.Errorf("error %v, parts (-want +got):\n%s", err, d)
			}
		})
	}
}

// TestEndings has each way in which an answer ends.
func TestEndings(t *testing.T) {
	for _, c := range []struct {
		name, event string
		stop        protocol.StopReason
		code        string
		retryable   bool
	}{
		{"a blocked prompt", `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}`, protocol.StopContentFilter, "", false},
		{"news of a prompt that is not blocked", `{"promptFeedback":{"blockReason":"OTHER"},"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`, "", "ended_without_evidence", true},
		{"a recitation", parts("", `,"finishReason":"RECITATION"`), protocol.StopContentFilter, "", false},
		{"a call that cannot be read", parts("", `,"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"no"`), "", "MALFORMED_FUNCTION_CALL", true},
		{"a reason that is not given", parts(`{"text":"a"}`, `,"finishReason":"FINISH_REASON_UNSPECIFIED"`), "", "ended_without_evidence", true},
		{"another candidate's end", `{"candidates":[{"index":1,"finishReason":"STOP"}]}`, "", "ended_without_evidence", true},
		{"a quota inside the answer", `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"no"}}`, "", "RESOURCE_EXHAUSTED", true},
	} {
		t.Run("runtime/M10 "+c.name, func(t *testing.T) {
			reply, err := read(t, c.event)
			code, retryable := "", false
			if err != nil {
				code, retryable = err.Code, err.Retryable
			}
			if reply.Stop != c.stop || code != c.code || retryable != c.retryable {
				t.Errorf("stop %q, error %q, retryable %v; want %q, %q, %v", reply.Stop, code, retryable, c.stop, c.code, c.retryable)
			}
		})
	}
}

// TestUsage has tokens of tool results, which are input, and of thoughts, which are output.
func TestUsage(t *testing.T) {
	reply, err := read(t, parts("", `,"finishReason":"STOP"`),
		`{"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":30,"toolUsePromptTokenCount":5,"candidatesTokenCount":7,"thoughtsTokenCount":2}}`)
	if want := (protocol.Usage{Input: 75, Output: 9, CacheRead: 30, Reasoning: 2}); err != nil || reply.Usage == nil || *reply.Usage != want {
		t.Errorf("runtime/M05 usage %+v, error %v; want %+v", reply.Usage, err, want)
	}
}
