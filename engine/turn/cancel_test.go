package turn

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

func TestCancel(t *testing.T) {
	first := protocol.CancelEvidence{RequestID: "r1", Origin: "cli_1", Reason: "enough"}
	partial := provider.Reply{Usage: &protocol.Usage{Output: 3}, Parts: []protocol.Part{
		{Kind: protocol.PartProse, Text: "half a sen"},
		{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: "a", Args: json.RawMessage(`{"half`)}},
	}}
	check := func(t *testing.T, m *Machine, want ...string) {
		t.Helper()
		got := ended(t, m)
		if got.Kind != protocol.OutcomeCancelled || *got.Cancel != first {
			t.Errorf("outcome is %+v", got)
		}
		if diff := cmp.Diff(want, texts(m.Messages())); diff != "" {
			t.Error(diff)
		}
	}

	t.Run("runtime/T17 a cancel during a model call keeps the partial reply", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		e := waiting(t, m, EffectModel)
		m.Cancel(first, &partial)
		m.Cancel(protocol.CancelEvidence{RequestID: "r2"}, &partial)
		m.Deliver(e.ID, says("late"))
		check(t, m, "user:hello", "assistant:half a sen")
		if got := m.Result().Usage.Output; got != 3 {
			t.Errorf("usage is %d", got)
		}
	})

	t.Run("runtime/T17 a delivered cancel keeps the record of the call", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		answer(t, m, EffectModel, Response{Model: &ModelReply{
			Reply: partial, Cancel: &first, Record: protocol.CallRecord{Model: "m", Attempts: []protocol.CallAttempt{{Outcome: protocol.AttemptAborted}}},
			Error: &protocol.Issue{Code: "cancelled"},
		}})
		check(t, m, "user:hello", "assistant:half a sen")
		if r := m.Result(); r.Usage.Output != 3 || len(r.Calls) != 1 || r.Calls[0].Model != "m" || len(r.Issues) != 0 {
			t.Errorf("result is %+v", r)
		}
	})

	t.Run("runtime/T17 calls that did not run have a cancelled result", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		answer(t, m, EffectModel, calls("a", "b"))
		e := waiting(t, m, EffectTools)
		m.Cancel(first, nil)
		m.Deliver(e.ID, succeed("a", "b"))
		check(t, m, "user:hello", "assistant:call acall b", "user:result a cancelledresult b cancelled")
		if got := m.Result().ToolCalls; len(got) != 2 || got[1].Output.Status != protocol.OutputCancelled {
			t.Errorf("tool calls are %+v", got)
		}
	})

	t.Run("runtime/T17 delivered results are kept", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		answer(t, m, EffectModel, calls("a"))
		answer(t, m, EffectTools, succeed("a"))
		m.Cancel(first, nil)
		check(t, m, "user:hello", "assistant:call a", "user:result a success")
	})

	t.Run("runtime/T17 calls in progress when a turn fails have an unknown outcome", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		answer(t, m, EffectModel, calls("a"))
		waiting(t, m, EffectTools)
		m.Fail(protocol.OutcomeRuntimeError, protocol.Issue{Message: "disk"})
		ended(t, m)
		if got := texts(m.Messages()); got[2] != "user:result a unknown" {
			t.Errorf("messages are %q", got)
		}
	})

	t.Run("runtime/T17 results that the driver did not add are added at the end", func(t *testing.T) {
		m := New(testDriver{results: func(View, []ToolReply) []Action {
			return []Action{Finish(protocol.TurnOutcome{Kind: protocol.OutcomeToolValue})}
		}}, unbounded)
		answer(t, m, EffectModel, calls("a"))
		answer(t, m, EffectTools, succeed("a"))
		ended(t, m)
		if got := texts(m.Messages()); got[2] != "user:result a success" || len(m.Result().ToolCalls) != 1 {
			t.Errorf("messages are %q", got)
		}
	})

	t.Run("runtime/T17 the first outcome wins", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		answer(t, m, EffectModel, says("bye"))
		answer(t, m, EffectCheckpoint, nothing)
		m.Cancel(first, &partial)
		if got := ended(t, m); got.Kind != protocol.OutcomeAssistantMessage || len(m.Messages()) != 2 {
			t.Errorf("outcome %+v, messages %q", got, texts(m.Messages()))
		}
	})
}
