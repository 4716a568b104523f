package turn

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

func TestModelReplies(t *testing.T) {
	cut := func(stop protocol.StopReason) Response {
		return Response{Model: &ModelReply{
			Reply: provider.Reply{Stop: stop, Usage: &protocol.Usage{Output: 7}, Parts: []protocol.Part{
				{Kind: protocol.PartReasoning, Text: "hm"}, {Kind: protocol.PartProse, Text: "par"},
				{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: "a", Args: json.RawMessage(`{}`)}},
			}},
			Record: protocol.CallRecord{Model: "m"},
		}}
	}
	kept := func(t *testing.T, m *Machine) {
		t.Helper()
		last := m.Messages()[len(m.Messages())-1]
		// The reasoning stays, so that the prose is still part 1.
		if last.Role != protocol.RoleAssistant || len(last.Parts) != 2 || last.Parts[1].Text != "par" {
			t.Errorf("what was received is kept as %+v", last)
		}
		if r := m.Result(); len(r.Calls) != 1 || r.Usage.Output != 7 {
			t.Errorf("calls %+v, usage %+v", r.Calls, r.Usage)
		}
	}

	t.Run("runtime/R01 the output limit ends a turn as incomplete", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		answer(t, m, EffectModel, cut(protocol.StopOutputLimit))
		if got := ended(t, m); got.Kind != protocol.OutcomeIncomplete || got.Text != "visible par" {
			t.Errorf("outcome is %+v", got)
		}
		kept(t, m)
	})

	t.Run("runtime/R01 a driver may handle the output limit", func(t *testing.T) {
		m := New(testDriver{handles: true}, unbounded)
		answer(t, m, EffectModel, cut(protocol.StopOutputLimit))
		waiting(t, m, EffectTools)
	})

	t.Run("runtime/T14 unusable replies end a turn with a provider error", func(t *testing.T) {
		for _, stop := range []protocol.StopReason{
			protocol.StopContextLimit, protocol.StopContentFilter, protocol.StopError, protocol.StopCancelled,
		} {
			m := New(testDriver{handles: true}, unbounded)
			answer(t, m, EffectModel, cut(stop))
			got := ended(t, m)
			if issues := m.Result().Issues; got.Kind != protocol.OutcomeProviderError || len(issues) != 1 || issues[0].Stop != stop {
				t.Errorf("%s: outcome %+v, issues %+v", stop, got, issues)
			}
			kept(t, m)
		}
	})

	t.Run("runtime/T14 a failed call ends a turn with its error", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		r := cut("")
		r.Model.Error = &protocol.Issue{Kind: "provider", Code: "quota", Message: "no money"}
		before := encoded(t, r)
		answer(t, m, EffectModel, r)
		got := ended(t, m)
		if issues := m.Result().Issues; got.Kind != protocol.OutcomeProviderError || got.Text != "no money" || issues[0].Code != "quota" {
			t.Errorf("outcome %+v, issues %+v", got, issues)
		}
		kept(t, m)
		if after := encoded(t, r); after != before {
			t.Errorf("the answer was changed: %s", cmp.Diff(before, after))
		}
	})

	t.Run("runtime/S14 token counts that overflow fail the turn", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		r := calls("a")
		r.Model.Reply.Usage = &protocol.Usage{Input: math.MaxInt64}
		answer(t, m, EffectModel, r)
		answer(t, m, EffectTools, succeed("a"))
		r = cut(protocol.StopEnd)
		r.Model.Reply.Usage = &protocol.Usage{Input: 1}
		answer(t, m, EffectModel, r)
		got := ended(t, m)
		result := m.Result()
		if got.Kind != protocol.OutcomeRuntimeError || result.Issues[0].Code != "token_usage_overflow" || result.Usage.Input != math.MaxInt64 {
			t.Errorf("outcome %+v, issues %+v, usage %+v", got, result.Issues, result.Usage)
		}
		if last := texts(result.Messages); last[len(last)-1] != "assistant:hmpar" {
			t.Errorf("messages are %q", last)
		}
	})

	t.Run("runtime/T08 invalid arguments become a JSON string, and missing ones an empty object", func(t *testing.T) {
		for args, want := range map[string]string{``: `{}`, `{"a":`: `"{\"a\":"`, `null`: `{}`} {
			m := New(testDriver{}, unbounded)
			r := calls("a")
			r.Model.Reply.Parts[0].Call.Args = json.RawMessage(args)
			answer(t, m, EffectModel, r)
			if e := waiting(t, m, EffectTools); string(e.Tools.Calls[0].Args) != want {
				t.Errorf("%q became %s", args, e.Tools.Calls[0].Args)
			}
			if got := string(r.Model.Reply.Parts[0].Call.Args); got != args {
				t.Errorf("the answer was changed from %q to %q", args, got)
			}
		}
	})
}

