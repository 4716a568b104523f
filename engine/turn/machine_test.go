package turn

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

func TestMachine(t *testing.T) {
	t.Run("runtime/T01 effects and their answers make a turn", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		var got []string
		script := map[uint64]Response{2: calls("a", "b"), 3: succeed("b", "a"), 6: says("done")}
		for e, ok := m.Next(); ok; e, ok = m.Next() {
			got = append(got, fmt.Sprintf("%d %s %d", e.ID, e.Kind, e.Iteration))
			switch {
			case e.Kind == EffectSync:
				m.Deliver(e.ID, Response{Sync: &Environment{System: "s"}})
			case e.Kind == EffectCheckpoint:
				m.Deliver(e.ID, nothing)
			case e.Waits():
				m.Deliver(e.ID, script[e.ID])
			}
		}
		want := []string{
			"1 sync 1", "2 model 1", "0 progress 1", "3 tools 1", "0 progress 1", "4 checkpoint 1",
			"5 sync 2", "6 model 2", "0 progress 2", "7 checkpoint 2", "0 done 2",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if got := texts(m.Messages()); !slices.Equal(got, []string{
			"user:hello", "assistant:call acall b", "user:result a successresult b success", "assistant:done",
		}) {
			t.Errorf("messages are %q", got)
		}
		if got := m.Result().ToolCalls; len(got) != 2 || got[0].CallID != "a" || got[0].Order != 1 || got[1].Order != 0 {
			t.Errorf("tool calls are %+v, want the order of the calls, and the order in which they completed", got)
		}
	})

	t.Run("runtime/T02 a restored machine asks for the same effect", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		for _, r := range []Response{
			{Sync: &Environment{System: "<s>", Tools: []protocol.ToolManifest{{Name: "look", Input: json.RawMessage(` {"type" : "object"} `)}}}},
			calls("a"), succeed("a"), nothing, {Sync: &Environment{}}, says("bye"), nothing,
		} {
			// Effects that nobody answers are waiting to be handed out here; they must survive too.
			restored := restore(t, m)
			if diff := cmp.Diff(encoded(t, drainOutbox(restored)), encoded(t, drainOutbox(m))); diff != "" {
				t.Fatal(diff)
			}
			before, _ := m.Next()
			m = restore(t, m)
			after, _ := m.Next()
			if diff := cmp.Diff(before, after); diff != "" {
				t.Fatalf("effect %d changed: %s", before.ID, diff)
			}
			m.Deliver(after.ID, r)
		}
		if got := ended(t, restore(t, m)); got.Text != "bye" {
			t.Errorf("outcome is %+v", got)
		}
		drainOutbox(m)
		if e, ok := restore(t, m).Next(); ok {
			t.Errorf("a machine that was done emits %s again", e.Kind)
		}
	})

	t.Run("runtime/T02 what is no machine is refused", func(t *testing.T) {
		for _, text := range []string{``, `{}`, `{"iteration":1}`, `[]`, `null`} {
			if _, err := Restore(testDriver{}, []byte(text)); err == nil {
				t.Errorf("%q is restored", text)
			}
		}
	})

	t.Run("runtime/T03 answers to other effects are ignored", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		first := waiting(t, m, EffectSync)
		m.Deliver(first.ID, Response{Sync: &Environment{System: "one"}})
		before, _ := m.Snapshot()
		for _, id := range []uint64{0, first.ID, 3, math.MaxUint64} {
			m.Deliver(id, Response{Sync: &Environment{System: "two"}})
			m.Deliver(id, says("stale"))
		}
		if after, _ := m.Snapshot(); string(after) != string(before) {
			t.Errorf("a stale answer changed the machine: %s", cmp.Diff(string(before), string(after)))
		}
		m.Cancel(protocol.CancelEvidence{RequestID: "r"}, nil)
		m.Deliver(2, says("late"))
		if got := ended(t, m); got.Kind != protocol.OutcomeCancelled || len(m.Messages()) != 1 {
			t.Errorf("outcome %+v, messages %q", got, texts(m.Messages()))
		}
	})

	t.Run("runtime/T04 the environment is synced once in each iteration", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		for i, tools := range []string{"look", "leap"} {
			e := waiting(t, m, EffectSync)
			if e.Iteration != i+1 || e.Sync.Recompute != (i > 0) {
				t.Errorf("sync %+v in iteration %d", e.Sync, e.Iteration)
			}
			m.Deliver(e.ID, Response{Sync: &Environment{System: tools, Tools: []protocol.ToolManifest{{Name: tools}}}})
			call, _ := m.Next()
			if call.Kind != EffectModel || call.Model.System != tools || call.Model.Tools[0].Name != tools {
				t.Errorf("after the sync comes %+v", call)
			}
			m.Deliver(call.ID, calls(protocol.CallID(tools)))
			answer(t, m, EffectTools, succeed(protocol.CallID(tools)))
			answer(t, m, EffectCheckpoint, nothing)
		}
	})
}

