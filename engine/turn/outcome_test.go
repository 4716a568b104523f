package turn

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

func TestOutcomes(t *testing.T) {
	t.Run("runtime/T14 a driver reaches every outcome", func(t *testing.T) {
		for _, want := range []protocol.TurnOutcome{
			{Kind: protocol.OutcomeAssistantMessage, Text: "t"},
			{Kind: protocol.OutcomeFinalValue, Value: json.RawMessage(`{"a":1}`)},
			{Kind: protocol.OutcomeToolValue, Tool: "look", Value: json.RawMessage(`1`)},
			{Kind: protocol.OutcomeFrameSwitch, Frame: &protocol.FrameSwitch{Key: "k", Task: "go on"}},
			{Kind: protocol.OutcomeIncomplete},
			{Kind: protocol.OutcomeMaxTurns},
			{Kind: protocol.OutcomeToolFailure},
			{Kind: protocol.OutcomeProviderError},
			{Kind: protocol.OutcomeRuntimeError},
			{Kind: protocol.OutcomeSubmittedError, Value: json.RawMessage(`"no"`)},
			{Kind: protocol.OutcomeToolError, Tool: "look"},
		} {
			d := testDriver{prepare: func(View) []Action { return []Action{Finish(want), Append(user("too late")), Advance()} }}
			m := New(d, unbounded)
			got := ended(t, m)
			if diff := cmp.Diff(want, got); diff != "" || len(m.Messages()) != 1 {
				t.Errorf("%s, messages %q", diff, texts(m.Messages()))
			}
		}
	})

	t.Run("runtime/T14 the interpreter reaches the other outcomes", func(t *testing.T) {
		for _, kind := range []protocol.OutcomeKind{protocol.OutcomeInvalidInput, protocol.OutcomePluginAbort, protocol.OutcomeToolFailure} {
			m := New(testDriver{}, unbounded)
			m.Fail(kind, protocol.Issue{Code: "c", Message: "why"})
			m.Fail(protocol.OutcomeRuntimeError, protocol.Issue{Code: "d"})
			m.Cancel(protocol.CancelEvidence{RequestID: "r"}, nil)
			if got := ended(t, m); got.Kind != kind || got.Text != "why" || len(m.Result().Issues) != 1 {
				t.Errorf("outcome %+v, issues %+v", got, m.Result().Issues)
			}
		}
	})

	t.Run("runtime/T22 a driver that breaks its contract fails the turn", func(t *testing.T) {
		model := StartModel(provider.ToolsAuto, provider.OutputSpec{})
		reply := func(actions ...Action) testDriver {
			return testDriver{reply: func(View, provider.Reply) []Action { return actions }}
		}
		raw := json.RawMessage(`{"broken`)
		for code, d := range map[string]testDriver{
			"driver_stalled":    reply(Append(user("and now?"))),
			"driver_conflict":   reply(model),
			"driver_conflict ":  reply(StartTools(nil), StartCode(Cell{Language: "star", Source: ""})),
			"driver_conflict  ": reply(Advance(), Advance()),
			"malformed_state":   reply(SetState(raw)),
			"malformed_message": reply(Append(protocol.Message{Parts: []protocol.Part{{Replay: raw}}})),
			"malformed_outcome": reply(Finish(protocol.TurnOutcome{Value: raw})),
			"malformed_news":    reply(Emit(protocol.PluginNode{Body: raw})),
			"malformed_call":    reply(StartTools([]protocol.ToolCall{{Args: raw}})),
			"malformed_request": {prepare: func(View) []Action { return []Action{StartModel("", provider.OutputSpec{Schema: raw})} }},
		} {
			m := New(d, unbounded)
			waiting(t, m, EffectSync)
			m.Deliver(1, Response{Sync: &Environment{}})
			m.Deliver(2, says("go"))
			got := ended(t, m)
			issues := m.Result().Issues
			if got.Kind != protocol.OutcomeRuntimeError || len(issues) != 1 || issues[0].Code != strings.TrimSpace(code) {
				t.Errorf("%s: outcome %+v, issues %+v", code, got, issues)
			}
		}
	})

	t.Run("runtime/T22 an answer of another kind fails the turn", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		waiting(t, m, EffectSync)
		m.Deliver(1, says("what?"))
		if got := ended(t, m); got.Kind != protocol.OutcomeRuntimeError || m.Result().Issues[0].Code != "wrong_answer" {
			t.Errorf("outcome %+v", got)
		}
	})
}
