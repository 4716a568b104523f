package providertest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/provider"
	"lashd/engine/provider/endpoint"
	"lashd/engine/provider/providertest"
	"lashd/rpc/protocol"
)

func prose(text string) protocol.Part { return protocol.Part{Kind: protocol.PartProse, Text: text} }

func thought(text string) protocol.Part {
	return protocol.Part{Kind: protocol.PartReasoning, Text: text}
}

func call(id protocol.CallID, name, args string) protocol.Part {
	return protocol.Part{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: id, Name: name, Args: json.RawMessage(args)}}
}

// bare removes what differs between the APIs: replay state, parts that only carry it, and the prefix of a call's id.
func bare(parts []protocol.Part) []protocol.Part {
	var plain []protocol.Part
	for _, part := range parts {
		if part.Replay != nil && part.Text == "" && part.Call == nil {
			continue
		}
		part.Replay, part.Route = nil, ""
		if part.Call != nil {
			c := *part.Call
			_, id, _ := strings.Cut(string(c.CallID), "_")
			c.CallID = protocol.CallID(id)
			part.Call = &c
		}
		plain = append(plain, part)
	}
	return plain
}

// TestReplies has the recorded replies of all APIs come out the same.
func TestReplies(t *testing.T) {
	usual := &protocol.Usage{Input: 12, Output: 7, CacheRead: 3}
	for _, c := range []struct {
		name, answer string
		parts        []protocol.Part
		stop         protocol.StopReason
		usage        *protocol.Usage
	}{
		{"runtime/M01 text", "text", []protocol.Part{prose("Hello, wörld!\n")}, protocol.StopEnd, usual},
		{
			"runtime/M01 reasoning", "reasoning", []protocol.Part{thought("Let me think."), prose("Done.")}, protocol.StopEnd,
			&protocol.Usage{Input: 12, Output: 7, CacheRead: 3, Reasoning: 4},
		},
		{
			"runtime/M01 parallel calls keep their order and large numbers", "calls",
			[]protocol.Part{prose("I look."), call("01", "read", `{"path":"a \"b\"","n":12345678901234567890}`), call("02", "list", `{}`)},
			protocol.StopToolUse, usual,
		},
		{
			"runtime/M01 reasoning, text and calls keep their order", "interleaved",
			[]protocol.Part{thought("One."), prose("A"), call("01", "read", `{"path":"a"}`), thought("Two."), prose("B")}, protocol.StopToolUse, usual,
		},
		{"runtime/M10 the output limit", "limit", []protocol.Part{prose("Once upon")}, protocol.StopOutputLimit, usual},
		{"runtime/M10 a content filter", "filter", []protocol.Part{prose("I ")}, protocol.StopContentFilter, usual},
		{"runtime/M10 an unknown reason", "reason", []protocol.Part{prose("Hi")}, protocol.StopUnknown, usual},
		{"runtime/M01 comments, unknown events and unknown fields are left out", "unknown", []protocol.Part{prose("Hello, wörld!\n")}, protocol.StopEnd, usual},
	} {
		t.Run("runtime/Q02 "+c.name, func(t *testing.T) {
			over(t, func(t *testing.T, d *dialect) {
				reply, err := ask(t.Context(), t, d.serve(t, endpoint.Config{}, replay(d.recorded(t, c.answer))), providertest.Request())
				if err != nil || reply.Stop != c.stop {
					t.Errorf("stop %q, error %v; want %q", reply.Stop, err, c.stop)
				}
				if d := cmp.Diff(c.parts, bare(reply.Parts)); d != "" {
					t.Errorf("parts (-want +got):\n%s", d)
				}
				if d := cmp.Diff(c.usage, reply.Usage); d != "" {
					t.Errorf("usage (-want +got):\n%s", d)
				}
			})
		})
	}
}

// failure is what an error says that is the same in all APIs.
type failure struct {
	Kind       provider.ErrorKind
	Retryable  bool
	Throttled  bool
	RetryAfter time.Duration
	Stop       protocol.StopReason
	Kept       string // text of the reply before it
}

