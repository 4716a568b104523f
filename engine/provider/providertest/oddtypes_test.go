package providertest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/provider"
	"lashd/engine/provider/endpoint"
	"lashd/engine/provider/providertest"
	"lashd/rpc/protocol"
)

// odd are streams whose optional members, and members of kinds that lashd does not read, have types that the API does not have. Each is a
// reply with the text "Hello" and one call.
var odd = map[string]string{
	"chatcompletions": `{"id":5,"model":[],"service_tier":{},"system_fingerprint":1,"choices":[{"index":0,"delta":{"content":"Hello","reasoning":{"a":1},"reasoning_content":[],"refusal":7},"logprobs":"x"}],"usage":"none"}
{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":7,"type":[],"function":{"name":"read","arguments":"{}"}}]}}],"usage":[]}
{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":12,"completion_tokens":{"a":1},"prompt_tokens_details":7,"completion_tokens_details":"x","total_tokens":[]}}`,
	"responses": `{"type":"response.created","response":{"id":5,"model":[],"service_tier":{},"usage":"none","output":{}},"sequence_number":"x"}
{"type":"response.mcp_call_arguments.delta","output_index":"x","delta":{"a":1},"item":7}
{"type":"response.audio.delta","delta":[1]}
{"type":"response.output_item.done","output_index":0,"item":{"type":"tool_search_call","arguments":{"q":1},"name":5,"content":"x","summary":{}}}
{"type":"response.output_item.done","output_index":1,"item":{"type":"reasoning","summary":[],"encrypted_content":{"a":1}}}
{"type":"response.output_item.added","output_index":2,"item":{"type":"message","phase":7,"content":[]}}
{"type":"response.output_text.delta","output_index":2,"delta":"Hello","logprobs":"x","summary_index":"y","item_id":7}
{"type":"response.output_item.done","output_index":3,"item":{"type":"function_call","call_id":"c1","name":"read","arguments":"{}","phase":[],"status":5}}
{"type":"response.completed","response":{"usage":{"input_tokens":12,"output_tokens":"x","input_tokens_details":7,"output_tokens_details":[]}}}`,
	"anthropic": `{"type":"message_start","message":{"id":5,"model":[],"content":"x","usage":7}}
{"type":"news","index":"x","delta":7,"message":[],"usage":"y","content_block":[]}
{"type":"content_block_start","index":0,"content_block":{"type":"web_search_tool_result","text":{"a":1},"id":7,"name":[],"thinking":5,"signature":{}}}
{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","text":{"a":1},"thinking":7,"stop_reason":[]}}
{"type":"content_block_stop","index":0}
{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"","citations":"x"}}
{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hello","signature":7}}
{"type":"content_block_stop","index":1}
{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"c1","name":"read","input":{},"caller":7}}
{"type":"content_block_stop","index":2}
{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":7},"usage":{"input_tokens":12,"output_tokens":{},"output_tokens_details":"x","service_tier":5}}
{"type":"message_stop","more":[]}`,
	"gemini": `{"candidates":[{"content":{"parts":[{"text":"Hello","thoughtSignature":{"a":1},"videoMetadata":7}],"role":5},"safetyRatings":"x"}],"usageMetadata":"x","modelVersion":[],"responseId":5,"promptFeedback":"x"}
{"candidates":[{"content":{"parts":[{"functionCall":{"id":7,"name":"read","args":{}}},{"executableCode":[]}]},"finishReason":"STOP","finishMessage":{"a":1}}],"promptFeedback":"x","usageMetadata":{"promptTokenCount":12,"candidatesTokenCount":{},"thoughtsTokenCount":"x"}}`,
}

// events writes lines of JSON as an event stream.
func events(lines string) string {
	return "data: " + strings.ReplaceAll(lines, "\n", "\n\ndata: ") + "\n\n"
}

// whole answers with a complete stream of these lines.
func whole(lines string) http.HandlerFunc {
	return replay([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + events(lines)))
}

func TestOddTypes(t *testing.T) {
	over(t, func(t *testing.T, d *dialect) {
		t.Run("runtime/M01 members that a reply can do without may have any type", func(t *testing.T) {
			reply, err := ask(t.Context(), t, d.serve(t, endpoint.Config{}, whole(odd[d.name])), providertest.Request())
			if err != nil {
				t.Fatal(err)
			}
			id := protocol.CallID("c1")
			if d.name == "chatcompletions" || d.name == "gemini" {
				id = "" // theirs is a number; the engine makes one
			}
			want := provider.Reply{
				Parts: []protocol.Part{
					{Kind: protocol.PartProse, Text: "Hello"},
					{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: id, Name: "read", Args: json.RawMessage("{}")}},
				},
				Stop: protocol.StopToolUse, Usage: &protocol.Usage{Input: 12}, Streamed: true,
			}
			if diff := cmp.Diff(want, reply); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
		})
	})
}

// needed are events with a member of another type that the reply cannot do without.
var needed = map[string]string{
	"chatcompletions": `{"choices":"x"}
{"choices":[{"delta":"x"}]}
{"choices":[{"index":"0","delta":{"content":"Hello"}}]}
{"choices":[{"delta":{"content":7}}]}
{"choices":[{"delta":{"tool_calls":{"index":0}}}]}
{"choices":[{"delta":{"tool_calls":[{"index":"0","function":{"name":"read"}}]}}]}
{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":7}}]}}]}
{"choices":[{"delta":{},"finish_reason":{"a":1}}]}`,
	"responses": `{"type":7}
{"type":"response.output_text.delta","output_index":0,"delta":7}
{"type":"response.output_text.delta","output_index":"x","delta":"Hello"}
{"type":"response.output_item.done","output_index":0,"item":"x"}
{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":7,"name":"read","arguments":"{}"}}
{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c1","name":7,"arguments":"{}"}}
{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c1","name":"read","arguments":{}}}
{"type":"response.incomplete","response":{"incomplete_details":"x"}}`,
	"anthropic": `{"type":7}
{"type":"content_block_start","index":"0","content_block":{"type":"text","text":""}}
{"type":"content_block_start","index":0,"content_block":"x"}
{"type":"content_block_start","index":0,"content_block":{"type":"text","text":7}}
{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":7,"name":"read","input":{}}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":7}}
{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":{}}}
{"type":"message_delta","delta":{"stop_reason":7}}`,
	"gemini": `{"candidates":"x"}
{"candidates":[{"content":"x"}]}
{"candidates":[{"content":{"parts":"x"}}]}
{"candidates":[{"content":{"parts":[{"text":7}]}}]}
{"candidates":[{"content":{"parts":[{"text":"a","thought":"x"}]}}]}
{"candidates":[{"content":{"parts":[{"functionCall":"x"}]}}]}
{"candidates":[{"content":{"parts":[{"functionCall":{"name":7}}]}}]}
{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":7}]}`,
}

func TestNeededTypes(t *testing.T) {
	over(t, func(t *testing.T, d *dialect) {
		if needed[d.name] == "" {
			t.Error("runtime/M10 the table has no events of this API")
		}
		for line := range strings.Lines(needed[d.name]) {
			t.Run("runtime/M10 a needed member of another type is an error: "+line, func(t *testing.T) {
				p := d.serve(t, endpoint.Config{}, whole(strings.TrimSpace(line)))
				reply, err := ask(t.Context(), t, p, providertest.Request())
				if err == nil || err.Kind != provider.KindStream || err.Code != "malformed_answer" || err.Retryable || !strings.Contains(err.Raw, strings.TrimSpace(line)) {
					t.Errorf("reply %+v, error %+v; want malformed_answer with the event", reply, err)
				}
			})
		}
	})
}
