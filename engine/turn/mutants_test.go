package turn

import (
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"testing"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// The tests in this file kill mutants that no other test of the package catches: see test/mutate.

// TestWhatADriverSays covers the effects of a driver's actions.
func TestWhatADriverSays(t *testing.T) {
	t.Run("outside/29 a driver sees the state that it set, and observers what it emits and reports", func(t *testing.T) {
		var seen []string
		m := New(testDriver{prepare: func(v View) []Action {
			seen = append(seen, string(v.State))
			return []Action{
				SetState(json.RawMessage(`"mine"`)), Emit(protocol.PluginNode{Type: "news"}), Report(protocol.Issue{Code: "odd"}),
				StartModel(provider.ToolsAuto, provider.OutputSpec{}),
			}
		}}, unbounded)
		answer(t, m, EffectSync, Response{Sync: &Environment{}})
		var told []string
		for e, _ := m.Next(); !e.Waits(); e, _ = m.Next() {
			switch e.Kind {
			case EffectEmit:
				told = append(told, e.Emit.Type)
			case EffectLog:
				told = append(told, e.Log.Code)
			}
		}
		answer(t, m, EffectModel, calls("a"))
		answer(t, m, EffectTools, succeed("a"))
		waiting(t, m, EffectModel)
		if !slices.Equal(seen, []string{"", `"mine"`}) || !slices.Equal(told, []string{"news", "odd"}) {
			t.Errorf("the driver saw the states %q, observers got %q", seen, told)
		}
		if issues := m.Result().Issues; len(issues) != 2 || issues[0].Code != "odd" {
			t.Errorf("issues are %+v", issues)
		}
	})
	t.Run("outside/29 the driver's Limit is called again after a checkpoint that it asked for there", func(t *testing.T) {
		asked := 0
		m := New(testDriver{limit: func(View) []Action {
			if asked++; asked == 1 {
				return []Action{CheckpointThen(protocol.BoundaryBeforeCompletion, nil)}
			}
			return []Action{Finish(protocol.TurnOutcome{Kind: protocol.OutcomeFinalValue, Text: "the driver's"})}
		}}, bounded(1))
		answer(t, m, EffectModel, calls("a"))
		answer(t, m, EffectTools, succeed("a"))
		if got := ended(t, m); got.Text != "the driver's" || asked != 2 {
			t.Errorf("outcome %+v after the driver was asked %d times", got, asked)
		}
	})
	t.Run("outside/29 a budget of zero iterations is not unlimited", func(t *testing.T) {
		m := New(testDriver{}, bounded(0))
		answer(t, m, EffectModel, calls("a"))
		answer(t, m, EffectTools, succeed("a"))
		if got := ended(t, m); got.Kind != protocol.OutcomeMaxTurns {
			t.Errorf("outcome is %+v", got)
		}
	})
	t.Run("outside/29 messages of plugins enter the conversation with their checkpoint", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		answer(t, m, EffectModel, calls("a"))
		answer(t, m, EffectTools, succeed("a"))
		answer(t, m, EffectCheckpoint, Response{Checkpoint: &Delivery{Messages: []protocol.Message{user("mind this")}}})
		if e, _ := m.Next(); e.Kind != EffectProgress || e.Progress.Entered != protocol.BoundaryAfterWork || e.Progress.Message.Parts[0].Text != "mind this" {
			t.Errorf("after the checkpoint comes %+v", e)
		}
		if e := waiting(t, m, EffectModel); texts(e.Model.Messages)[3] != "user:mind this" {
			t.Errorf("the model is shown %q", texts(e.Model.Messages))
		}
	})
	t.Run("outside/29 an outcome or input that cannot be stored fails the turn", func(t *testing.T) {
		raw := json.RawMessage(`{"broken`)
		m := New(testDriver{reply: func(View, provider.Reply) []Action {
			return []Action{CheckpointThen(protocol.BoundaryBeforeCompletion, &protocol.TurnOutcome{Value: raw})}
		}}, unbounded)
		answer(t, m, EffectModel, says("go"))
		failsAs(t, m, "malformed_outcome")
		failsAs(t, New(testDriver{}, Config{Input: []protocol.Message{{Parts: []protocol.Part{{Replay: raw}}}}}), "malformed_input")
	})
}

func failsAs(t *testing.T, m *Machine, code string) {
	t.Helper()
	got, issues := ended(t, m), m.Result().Issues
	if got.Kind != protocol.OutcomeRuntimeError || len(issues) != 1 || issues[0].Code != code {
		t.Errorf("outcome %+v, issues %+v; want %s", got, issues, code)
	}
}

func TestWrongAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		kind   EffectKind
		answer Response
	}{
		"a model call without a reply":           {EffectModel, Response{}},
		"an exact environment that is missing":   {EffectSync, Response{Exact: true}},
		"an environment that cannot be stored":   {EffectSync, Response{Sync: &Environment{Tools: []protocol.ToolManifest{{Input: json.RawMessage(`{`)}}}}},
		"a checkpoint's message that is invalid": {EffectCheckpoint, Response{Checkpoint: &Delivery{Messages: []protocol.Message{{Parts: []protocol.Part{{Replay: json.RawMessage(`{`)}}}}}}},
		"a checkpoint without a delivery":        {EffectCheckpoint, Response{}},
	} {
		t.Run("outside/29 "+name+" fails the turn", func(t *testing.T) {
			m := New(testDriver{}, unbounded)
			if c.kind == EffectCheckpoint {
				answer(t, m, EffectModel, says("bye"))
			}
			answer(t, m, c.kind, c.answer)
			failsAs(t, m, "wrong_answer")
		})
	}
}

// TestProgressOfBatches covers which batches count as unsuccessful attempts.
func TestProgressOfBatches(t *testing.T) {
	ok, no := protocol.Succeed(""), protocol.Fail(protocol.FailIO, "", "", protocol.FromTool)
	inner := func(outputs ...protocol.ToolOutput) (records []protocol.ToolCallRecord) {
		for _, out := range outputs {
			records = append(records, protocol.ToolCallRecord{CallID: "inner", Output: out})
		}
		return records
	}
	for name, c := range map[string]struct {
		replies []ToolReply
		good    bool
	}{
		"a success before a failure":              {[]ToolReply{{Output: ok}, {Output: no}}, true},
		"a success after a failure":               {[]ToolReply{{Output: no}, {Output: ok}}, true},
		"failures":                                {[]ToolReply{{Output: no}, {Output: no}}, false},
		"a call whose own calls failed":           {[]ToolReply{{Output: ok, Calls: inner(no, no)}, {Output: no}}, false},
		"a failed call with a call that succeeds": {[]ToolReply{{Output: no, Calls: inner(no, ok)}, {Output: no}}, true},
	} {
		t.Run("outside/29 "+name, func(t *testing.T) {
			cfg := unbounded
			cfg.Budget.NoProgress = 2
			m := New(testDriver{}, cfg)
			for range 2 {
				answer(t, m, EffectModel, calls("a", "b"))
				r := slices.Clone(c.replies)
				r[0].CallID, r[1].CallID = "a", "b"
				answer(t, m, EffectTools, Response{Tools: r})
			}
			if m.Finished() == c.good {
				t.Errorf("the turn is %+v", m.Result().Outcome)
			}
			if got, want := len(m.Result().ToolCalls), 2*(2+len(c.replies[0].Calls)); got != want {
				t.Errorf("%d calls are recorded, want %d", got, want)
			}
		})
	}
}

func TestShownOutputs(t *testing.T) {
	t.Run("outside/29 the driver gets the shown output and the call's name, and the record has the full output", func(t *testing.T) {
		var given []ToolReply
		m := New(testDriver{results: func(_ View, rs []ToolReply) []Action {
			given = rs
			return []Action{Append(resultsOfBatch(rs)), CheckpointThen(protocol.BoundaryAfterWork, nil)}
		}}, unbounded)
		answer(t, m, EffectModel, calls("a", "b"))
		r := succeed("a", "b")
		r.Tools[0].Shown = new(protocol.Succeed("short"))
		answer(t, m, EffectTools, r)
		if len(given) != 2 || given[0].Output.Text != "short" || given[0].Shown != nil || given[1].Output.Text != "ok" || given[0].Name != "look" {
			t.Errorf("the driver was given %+v", given)
		}
		if records := m.Result().ToolCalls; records[0].Output.Text != "ok" || records[0].Name != "look" {
			t.Errorf("the record is %+v", records[0])
		}
	})
}