func TestToolBatches(t *testing.T) {
	t.Run("runtime/T07 each call has exactly one result", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		answer(t, m, EffectModel, calls("a", "b", "c"))
		r := succeed("c", "a", "a", "x")
		r.Tools[0].Output.Value = json.RawMessage(`{"broken`)
		r.Tools[1].Args = json.RawMessage(`{"as":"run"}`)
		answer(t, m, EffectTools, r)
		waiting(t, m, EffectModel)
		if got := texts(m.Messages())[2]; got != "user:result a successresult b failureresult c failure" {
			t.Errorf("results are %q", got)
		}
		records := m.Result().ToolCalls
		if got := []string{string(records[0].Args), records[1].Output.Failure.Code, records[2].Output.Failure.Code}; !slices.Equal(got,
			[]string{`{"as":"run"}`, "batch_missing_result", "malformed_output"}) {
			t.Errorf("records are %q", got)
		}
	})

	t.Run("runtime/T11 the first successful control counts", func(t *testing.T) {
		control := func(kind protocol.ControlKind) *protocol.ToolControl { return &protocol.ToolControl{Kind: kind} }
		ok, no := protocol.Succeed(""), protocol.Fail(protocol.FailIO, "", "", protocol.FromTool)
		for _, c := range []struct {
			name    string
			results []ToolReply
			want    int
		}{
			{"none", []ToolReply{{Output: ok}}, -1},
			{"of a failed call", []ToolReply{{Output: no, Control: control(protocol.ControlFinish)}}, -1},
			{"of a cancelled call", []ToolReply{{Output: protocol.ToolOutput{Status: protocol.OutputCancelled}, Control: control(protocol.ControlFail)}}, -1},
			{"after a failed call", []ToolReply{{Output: no, Control: control(protocol.ControlFail)}, {Output: ok, Control: control(protocol.ControlFinish)}}, 1},
			{"first in source order", []ToolReply{
				{Output: ok, Order: 2}, {Output: ok, Order: 1, Control: control(protocol.ControlFail)}, {Output: ok, Order: 0, Control: control(protocol.ControlFinish)},
			}, 1},
			{"no control", []ToolReply{{Output: ok, Control: control("reboot")}, {Output: ok, Control: control(protocol.ControlSwitchFrame)}}, -1},
		} {
			i, got := FirstControl(c.results)
			if c.want < 0 && got != nil || c.want >= 0 && (got == nil || i != c.want) {
				t.Errorf("%s: control %v of result %d, want %d", c.name, got, i, c.want)
			}
		}
	})

	t.Run("runtime/T14 calls inside a code cell are in the report", func(t *testing.T) {
		m := New(testDriver{reply: func(View, provider.Reply) []Action {
			return []Action{StartCode(Cell{Language: "star", Source: "look()"})}
		}}, unbounded)
		answer(t, m, EffectModel, says("code"))
		answer(t, m, EffectCode, Response{Code: &CellReply{Calls: []protocol.ToolCallRecord{{CallID: "n", Name: "look", Parent: "cell"}}}})
		if r := m.Result(); len(r.ToolCalls) != 1 || r.ToolCalls[0].Parent != "cell" || !r.HadCode {
			t.Errorf("tool calls %+v, had code %v", r.ToolCalls, r.HadCode)
		}
	})
}
