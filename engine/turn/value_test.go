package turn

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// valued is the start of a turn with a schema and room for n iterations.
func valued(n int) Config {
	cfg := bounded(n)
	cfg.Schema = json.RawMessage(`{"type":"integer"}`)
	return cfg
}

// gives answers a model call with prose that is a value.
func gives(value string) Response {
	r := says(value)
	r.Model.Value = json.RawMessage(value)
	return r
}

// misses answers a model call with prose that is no value.
func misses(text, problem string) Response {
	r := says(text)
	r.Model.Problem = problem
	return r
}

// repairOf is the message after an invalid reply.
func repairOf(problem string) string {
	return "event:The reply does not match the JSON Schema: " + problem + ". Reply again, with only the JSON value."
}

func TestValues(t *testing.T) {
	t.Run("part9/structured each model call of a turn with a schema asks for it, and the turn ends with the value", func(t *testing.T) {
		m := New(testDriver{}, valued(-1))
		for _, r := range []Response{calls("c1"), gives("7")} {
			e := answer(t, m, EffectModel, r)
			want := provider.OutputSpec{JSON: true, Schema: json.RawMessage(`{"type":"integer"}`)}
			if diff := cmp.Diff(want, e.Model.Output); diff != "" {
				t.Errorf("the call asks for another output: %s", diff)
			}
			if r.Model.Reply.Stop == protocol.StopToolUse {
				answer(t, m, EffectTools, succeed("c1"))
			}
		}
		want := protocol.TurnOutcome{Kind: protocol.OutcomeFinalValue, Text: "7", Value: json.RawMessage("7")}
		if diff := cmp.Diff(want, ended(t, m)); diff != "" || len(m.Result().Issues) != 0 {
			t.Errorf("%s, issues %+v", diff, m.Result().Issues)
		}
	})

	t.Run("part9/structured a turn without a schema asks for the output of its driver and ends with text", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		if e := answer(t, m, EffectModel, says("7")); e.Model.Output.Schema != nil || ended(t, m).Kind != protocol.OutcomeAssistantMessage {
			t.Errorf("output %+v, outcome %+v", e.Model.Output, m.Result().Outcome)
		}
	})

	t.Run("part9/structured the value null is a value", func(t *testing.T) {
		m := New(testDriver{}, valued(-1))
		answer(t, m, EffectModel, gives("null"))
		if got := ended(t, m); got.Kind != protocol.OutcomeFinalValue || string(got.Value) != "null" {
			t.Errorf("outcome %+v", got)
		}
	})

	t.Run("part9/structured an invalid reply stays in the conversation, and the model learns the problem", func(t *testing.T) {
		m := New(testDriver{}, valued(-1))
		answer(t, m, EffectModel, misses("seven", "it is text"))
		answer(t, m, EffectModel, gives("7"))
		if got := ended(t, m); got.Kind != protocol.OutcomeFinalValue {
			t.Errorf("outcome %+v", got)
		}
		if diff := cmp.Diff([]string{"user:hello", "assistant:seven", repairOf("it is text"), "assistant:7"}, texts(m.Messages())); diff != "" {
			t.Errorf("messages: %s", diff)
		}
		want := []protocol.Issue{{Kind: "provider", Code: "invalid_value", Message: "the reply does not match the schema: it is text"}}
		if diff := cmp.Diff(want, m.Result().Issues); diff != "" {
			t.Errorf("issues: %s", diff)
		}
	})

	t.Run("part9/structured the third invalid reply ends the turn", func(t *testing.T) {
		m := New(testDriver{}, valued(-1))
		for _, problem := range []string{"one", "two", "three"} {
			answer(t, m, EffectModel, misses("no", problem))
		}
		want := protocol.TurnOutcome{Kind: protocol.OutcomeInvalidValue, Text: "the model's replies do not match the schema: three"}
		if diff := cmp.Diff(want, ended(t, m)); diff != "" || len(m.Result().Issues) != 3 {
			t.Errorf("%s, issues %+v", diff, m.Result().Issues)
		}
		if diff := cmp.Diff([]string{"user:hello", "assistant:no", repairOf("one"), "assistant:no", repairOf("two"), "assistant:no"}, texts(m.Messages())); diff != "" {
			t.Errorf("messages: %s", diff)
		}
	})

	t.Run("part9/structured two repairs are for the whole turn, also after tool calls and a valid value", func(t *testing.T) {
		m := New(testDriver{}, valued(-1))
		answer(t, m, EffectModel, misses("no", "one"))
		answer(t, m, EffectModel, calls("c1"))
		answer(t, m, EffectTools, succeed("c1"))
		answer(t, m, EffectModel, gives("7"))
		answer(t, m, EffectCheckpoint, Response{Checkpoint: &Delivery{Inputs: []protocol.Message{user("another")}}})
		answer(t, m, EffectModel, misses("no", "two"))
		answer(t, m, EffectModel, misses("no", "three"))
		if got := ended(t, m); got.Kind != protocol.OutcomeInvalidValue {
			t.Errorf("outcome %+v", got)
		}
	})

	t.Run("part9/structured an input at the last checkpoint gets an answer, whose value counts", func(t *testing.T) {
		m := New(testDriver{}, valued(-1))
		answer(t, m, EffectModel, gives("7"))
		answer(t, m, EffectCheckpoint, Response{Checkpoint: &Delivery{Inputs: []protocol.Message{user("double it")}}})
		answer(t, m, EffectModel, gives("14"))
		if got := ended(t, m); string(got.Value) != "14" {
			t.Errorf("outcome %+v", got)
		}
	})

	t.Run("part9/structured a reply that is empty has no message", func(t *testing.T) {
		m := New(testDriver{}, valued(-1))
		empty := misses("", "the reply is empty")
		empty.Model.Reply.Parts = nil
		answer(t, m, EffectModel, empty)
		waiting(t, m, EffectModel)
		if diff := cmp.Diff([]string{"user:hello", repairOf("the reply is empty")}, texts(m.Messages())); diff != "" {
			t.Errorf("messages: %s", diff)
		}
	})

	t.Run("part9/structured the budget of the turn counts repairs", func(t *testing.T) {
		m := New(testDriver{}, valued(1))
		answer(t, m, EffectModel, misses("no", "one"))
		if got := ended(t, m); got.Kind != protocol.OutcomeMaxTurns {
			t.Errorf("outcome %+v", got)
		}
	})

	t.Run("part9/structured replies that were cut off, filtered, failed or cancelled are not repaired", func(t *testing.T) {
		cut := func(change func(*ModelReply)) Response {
			r := says("{")
			change(r.Model)
			return r
		}
		for want, r := range map[protocol.OutcomeKind]Response{
			protocol.OutcomeIncomplete:    cut(func(r *ModelReply) { r.Reply.Stop = protocol.StopOutputLimit }),
			protocol.OutcomeProviderError: cut(func(r *ModelReply) { r.Reply.Stop = protocol.StopContentFilter }),
			protocol.OutcomeCancelled:     cut(func(r *ModelReply) { r.Cancel = &protocol.CancelEvidence{RequestID: "r"} }),
		} {
			m := New(testDriver{}, valued(-1))
			answer(t, m, EffectModel, r)
			if got := ended(t, m); got.Kind != want || got.Value != nil || len(m.Messages()) != 2 {
				t.Errorf("outcome %+v, want %s", got, want)
			}
		}
	})

	t.Run("part9/structured a tool that ends the turn gives its own value", func(t *testing.T) {
		d := testDriver{results: func(_ View, rs []ToolReply) []Action {
			return []Action{Append(resultsOfBatch(rs)), Finish(protocol.TurnOutcome{Kind: protocol.OutcomeToolValue, Tool: "look", Value: json.RawMessage(`"x"`)})}
		}}
		m := New(d, valued(-1))
		answer(t, m, EffectModel, calls("c1"))
		answer(t, m, EffectTools, succeed("c1"))
		if got := ended(t, m); got.Kind != protocol.OutcomeToolValue || string(got.Value) != `"x"` {
			t.Errorf("outcome %+v", got)
		}
	})

	t.Run("part9/structured a driver that ends the turn with a text of its own gives no value", func(t *testing.T) {
		d := testDriver{results: func(_ View, rs []ToolReply) []Action {
			return []Action{Append(resultsOfBatch(rs)), Finish(protocol.TurnOutcome{Kind: protocol.OutcomeAssistantMessage, Text: "done"})}
		}}
		m := New(d, valued(-1))
		answer(t, m, EffectModel, calls("c1"))
		answer(t, m, EffectTools, succeed("c1"))
		if got := ended(t, m); got.Kind != protocol.OutcomeInvalidValue || !strings.Contains(got.Text, "without a value") {
			t.Errorf("outcome %+v", got)
		}
	})
}
