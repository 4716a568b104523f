package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"

	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// fact is a fact that observers must learn by the specification, and the event type that carries it.
type fact struct {
	name string
	as   protocol.EventType
	has  func(protocol.Event) bool // where the type alone does not say it
}

func item(kind protocol.ItemKind) func(protocol.Event) bool {
	return func(e protocol.Event) bool { return e.Item != nil && e.Item.Kind == kind }
}

// lowLevel are the sixteen session events of runtime 1.10.
var lowLevel = []fact{
	{"text_delta", protocol.EventItemDelta, func(e protocol.Event) bool { return e.Text == "Let me" || e.Text == "I s" }},
	{"reasoning_delta", protocol.EventItemDelta, func(e protocol.Event) bool { return e.Text == "hm" }},
	{"tool_call_start", protocol.EventItemStarted, item(protocol.ItemToolCall)},
	{"tool_call", protocol.EventItemCompleted, item(protocol.ItemToolCall)},
	{"message", protocol.EventItemCompleted, item(protocol.ItemAgentMessage)},
	{"llm_request", protocol.EventModelRequested, func(e protocol.Event) bool { return e.Iteration > 0 }},
	{"llm_response", protocol.EventModelRecorded, func(e protocol.Event) bool { return e.Call.Iteration > 0 }},
	{"token_usage", protocol.EventModelRecorded, func(e protocol.Event) bool { return e.Call.Usage != nil }},
	{"child_token_usage", protocol.EventUsageUpdated, func(e protocol.Event) bool { return e.Total != nil }},
	{"retry_status", protocol.EventRetryStatus, func(e protocol.Event) bool { return e.Retry.Reason == "busy" }},
	{"injected_turn_input_accepted", protocol.EventInputAccepted, func(e protocol.Event) bool { return len(e.InputIDs) == 1 }},
	{"injected_messages_committed", protocol.EventItemCompleted, func(e protocol.Event) bool {
		return e.Item.Kind == protocol.ItemUserMessage && e.Item.Text == "steered"
	}},
	{"plugin_event", protocol.EventPluginCustom, func(e protocol.Event) bool { return e.Name == "driver.news" && e.Seq != 0 }},
	{"turn_outcome", protocol.EventTurnCompleted, func(e protocol.Event) bool { return e.Outcome.Kind == protocol.OutcomeToolValue }},
	{"done", protocol.EventTurnCompleted, func(e protocol.Event) bool {
		return e.Outcome.Kind == protocol.OutcomeAssistantMessage && len(e.Issues) == 0
	}},
	{"error", protocol.EventTurnCompleted, func(e protocol.Event) bool { return len(e.Issues) > 0 }},
}

// appLevel are the twenty turn activities of runtime 1.11, without those of code cells and of final values, which only
// the driver for code produces, and of intents, which do not exist yet.
var appLevel = []fact{
	{"queued_work_started", protocol.EventTurnStarted, func(e protocol.Event) bool { return e.TurnID != "" && e.Seq == 0 }},
	{"model_request_started", protocol.EventModelRequested, func(e protocol.Event) bool { return e.TurnID != "" && e.Iteration == 2 }},
	{"assistant_prose_delta", protocol.EventItemDelta, func(e protocol.Event) bool { return e.Text == "I s" && e.Offset != nil && *e.Offset == 0 }},
	{"reasoning_delta", protocol.EventItemDelta, func(e protocol.Event) bool { return e.Text == "hm" && e.ItemID != "" }},
	{"model_attempt_reset", protocol.EventItemRetracted, func(e protocol.Event) bool { return e.Seq == 0 && e.ItemID != "" }},
	{"model_call_recorded", protocol.EventModelRecorded, func(e protocol.Event) bool { return len(e.Call.Attempts) == 2 }},
	{"tool_call_started", protocol.EventItemStarted, item(protocol.ItemToolCall)},
	{"tool_call_completed", protocol.EventItemCompleted, func(e protocol.Event) bool { return e.Item.Kind == protocol.ItemToolCall && e.Item.Output != nil }},
	{"tool_value", protocol.EventTurnCompleted, func(e protocol.Event) bool { return e.Outcome.Kind == protocol.OutcomeToolValue }},
	{"usage", protocol.EventUsageUpdated, func(e protocol.Event) bool { return e.Usage != nil }},
	{"child_usage", protocol.EventUsageUpdated, func(e protocol.Event) bool { return e.Total != nil }},
	{"retry_status", protocol.EventRetryStatus, func(e protocol.Event) bool { return e.Retry.Status == 503 && e.Retry.WaitMs == 2000 }},
	{"plugin_runtime", protocol.EventPluginCustom, func(e protocol.Event) bool { return string(e.Body) == `{"n":1}` && e.TurnID != "" }},
	{"queued_input_accepted", protocol.EventInputAccepted, func(e protocol.Event) bool { return e.Boundary != "" }},
	{"queued_messages_committed", protocol.EventItemCompleted, func(e protocol.Event) bool {
		return e.Item.Kind == protocol.ItemUserMessage && e.Item.Text == "steered" && e.Seq != 0
	}},
	{"error", protocol.EventTurnCompleted, func(e protocol.Event) bool { return len(e.Issues) > 0 }},
}

// talking is the standard driver, which also tells observers something of its own with each batch of results.
type talking struct{ standard.Driver }

func (talking) ID() string                                         { return "talking" }
func (d talking) Build(plugin.BuildContext) (plugin.Plugin, error) { return d, nil }

func (d talking) Register(r *plugin.Registrar) error {
	r.Protocol().Driver(d)
	return nil
}

func (d talking) Results(v turn.View, results []turn.ToolReply) []turn.Action {
	news := protocol.PluginNode{Type: "driver.news", Body: json.RawMessage(`{"n": 1}`)}
	return append([]turn.Action{turn.Emit(news)}, d.Driver.Results(v, results)...)
}

func TestEventsOfATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := scriptedTurns(t)
		for _, c := range []struct {
			id    string
			facts []fact
		}{{"runtime/T19", lowLevel}, {"runtime/T20", appLevel}} {
			for _, f := range c.facts {
				told := slices.ContainsFunc(seen, func(e protocol.Event) bool { return e.Type == f.as && (f.has == nil || f.has(e)) })
				if !told {
					t.Errorf("%s %s: no %s told it", c.id, f.name, f.as)
				}
			}
		}
		for _, e := range seen { // T20: every delta belongs to an item that began before it
			if e.Type == protocol.EventItemDelta && !slices.ContainsFunc(seen, func(s protocol.Event) bool { return s.Item != nil && s.Item.ID == e.ItemID }) {
				t.Errorf("runtime/T20 a delta of %s, which never began", e.ItemID)
			}
		}
	})
}

// scriptedTurns runs turns in which everything happens, and returns the events that an observer got.
func scriptedTurns(t *testing.T) []protocol.Event {
	busy := &scripted.Failure{Kind: provider.KindHTTP, Code: "busy", Status: 503, Retryable: true, AfterChunks: 2, Times: 1}
	script := &scripted.Script{Turns: []scripted.Turn{
		{Match: &scripted.Match{LastUserContains: "go"}, Replies: []scripted.Reply{{
			Reasoning: "hm", Text: "Let me see.", ChunkSize: 6, Error: busy,
			ToolCalls: []scripted.Call{{ID: "c1", Name: "work"}}, Usage: &protocol.Usage{Input: 1},
		}}},
		{Match: &scripted.Match{LastUserContains: "steered"}, Replies: []scripted.Reply{{Before: "Well.", Text: "I see.", ChunkSize: 3}}},
		{Match: &scripted.Match{LastUserContains: "value"}, Replies: []scripted.Reply{calls("finish")}},
		{Match: &scripted.Match{LastUserContains: "break"}, Replies: []scripted.Reply{{Error: &scripted.Failure{Kind: "http", Code: "teapot"}}}},
	}}
	finish := toolFunc{name: "finish", run: func(context.Context, tool.Invocation) (tool.Result, error) {
		return tool.Result{Output: protocol.Succeed("x"), Control: &protocol.ToolControl{Kind: protocol.ControlFinish}}, nil
	}}
	g := newGate("work")
	d := start(t, setup{
		model: &provider.Retry{Provider: scripted.New(script)}, tools: []tool.Provider{g, finish}, driver: talking{}, config: idempotentModel,
	})
	id := d.session(t)
	o := d.observe(t, id)
	first := d.begin(t, id, "go").TurnID
	<-g.called
	must[*protocol.TurnSteerResult](t)(d.Turns.Steer(t.Context(), &protocol.TurnSteerParams{TurnID: first, Input: text("steered")}))
	close(g.open)
	d.wait(t, first)
	d.turn(t, id, "value")
	o.over(d.turn(t, id, "break").TurnID)
	o.gapless(0)
	if shown, kept := shownItems(o.all), d.itemIDs(t, id); !slices.Equal(shown, kept) {
		t.Errorf("an observer is left with items %v, history has %v", shown, kept)
	}
	return o.all
}

func TestRetraction(t *testing.T) {
	t.Run("runtime/T21 repeating a call of an idempotent model withdraws exactly the items it had shown", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			broken := &scripted.Failure{Kind: provider.KindStream, Code: "cut", Retryable: true, AfterChunks: 2, Times: 1}
			d := start(t, setup{model: &provider.Retry{Provider: replies(scripted.Reply{Reasoning: "hm", Text: "hello", Error: broken})}, config: idempotentModel})
			id := d.session(t)
			o := d.observe(t, id)
			report := d.turn(t, id, "go")
			o.over(report.TurnID)
			var withdrawn, begun []protocol.ItemID
			for _, e := range o.all {
				switch {
				case e.Type == protocol.EventItemRetracted:
					withdrawn = append(withdrawn, e.ItemID)
				case e.Type == protocol.EventItemStarted:
					begun = append(begun, e.Item.ID)
				}
			}
			if len(begun) != 4 || !slices.Equal(withdrawn, begun[:2]) || len(report.Calls[0].Attempts) != 2 {
				t.Errorf("begun %v, withdrawn %v, attempts %+v", begun, withdrawn, report.Calls[0].Attempts)
			}
			if shown, kept := shownItems(o.all), d.itemIDs(t, id); !slices.Equal(shown, kept) || report.Output.Safe != "hello" {
				t.Errorf("an observer is left with items %v, history has %v; output %q", shown, kept, report.Output.Safe)
			}
		})
	})
	t.Run("runtime/T21 a non-idempotent model is not called again once output has arrived", func(t *testing.T) {
		broken := &scripted.Failure{Kind: provider.KindStream, Code: "cut", Retryable: true, AfterChunks: 1, Times: 1}
		d := start(t, setup{model: &provider.Retry{Provider: replies(scripted.Reply{Reasoning: "hm", Text: "hello", Error: broken})}})
		id := d.session(t)
		o := d.observe(t, id)
		report := d.turn(t, id, "go")
		o.over(report.TurnID)
		if report.Outcome.Kind != protocol.OutcomeProviderError || len(report.Calls[0].Attempts) != 1 {
			t.Errorf("outcome %+v, attempts %+v", report.Outcome, report.Calls[0].Attempts)
		}
		if shown, kept := shownItems(o.all), d.itemIDs(t, id); !slices.Equal(shown, kept) {
			t.Errorf("an observer is left with items %v, history has %v", shown, kept)
		}
	})
}