func restore(t *testing.T, m *Machine) *Machine {
	t.Helper()
	text, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Restore(m.driver, text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m.s, again.s); diff != "" {
		t.Fatalf("restored machine differs: %s", diff)
	}
	return again
}

func drainOutbox(m *Machine) []Effect {
	var effects []Effect
	for len(m.s.Outbox) > 0 {
		e, _ := m.Next()
		effects = append(effects, e)
	}
	return effects
}

func TestCheckpoints(t *testing.T) {
	steered := func(id protocol.InputID) protocol.Message {
		msg := user("steer " + string(id))
		msg.Origin = &protocol.Origin{Kind: protocol.OriginTurnInput, InputID: id}
		return msg
	}

	t.Run("runtime/T05 after work the turn goes on, before completion it ends", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		answer(t, m, EffectModel, calls("a"))
		answer(t, m, EffectTools, succeed("a"))
		if e := answer(t, m, EffectCheckpoint, nothing); e.Checkpoint.Kind != protocol.BoundaryAfterWork {
			t.Errorf("after tools the checkpoint is %s", e.Checkpoint.Kind)
		}
		answer(t, m, EffectModel, says("bye"))
		if e := answer(t, m, EffectCheckpoint, nothing); e.Checkpoint.Kind != protocol.BoundaryBeforeCompletion {
			t.Errorf("before the end the checkpoint is %s", e.Checkpoint.Kind)
		}
		if got := ended(t, m); got.Kind != protocol.OutcomeAssistantMessage || got.Text != "bye" {
			t.Errorf("outcome is %+v", got)
		}
	})

	t.Run("runtime/T05 what enters before completion cancels the end", func(t *testing.T) {
		for name, d := range map[string]Delivery{
			"input":     {Inputs: []protocol.Message{steered("i1")}},
			"message":   {Messages: []protocol.Message{textOf(protocol.RoleSystem, protocol.PartText, "mind this")}},
			"transient": {Transient: []protocol.Message{user("once")}},
			"cause":     {Causes: []Cause{{ID: "c", Text: "woken"}}},
		} {
			m := New(testDriver{}, unbounded)
			answer(t, m, EffectModel, says("bye"))
			answer(t, m, EffectCheckpoint, Response{Checkpoint: &d})
			if e := waiting(t, m, EffectModel); e.Iteration != 2 {
				t.Errorf("%s: iteration %d", name, e.Iteration)
			}
			if e := answer(t, m, EffectModel, says("really bye")); len(e.Model.Transient) != len(d.Transient) {
				t.Errorf("%s: transient messages %v", name, e.Model.Transient)
			}
			if got := ended(t, m); got.Text != "really bye" {
				t.Errorf("%s: outcome is %+v", name, got)
			}
		}
	})

	t.Run("runtime/T05 a transient message is shown once", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		answer(t, m, EffectModel, calls("a"))
		answer(t, m, EffectTools, succeed("a"))
		answer(t, m, EffectCheckpoint, Response{Checkpoint: &Delivery{Transient: []protocol.Message{user("once")}}})
		first := answer(t, m, EffectModel, calls("b"))
		answer(t, m, EffectTools, succeed("b"))
		second := waiting(t, m, EffectModel)
		if got := []int{len(first.Model.Transient), len(second.Model.Transient), len(m.Messages())}; !slices.Equal(got, []int{1, 0, 5}) {
			t.Errorf("shown %d and %d times; %d messages stored", got[0], got[1], got[2])
		}
	})

	t.Run("runtime/T05 what does not enter does not cancel the end", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		answer(t, m, EffectModel, calls("a"))
		answer(t, m, EffectTools, succeed("a"))
		answer(t, m, EffectCheckpoint, Response{Checkpoint: &Delivery{Causes: []Cause{{ID: "c"}}}})
		answer(t, m, EffectModel, says("bye"))
		answer(t, m, EffectCheckpoint, Response{Checkpoint: &Delivery{
			Messages:  []protocol.Message{textOf(protocol.RoleAssistant, protocol.PartProse, "I am the model")},
			Transient: []protocol.Message{textOf(protocol.RoleEvent, protocol.PartText, "event")},
			Causes:    []Cause{{ID: "c"}},
		}})
		if got := ended(t, m); got.Text != "bye" || m.Iteration() != 2 {
			t.Errorf("outcome %+v in iteration %d", got, m.Iteration())
		}
		issues := m.Result().Issues
		if len(issues) != 2 || issues[0].Code != "message_role_dropped" || issues[1].Code != "message_role_dropped" {
			t.Errorf("issues are %+v", issues)
		}
	})

	t.Run("runtime/T05 an end that is cancelled is bounded by the budget", func(t *testing.T) {
		m := New(testDriver{}, bounded(1))
		answer(t, m, EffectModel, says("bye"))
		answer(t, m, EffectCheckpoint, Response{Checkpoint: &Delivery{Inputs: []protocol.Message{steered("i1")}}})
		if got := ended(t, m); got.Kind != protocol.OutcomeMaxTurns {
			t.Errorf("outcome is %+v", got)
		}
	})

	t.Run("runtime/T05 an abort keeps the inputs that came with it", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		answer(t, m, EffectModel, says("bye"))
		answer(t, m, EffectCheckpoint, Response{Checkpoint: &Delivery{
			Inputs: []protocol.Message{steered("i1")}, Abort: &protocol.Issue{Kind: "plugin", Code: "no", Message: "stop it"},
		}})
		got := ended(t, m)
		if got.Kind != protocol.OutcomePluginAbort || got.Text != "stop it" || texts(m.Messages())[2] != "user:steer i1" {
			t.Errorf("outcome %+v, messages %q", got, texts(m.Messages()))
		}
	})

	t.Run("runtime/T06 inputs enter at their boundary or later", func(t *testing.T) {
		pending := map[protocol.InputID]protocol.Boundary{
			"early": protocol.BoundaryAfterWork, "late": protocol.BoundaryBeforeCompletion, "unset": "",
		}
		m := New(testDriver{}, unbounded)
		type entry struct {
			Input protocol.InputID
			At    protocol.Boundary
			Node  int
		}
		var entries []entry
		answers := []Response{calls("a"), says("one"), says("two")}
		for e, ok := m.Next(); ok; e, ok = m.Next() {
			switch e.Kind {
			case EffectSync:
				m.Deliver(e.ID, Response{Sync: &Environment{}})
			case EffectModel:
				m.Deliver(e.ID, answers[0])
				answers = answers[1:]
			case EffectTools:
				m.Deliver(e.ID, succeed("a"))
			case EffectCheckpoint:
				var d Delivery
				for _, id := range []protocol.InputID{"early", "late", "unset"} {
					if least, ok := pending[id]; ok && e.Checkpoint.Admits(least) {
						d.Inputs = append(d.Inputs, steered(id))
						delete(pending, id)
					}
				}
				m.Deliver(e.ID, Response{Checkpoint: &d})
			case EffectProgress:
				if e.Progress.Entered != "" {
					entries = append(entries, entry{e.Progress.Message.Origin.InputID, e.Progress.Entered, e.Progress.Ordinal})
				}
			}
		}
		want := []entry{
			{"early", protocol.BoundaryAfterWork, 3}, {"unset", protocol.BoundaryAfterWork, 4},
			{"late", protocol.BoundaryBeforeCompletion, 6},
		}
		if diff := cmp.Diff(want, entries); diff != "" {
			t.Error(diff)
		}
		for _, e := range entries {
			if got := m.Messages()[e.Node].Origin.InputID; got != e.Input {
				t.Errorf("node %d is of input %s, want %s", e.Node, got, e.Input)
			}
		}
	})

	t.Run("runtime/T24 causes are shown once, and only beside the conversation", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		woken := func(ids ...string) Response {
			d := &Delivery{}
			for _, id := range ids {
				d.Causes = append(d.Causes, Cause{ID: id, Type: "task", Text: id + " is over"})
			}
			return Response{Checkpoint: d}
		}
		answer(t, m, EffectModel, calls("a"))
		answer(t, m, EffectTools, succeed("a"))
		answer(t, m, EffectCheckpoint, woken("c1", "c2", "c1"))
		answer(t, m, EffectModel, says("bye"))
		answer(t, m, EffectCheckpoint, woken("c2", "c3"))
		e := waiting(t, m, EffectModel)
		var got []string
		for _, c := range e.Model.Causes {
			got = append(got, c.ID)
		}
		if !slices.Equal(got, []string{"c1", "c2", "c3"}) {
			t.Errorf("causes are %q", got)
		}
		for _, text := range texts(e.Model.Messages) {
			if strings.Contains(text, "is over") {
				t.Errorf("message %q is a cause", text)
			}
		}
	})
}

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

	t.Run("runtime/T14 replies that are none end a turn with the provider's error", func(t *testing.T) {
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

	t.Run("runtime/S14 token counts that do not fit fail the turn", func(t *testing.T) {
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

	t.Run("runtime/T08 arguments that are no JSON become an empty object", func(t *testing.T) {
		for _, args := range []string{``, `{"a":`, `null`} {
			m := New(testDriver{}, unbounded)
			r := calls("a")
			r.Model.Reply.Parts[0].Call.Args = json.RawMessage(args)
			answer(t, m, EffectModel, r)
			if e := waiting(t, m, EffectTools); string(e.Tools.Calls[0].Args) != `{}` {
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

	t.Run("runtime/T14 the interpreter reaches the others", func(t *testing.T) {
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

func TestBudgets(t *testing.T) {
	// asks is how many model calls a turn makes whose model always wants a tool.
	asks := func(t *testing.T, m *Machine, most int, result func(...protocol.CallID) Response) int {
		for n := range most {
			for _, e := range drain(t, m) {
				if e.Kind == EffectDone {
					return n
				}
			}
			id := protocol.CallID(fmt.Sprint("call", n))
			answer(t, m, EffectModel, calls(id))
			answer(t, m, EffectTools, result(id))
		}
		return most
	}

	t.Run("runtime/T15 a bounded turn makes as many calls as it may", func(t *testing.T) {
		for _, n := range []int{1, 2, 7} {
			m := New(testDriver{}, bounded(n))
			if got := asks(t, m, 20, succeed); got != n {
				t.Errorf("%d calls, want %d", got, n)
			}
			if got := *m.Result().Outcome; got.Kind != protocol.OutcomeMaxTurns || got.Text != "limit" {
				t.Errorf("outcome is %+v", got)
			}
		}
	})

	t.Run("runtime/T15 an unbounded turn goes on", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		if got := asks(t, m, 300, succeed); got != 300 || m.Finished() {
			t.Errorf("%d calls", got)
		}
	})

	t.Run("runtime/T15 a driver has exactly one grace iteration", func(t *testing.T) {
		var seen []bool
		d := testDriver{limit: func(View) []Action { return []Action{GraceFinal()} }}
		d.prepare = func(v View) []Action {
			seen = append(seen, v.Grace)
			return []Action{StartModel(provider.ToolsAuto, provider.OutputSpec{})}
		}
		m := New(d, bounded(2))
		if got := asks(t, m, 20, succeed); got != 3 {
			t.Errorf("%d calls, want 2 and a final one", got)
		}
		if got := *m.Result().Outcome; got.Kind != protocol.OutcomeMaxTurns || !slices.Equal(seen, []bool{false, false, true}) {
			t.Errorf("outcome %+v, grace %v", got, seen)
		}
		m = New(testDriver{reply: func(View, provider.Reply) []Action { return []Action{GraceFinal()} }}, unbounded)
		answer(t, m, EffectModel, says("one"))
		answer(t, m, EffectModel, says("two"))
		if got := ended(t, m); got.Kind != protocol.OutcomeMaxTurns {
			t.Errorf("outcome is %+v", got)
		}
	})

	t.Run("runtime/T15 nothing follows a grace iteration", func(t *testing.T) {
		m := New(testDriver{reply: func(v View, _ provider.Reply) []Action {
			if v.Grace {
				return []Action{Advance()}
			}
			return []Action{GraceFinal()}
		}}, unbounded)
		answer(t, m, EffectModel, says("one"))
		answer(t, m, EffectModel, says("final"))
		if got := ended(t, m); got.Kind != protocol.OutcomeMaxTurns || m.Iteration() != 2 {
			t.Errorf("outcome %+v in iteration %d", got, m.Iteration())
		}
	})

	t.Run("runtime/T15 a driver cannot get around the limit", func(t *testing.T) {
		for name, actions := range map[string][]Action{"nothing": nil, "advance": {Advance(), Advance()}} {
			m := New(testDriver{limit: func(View) []Action { return actions }}, bounded(2))
			if got := asks(t, m, 20, succeed); got != 2 || m.Result().Outcome.Kind != protocol.OutcomeMaxTurns {
				t.Errorf("%s: %d calls, outcome %+v", name, got, m.Result().Outcome)
			}
		}
	})

	t.Run("runtime/T16 twelve failures in a row end a turn", func(t *testing.T) {
		for budget, want := range map[int]int{0: 12, 3: 3, 20: 20} {
			cfg := unbounded
			cfg.Budget.NoProgress = budget
			m := New(testDriver{}, cfg)
			if got := asks(t, m, 50, fails); got != want {
				t.Errorf("budget %d: %d calls, want %d", budget, got, want)
			}
			r := m.Result()
			if r.Outcome.Kind != protocol.OutcomeMaxTurns || len(r.Issues) != 1 || r.Issues[0].Code != "no_progress_budget" {
				t.Errorf("budget %d: outcome %+v, issues %+v", budget, r.Outcome, r.Issues)
			}
			if err := resumable(r.Messages); err != nil {
				t.Error(err)
			}
		}
	})

	t.Run("runtime/T16 a success begins the count anew", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		n := 0
		mostly := func(ids ...protocol.CallID) Response {
			if n++; n%12 == 0 {
				return succeed(ids...)
			}
			return fails(ids...)
		}
		if got := asks(t, m, 100, mostly); got != 100 {
			t.Errorf("the turn ended after %d calls: %+v", got, m.Result().Outcome)
		}
	})

	t.Run("runtime/T16 failed cells and repairs count too", func(t *testing.T) {
		cfg := unbounded
		cfg.Budget.NoProgress = 4
		m := New(testDriver{reply: func(_ View, r provider.Reply) []Action {
			if r.Parts[0].Text == "repair" {
				return []Action{NoProgress(), Advance()}
			}
			return []Action{StartCode(Cell{Language: "star", Source: r.Parts[0].Text})}
		}}, cfg)
		cell := func(err string) {
			answer(t, m, EffectModel, says("code"))
			answer(t, m, EffectCode, Response{Code: &CellReply{Error: err}})
		}
		cell("bad")
		cell("bad")
		cell("")
		cell("bad")
		answer(t, m, EffectModel, says("repair"))
		cell("bad")
		answer(t, m, EffectModel, says("repair"))
		if got := ended(t, m); got.Kind != protocol.OutcomeMaxTurns || m.Iteration() != 7 {
			t.Errorf("outcome %+v in iteration %d", got, m.Iteration())
		}
	})
}

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

	t.Run("runtime/T17 during a model call what was received is kept", func(t *testing.T) {
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

	t.Run("runtime/T17 calls that were not made have a cancelled result", func(t *testing.T) {
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

	t.Run("runtime/T17 results that were delivered win", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		answer(t, m, EffectModel, calls("a"))
		answer(t, m, EffectTools, succeed("a"))
		m.Cancel(first, nil)
		check(t, m, "user:hello", "assistant:call a", "user:result a success")
	})

	t.Run("runtime/T17 calls under way when a turn fails are of unknown outcome", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		answer(t, m, EffectModel, calls("a"))
		waiting(t, m, EffectTools)
		m.Fail(protocol.OutcomeRuntimeError, protocol.Issue{Message: "disk"})
		ended(t, m)
		if got := texts(m.Messages()); got[2] != "user:result a unknown" {
			t.Errorf("messages are %q", got)
		}
	})

	t.Run("runtime/T17 results that a driver did not show are added at the end", func(t *testing.T) {
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

	t.Run("runtime/T17 the end that came first stands", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		answer(t, m, EffectModel, says("bye"))
		answer(t, m, EffectCheckpoint, nothing)
		m.Cancel(first, &partial)
		if got := ended(t, m); got.Kind != protocol.OutcomeAssistantMessage || len(m.Messages()) != 2 {
			t.Errorf("outcome %+v, messages %q", got, texts(m.Messages()))
		}
	})
}

// spoil appends to a slice that is not the caller's own.
func spoil[T any](list []T, junk T) {
	if list = append(list, junk); len(list) > cap(list) {
		panic("unreachable: it keeps the append")
	}
}

// TestSharing appends to what the machine hands out, as a careless caller would.
func TestSharing(t *testing.T) {
	t.Run("runtime/T01 what the machine hands out can be appended to", func(t *testing.T) {
		m := New(testDriver{}, unbounded)
		junk := protocol.Issue{Code: "junk"}
		var old Result
		var oldMessages []protocol.Message
		var oldCall *ModelCall
		for n := range 7 {
			e := waiting(t, m, EffectModel)
			before := encoded(t, e)
			id := protocol.CallID(fmt.Sprint("c", n))
			m.Deliver(e.ID, calls(id))
			answer(t, m, EffectTools, succeed(id))
			d := &Delivery{Causes: []Cause{{ID: string(id)}}, Messages: []protocol.Message{textOf(protocol.RoleEvent, protocol.PartText, "x")}}
			answer(t, m, EffectCheckpoint, Response{Checkpoint: d})
			if n == 5 { // the slices have room here, and grow into it below
				old, oldMessages, oldCall = m.Result(), m.Messages(), e.Model
			}
			if after := encoded(t, e); after != before {
				t.Fatalf("an effect changed after it was handed out: %s", cmp.Diff(before, after))
			}
		}
		// Older pieces share memory with newer ones: an append to them must not reach it.
		spoil(old.Messages, user("junk"))
		spoil(old.Issues, junk)
		spoil(old.ToolCalls, protocol.ToolCallRecord{Name: "junk"})
		spoil(old.Calls, protocol.CallRecord{Model: "junk"})
		spoil(oldMessages, user("junk"))
		spoil(oldCall.Messages, user("junk"))
		spoil(oldCall.Causes, Cause{ID: "junk"})
		text, _ := m.Snapshot()
		if strings.Contains(string(text), "junk") {
			t.Errorf("a caller's append shows in the machine: %s", text)
		}
		kept := m.Result()
		before := encoded(t, kept)
		kept.Issues = append(kept.Issues, junk)
		m.Fail(protocol.OutcomeRuntimeError, protocol.Issue{Code: "later"})
		if kept.Issues[len(kept.Issues)-1] != junk {
			t.Errorf("the machine wrote over what a caller appended: %+v", kept.Issues)
		}
		kept.Issues = kept.Issues[:len(kept.Issues)-1]
		if after := encoded(t, kept); after != before {
			t.Errorf("an earlier result changed: %s", cmp.Diff(before, after))
		}
	})
}