// TestOtherEnds covers outcomes that do not come from the driver.
func TestOtherEnds(t *testing.T) {
	t.Run("outside/29 a switch of frames ends a turn once", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		answer(t, m, EffectModel, calls("a"))
		m.Switch(&protocol.FrameSwitch{Key: "k"})
		m.Switch(&protocol.FrameSwitch{Key: "other"})
		if got := ended(t, m); got.Kind != protocol.OutcomeFrameSwitch || got.Frame.Key != "k" {
			t.Errorf("outcome is %+v", got)
		}
	})
	t.Run("outside/29 only a batch that was started may have run", func(t *testing.T) {
		m := New(testDriver{reply: func(_ View, r provider.Reply) []Action {
			return []Action{Append(r.Message()), CheckpointThen(protocol.BoundaryAfterWork, nil)}
		}}, unbounded)
		answer(t, m, EffectModel, calls("a"))
		waiting(t, m, EffectCheckpoint)
		m.Fail(protocol.OutcomeRuntimeError, protocol.Issue{Code: "c"})
		if ended(t, m); texts(m.Messages())[2] != "user:result a cancelled" {
			t.Errorf("messages are %q", texts(m.Messages()))
		}
	})
	t.Run("outside/29 a part without the content of its kind does not keep a turn from ending", func(t *testing.T) {
		stray := &protocol.ToolCall{CallID: "stray", Name: "look"}
		odd := protocol.Message{Role: protocol.RoleAssistant, Parts: []protocol.Part{
			{Kind: protocol.PartToolCall}, {Kind: protocol.PartToolResult}, {Kind: protocol.PartProse, Call: stray},
		}}
		m := New(testDriver{reply: func(View, provider.Reply) []Action {
			return []Action{Append(odd), Finish(protocol.TurnOutcome{Kind: protocol.OutcomeFinalValue})}
		}}, unbounded)
		answer(t, m, EffectModel, says("go"))
		drain(t, m)
		if r := m.Result(); r.Outcome == nil || r.Outcome.Kind != protocol.OutcomeFinalValue || len(r.Messages) != 2 {
			t.Errorf("outcome %+v, messages %q", r.Outcome, texts(r.Messages))
		}
	})
	t.Run("outside/29 a cancelled reply is kept although its usage and its replay are wrong", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		waiting(t, m, EffectModel)
		m.Cancel(protocol.CancelEvidence{}, &provider.Reply{Usage: &protocol.Usage{Input: -1}, Parts: []protocol.Part{
			{Kind: protocol.PartProse, Text: "half", Replay: json.RawMessage(`{"broken`)}, {Kind: protocol.PartProse, Text: " "},
		}})
		issues := m.Result().Issues
		if got := ended(t, m); got.Kind != protocol.OutcomeCancelled || texts(m.Messages())[1] != "assistant:half " {
			t.Errorf("outcome %+v, messages %q", got, texts(m.Messages()))
		}
		if len(issues) != 1 || issues[0].Code != "token_usage_overflow" {
			t.Errorf("issues are %+v", issues)
		}
	})
	t.Run("outside/29 a cancelled reply with only reasoning adds no message", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		waiting(t, m, EffectModel)
		m.Cancel(protocol.CancelEvidence{}, &provider.Reply{Parts: []protocol.Part{{Kind: protocol.PartReasoning, Text: "hm"}, {Kind: protocol.PartProse, Text: " "}}})
		if ended(t, m); len(m.Messages()) != 1 {
			t.Errorf("messages are %q", texts(m.Messages()))
		}
	})
	t.Run("outside/29 a valid replay value is kept unchanged", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		answer(t, m, EffectModel, Response{Model: &ModelReply{Reply: provider.Reply{Stop: protocol.StopEnd, Parts: []protocol.Part{
			{Kind: protocol.PartReasoning, Text: "hm", Replay: json.RawMessage(`{"sig":1}`), Route: "r"}, {Kind: protocol.PartProse, Text: "42"},
		}}}})
		if p := m.Messages()[1].Parts[0]; string(p.Replay) != `{"sig":1}` || p.Route != "r" {
			t.Errorf("the part is %+v", p)
		}
	})
}

// Each of these types has one custom JSON or text method.
type (
	marshals     struct{ A int }
	unmarshals   struct{ A int }
	marshalsText struct{ A int }
	readsText    struct{ A int }
)

func (marshals) MarshalJSON() ([]byte, error)     { return []byte(`{"A":1}`), nil }
func (*unmarshals) UnmarshalJSON([]byte) error    { return nil }
func (marshalsText) MarshalText() ([]byte, error) { return []byte("x"), nil }
func (*readsText) UnmarshalText([]byte) error     { return nil }

var (
	_ json.Marshaler           = marshals{}
	_ json.Unmarshaler         = &unmarshals{}
	_ encoding.TextMarshaler   = marshalsText{}
	_ encoding.TextUnmarshaler = &readsText{}
)

func TestEncodesItself(t *testing.T) {
	for _, c := range []struct {
		of   reflect.Type
		want bool
	}{
		{reflect.TypeFor[marshals](), true}, {reflect.TypeFor[unmarshals](), true}, {reflect.TypeFor[marshalsText](), true}, {reflect.TypeFor[readsText](), true},
		{reflect.TypeFor[*marshals](), true}, {reflect.TypeFor[[]*unmarshals](), true}, {reflect.TypeFor[[]marshals](), true},
		{reflect.TypeFor[struct{ A int }](), false}, {reflect.TypeFor[[]string](), false},
	} {
		if got := encodesItself(c.of); got != c.want {
			t.Errorf("outside/29 %s: %v, want %v", c.of, got, c.want)
		}
	}
}

func TestWhatGoesOverJSON(t *testing.T) {
	one := 1
	for name, v := range map[string]any{
		"an infinite number": struct{ F float64 }{math.Inf(1)},
		"no number":          struct{ F float64 }{math.NaN()},
		"text of bytes":      []string{"fine", "\xff"},
		"a number as a string": struct {
			N int `json:",string"`
		}{1},
		"an embedded struct":         struct{ reflectable }{reflectable{1}},
		"a field that JSON omits":    struct{ hidden int }{one},
		"a pointer to text of bytes": struct{ P *string }{new("\xff")},
	} {
		p := reflect.New(reflect.TypeOf(v)).Elem()
		p.Set(reflect.ValueOf(v))
		if faithful(p) {
			t.Errorf("outside/29 %s was copied without JSON", name)
		}
	}
}

type reflectable struct{ A int }
