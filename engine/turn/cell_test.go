package turn

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// coder is a driver that runs each reply as a cell and answers a cell with the next iteration.
func coder() testDriver {
	return testDriver{
		prepare: func(View) []Action { return []Action{StartCoding("starlark", user("tail"))} },
		reply: func(_ View, r provider.Reply) []Action {
			return []Action{Append(r.Message()), StartCode(Cell{Language: "starlark", Source: "x"})}
		},
	}
}

func cellReply(r CellReply) Response { return Response{Code: &r} }

func TestCells(t *testing.T) {
	t.Run("runtime/R02 a coding call has no tools, and its tail is sent once and not stored", func(t *testing.T) {
		m := New(coder(), unbounded)
		env := Environment{System: "s", Tools: []protocol.ToolManifest{{Name: "look"}}, Code: &CodeEnvironment{Language: "starlark"}}
		e, _ := m.Next()
		m.Deliver(e.ID, Response{Sync: &env})
		call := answer(t, m, EffectModel, says("<starlark>\nx\n</starlark>")).Model
		if len(call.Tools) != 0 || call.Choice != provider.ToolsNone || call.Language != "starlark" || call.System != "s" {
			t.Errorf("called with %d tools, choice %s, language %q", len(call.Tools), call.Choice, call.Language)
		}
		if len(call.Transient) != 1 || call.Transient[0].Parts[0].Text != "tail" {
			t.Errorf("the tail is %+v", call.Transient)
		}
		answer(t, m, EffectCode, cellReply(CellReply{}))
		if again := waiting(t, m, EffectModel).Model; len(again.Transient) != 1 {
			t.Errorf("the second call has %d transient messages", len(again.Transient))
		}
		if n := len(m.Messages()); n != 2 {
			t.Errorf("%d messages are stored", n)
		}
	})
	t.Run("plugin/PR-07 a fatal problem of a cell ends the turn", func(t *testing.T) {
		m := New(coder(), unbounded)
		answer(t, m, EffectModel, says("x"))
		answer(t, m, EffectCode, cellReply(CellReply{Fatal: &protocol.Issue{Kind: "runtime", Code: "nondeterministic_cell", Message: "other call"}}))
		if r := m.Result(); r.Outcome == nil || r.Outcome.Kind != protocol.OutcomeRuntimeError || r.Issues[0].Code != "nondeterministic_cell" {
			t.Errorf("the turn ended as %+v with %+v", r.Outcome, r.Issues)
		}
	})
	t.Run("plugin/PR-07 a turn that ends while a cell runs says so in history", func(t *testing.T) {
		m := New(coder(), unbounded)
		answer(t, m, EffectModel, says("x"))
		waiting(t, m, EffectCode)
		m.Cancel(protocol.CancelEvidence{}, nil)
		msgs := m.Messages()
		last := msgs[len(msgs)-1]
		if last.Role != protocol.RoleUser || last.Parts[0].Kind != protocol.PartOutput || !strings.Contains(last.Parts[0].Text, "unknown how far the code ran") {
			t.Errorf("the last message is %+v", last)
		}
	})
	t.Run("plugin/PR-07 complete code of a reply that failed has an output that says so, incomplete code has none", func(t *testing.T) {
		for text, want := range map[string]string{"<starlark>\nx\n</starlark>": "The turn ended before the code ran.", "<starlark>\nx": ""} {
			m := New(coder(), unbounded)
			reply := provider.Reply{Parts: []protocol.Part{{Kind: protocol.PartCode, Text: text}}}
			answer(t, m, EffectModel, Response{Model: &ModelReply{Reply: reply, Error: &protocol.Issue{Kind: "provider", Code: "cut"}}})
			got := ""
			if msgs := m.Messages(); len(msgs) > 2 {
				got = msgs[2].Parts[0].Text
			}
			if len(m.Messages()) == 0 || got != want {
				t.Errorf("after %q the history has %+v", text, m.Messages())
			}
		}
	})
	t.Run("runtime/R04 the driver decides whether a cell without an error is progress", func(t *testing.T) {
		d := coder()
		d.cell = func(View, CellReply) []Action { return []Action{NoProgress(), Advance()} }
		cfg := unbounded
		cfg.Budget.NoProgress = 3
		m := New(d, cfg)
		for range 3 {
			answer(t, m, EffectModel, says("x"))
			answer(t, m, EffectCode, cellReply(CellReply{}))
		}
		if r := m.Result(); r.Outcome == nil || r.Outcome.Kind != protocol.OutcomeMaxTurns {
			t.Errorf("the turn ended as %+v", r.Outcome)
		}
	})
}

func TestCellRecords(t *testing.T) {
	t.Run("runtime/R09 the report keeps 128 calls of a cell and says how many it leaves out", func(t *testing.T) {
		m := New(coder(), unbounded)
		answer(t, m, EffectModel, says("x"))
		var made []protocol.ToolCallRecord
		for i := range 1000 {
			made = append(made, protocol.ToolCallRecord{CallID: protocol.CallID(fmt.Sprint(i)), Name: "look", Args: json.RawMessage(`{}`)})
		}
		answer(t, m, EffectCode, cellReply(CellReply{Calls: made}))
		r := m.Result()
		if len(r.ToolCalls) != 128 || r.ToolCalls[127].CallID != "127" {
			t.Errorf("%d calls are kept", len(r.ToolCalls))
		}
		if len(r.Issues) != 1 || r.Issues[0].Message != "The code made 1000 calls. The last 872 of them are not in the report, which keeps 128." {
			t.Errorf("issues %+v", r.Issues)
		}
	})
	t.Run("runtime/R09 texts over 64 KiB are not in the records of a cell", func(t *testing.T) {
		m := New(coder(), unbounded)
		answer(t, m, EffectModel, says("x"))
		long := strings.Repeat(`"\`, 33<<10)
		args, _ := json.Marshal(map[string]any{"text": long, "short": `a"b,`, "list": []any{1.5, true, nil, long}})
		out := protocol.Succeed(long)
		out.Value = args
		answer(t, m, EffectCode, cellReply(CellReply{Calls: []protocol.ToolCallRecord{{CallID: "1", Name: "look", Args: args, Output: out}}}))
		got := m.Result().ToolCalls[0]
		const want = `{"list":[1.5,true,null,"[text of 135170 bytes, not recorded]"],"short":"a\"b,","text":"[text of 135170 bytes, not recorded]"}`
		if string(got.Args) != want || string(got.Output.Value) != want || got.Output.Text != "[text of 67584 bytes, not recorded]" {
			t.Errorf("recorded %.200s and %.80q", got.Args, got.Output.Text)
		}
	})
}