// TestFailures has the recorded failures of all APIs come out the same, but for the vendors' own codes.
func TestFailures(t *testing.T) {
	same := func(code string) [4]string { return [4]string{code, code, code, code} }
	for _, c := range []struct {
		name, answer string
		want         failure
		codes        [4]string // in the order of the dialects
	}{
		{
			"runtime/M10 an overloaded server in mid-stream", "overloaded", failure{Kind: provider.KindStream, Retryable: true, Kept: "Hel"},
			[4]string{"service_unavailable", "server_is_overloaded", "overloaded_error", "UNAVAILABLE"},
		},
		{"runtime/M10 an end without evidence", "eof", failure{Kind: provider.KindStream, Retryable: true, Kept: "Hel"}, same("ended_without_evidence")},
		{"runtime/M10 an end in the middle of a frame", "frame", failure{Kind: provider.KindStream, Retryable: true, Kept: "Hel"}, same("ended_without_evidence")},
		{"runtime/M02 a malformed frame", "malformed", failure{Kind: provider.KindStream, Kept: "Hel"}, same("malformed_answer")},
		{"runtime/M02 a field of a wrong type", "type", failure{Kind: provider.KindStream, Kept: "Hel"}, same("malformed_answer")},
		{"runtime/M10 a prompt that is too long", "overflow", failure{Kind: provider.KindValidation, Stop: protocol.StopContextLimit}, same("context_length_exceeded")},
		{
			"runtime/M11 a rate limit", "throttled", failure{Kind: provider.KindHTTP, Retryable: true, Throttled: true, RetryAfter: 7 * time.Second},
			[4]string{"rate_limit_exceeded", "rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"},
		},
		{
			"runtime/M11 an account without credit", "quota", failure{Kind: provider.KindQuota},
			[4]string{"insufficient_quota", "insufficient_quota", "invalid_request_error", "BILLING_DISABLED"},
		},
		{
			"runtime/M11 an overloaded server", "busy", failure{Kind: provider.KindHTTP, Retryable: true},
			[4]string{"overloaded_error", "overloaded_error", "overloaded_error", "UNAVAILABLE"},
		},
		{
			"runtime/M02 a key that is not accepted", "key", failure{Kind: provider.KindAuth},
			[4]string{"invalid_api_key", "invalid_api_key", "authentication_error", "API_KEY_INVALID"},
		},
		{"runtime/M02 a web page", "html", failure{Kind: provider.KindStream}, same("malformed_answer")},
		{
			"runtime/M02 an error with status 200", "json", failure{Kind: provider.KindStream, Retryable: true},
			[4]string{"server_error", "server_error", "api_error", "INTERNAL"},
		},
	} {
		t.Run("runtime/Q02 "+c.name, func(t *testing.T) {
			for i := range dialects {
				d := &dialects[i]
				t.Run(d.name, func(t *testing.T) {
					cfg := endpoint.Config{Key: provider.NewSecret("sk-canary-0123456789")}
					p := d.serve(t, cfg, replay(d.recorded(t, c.answer)))
					reply, err := ask(t.Context(), t, p, providertest.Request())
					if err == nil {
						t.Fatal("no error")
					}
					wait := err.RetryAfter
					if err.Kind == provider.KindQuota {
						wait = 0 // no reader waits for it
					}
					got := failure{err.Kind, err.Retryable, err.Throttled, wait, err.Stop, text(&reply)}
					if got != c.want || err.Code != c.codes[i] {
						t.Errorf("got %+v with code %q, want %+v with %q: %v", got, err.Code, c.want, c.codes[i], err)
					}
					if shown := fmt.Sprintf("%v %+v %#v %+v", err, *err, *err, p); strings.Contains(shown, "canary") {
						t.Errorf("the key shows in %s", shown)
					}
				})
			}
		})
	}
}

// text returns the text of a reply's parts.
func text(r *provider.Reply) string {
	var all strings.Builder
	for i := range r.Parts {
		all.WriteString(r.Parts[i].Text)
	}
	return all.String()
}
