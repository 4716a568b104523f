package standard

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/graph"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// talk is a turn with the standard driver; each answer is the answer to the next model call or batch.
type talk struct {
	*testing.T
	m       *turn.Machine
	effects []turn.Effect
}

func start(t *testing.T, iterations int, answers ...turn.Response) *talk {
	x := &talk{T: t, m: turn.New(Driver{}, turn.Config{
		Input: []protocol.Message{{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: "hello"}}}}, Budget: protocol.Budget{Iterations: iterations},
	})}
	for e, ok := x.m.Next(); ok; e, ok = x.m.Next() {
		x.effects = append(x.effects, e)
		switch {
		case e.Kind == turn.EffectSync:
			x.m.Deliver(e.ID, turn.Response{Sync: &turn.Environment{Tools: []protocol.ToolManifest{{Name: "look"}}}})
		case e.Kind == turn.EffectCheckpoint && (len(answers) == 0 || answers[0].Checkpoint == nil):
			x.m.Deliver(e.ID, turn.Response{Checkpoint: &turn.Delivery{}})
		case e.Waits() && len(answers) == 0:
			return x
		case e.Waits():
			x.m.Deliver(e.ID, answers[0])
			answers = answers[1:]
		}
	}
	x.resumable()
	return x
}

func (x *talk) resumable() {
	x.Helper()
	var msgs []*protocol.Message
	for _, m := range x.m.Messages() {
		msgs = append(msgs, &m)
	}
	if err := graph.ResumeSafe(msgs); err != nil {
		x.Error(err)
	}
}

func (x *talk) ends(want protocol.TurnOutcome) {
	x.Helper()
	got := x.m.Result().Outcome
	if got == nil {
		x.Fatalf("the turn has not ended; it waits for %s", x.effects[len(x.effects)-1].Kind)
	}
	if diff := cmp.Diff(want, *got); diff != "" {
		x.Errorf("outcome: %s", diff)
	}
}

func (x *talk) messages(want ...string) {
	x.Helper()
	var got []string
	for _, m := range x.m.Messages() {
		var line strings.Builder
		line.WriteString(string(m.Role))
		for _, p := range m.Parts {
			line.WriteString(" " + string(p.Kind))
			switch {
			case p.Call != nil:
				line.WriteString("=" + string(p.Call.CallID))
			case p.Result != nil:
				line.WriteString("=" + string(p.Result.CallID) + ":" + string(p.Result.Output.Status))
			default:
				line.WriteString("=" + p.Text)
			}
		}
		got = append(got, line.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		x.Error(diff)
	}
}

func reply(stop protocol.StopReason, parts ...protocol.Part) turn.Response {
	return turn.Response{Model: &turn.ModelReply{Reply: provider.Reply{Stop: stop, Parts: parts}}}
}

func prose(text string) protocol.Part { return protocol.Part{Kind: protocol.PartProse, Text: text} }

func call(id protocol.CallID) protocol.Part {
	return protocol.Part{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: id, Name: "tool_" + string(id), Args: json.RawMessage(`{}`)}}
}

func results(replies ...turn.ToolReply) turn.Response { return turn.Response{Tools: replies} }

func good(id protocol.CallID) turn.ToolReply {
	return turn.ToolReply{CallID: id, Output: protocol.Succeed("ok")}
}

func controlled(id protocol.CallID, kind protocol.ControlKind) turn.ToolReply {
	r := good(id)
	r.Control = &protocol.ToolControl{Kind: kind, Value: json.RawMessage(`"` + string(id) + `"`)}
	if kind == protocol.ControlSwitchFrame {
		r.Control = &protocol.ToolControl{Kind: kind, Frame: &protocol.FrameSwitch{Key: "k", Task: string(id)}}
	}
	return r
}

func bad(r turn.ToolReply) turn.ToolReply {
	r.Output = protocol.Fail(protocol.FailExecution, "broke", "broke", protocol.FromTool)
	return r
}

func steered(text string) turn.Response {
	return turn.Response{Checkpoint: &turn.Delivery{Inputs: []protocol.Message{
		{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: text}}},
	}}}
}

func TestProtocol(t *testing.T) {
	t.Run("runtime/R01 calls are run and their results go back in one message", func(t *testing.T) {
		thought := protocol.Part{Kind: protocol.PartReasoning, Text: "hm", Replay: json.RawMessage(`{"sig":1}`), Route: "r"}
		x := start(t, -1, reply(protocol.StopToolUse, thought, prose("let me"), call("a"), call("b")), results(good("b"), good("a")))
		x.messages("user text=hello", "assistant reasoning=hm prose=let me toolCall=a toolCall=b", "user toolResult=a:success toolResult=b:success")
		var kinds []string
		for _, e := range x.effects {
			if e.Waits() {
				kinds = append(kinds, string(e.Kind))
			}
		}
		if want := []string{"sync", "model", "tools", "checkpoint", "sync", "model"}; !slices.Equal(kinds, want) {
			t.Errorf("effects %q, want %q", kinds, want)
		}
	})

	t.Run("runtime/R01 prose is the answer", func(t *testing.T) {
		x := start(t, -1, reply(protocol.StopEnd, prose("hi "), prose("you")))
		x.ends(protocol.TurnOutcome{Kind: protocol.OutcomeAssistantMessage, Text: "hi you"})
		x.messages("user text=hello", "assistant prose=hi  prose=you")
	})

	t.Run("runtime/R01 what was said on the way is no part of the answer, unless there is nothing else", func(t *testing.T) {
		commentary := protocol.Part{Kind: protocol.PartCommentary, Text: "let me think"}
		x := start(t, -1, reply(protocol.StopEnd, commentary, prose("42")))
		x.ends(protocol.TurnOutcome{Kind: protocol.OutcomeAssistantMessage, Text: "42"})
		x.messages("user text=hello", "assistant commentary=let me think prose=42")
		x = start(t, -1, reply(protocol.StopEnd, commentary))
		x.ends(protocol.TurnOutcome{Kind: protocol.OutcomeAssistantMessage, Text: "let me think"})
	})

	t.Run("runtime/R01 an input before the end goes on", func(t *testing.T) {
		x := start(t, -1, reply(protocol.StopEnd, prose("hi")), steered("wait"), reply(protocol.StopEnd, prose("yes?")))
		x.ends(protocol.TurnOutcome{Kind: protocol.OutcomeAssistantMessage, Text: "yes?"})
		x.messages("user text=hello", "assistant prose=hi", "user text=wait", "assistant prose=yes?")
	})

	t.Run("runtime/R01 nothing after results is an answer", func(t *testing.T) {
		x := start(t, -1, reply(protocol.StopToolUse, call("a")), results(good("a")), reply(protocol.StopEnd))
		x.ends(protocol.TurnOutcome{Kind: protocol.OutcomeAssistantMessage})
		x.messages("user text=hello", "assistant toolCall=a", "user toolResult=a:success")
	})

	t.Run("runtime/R01 nothing otherwise is an error", func(t *testing.T) {
		want := protocol.TurnOutcome{Kind: protocol.OutcomeProviderError, Text: "the model answered with nothing"}
		for name, answers := range map[string][]turn.Response{
			"at once":          {reply(protocol.StopEnd)},
			"blank":            {reply(protocol.StopEnd, prose(" \n"))},
			"thought only":     {reply(protocol.StopEnd, protocol.Part{Kind: protocol.PartReasoning, Text: "hm"})},
			"after an input":   {reply(protocol.StopEnd, prose("hi")), steered("wait"), reply(protocol.StopEnd)},
			"results, input":   {reply(protocol.StopToolUse, call("a")), results(good("a")), steered("wait"), reply(protocol.StopEnd)},
			"not just results": {reply(protocol.StopToolUse, call("a")), results(good("a")), reply(protocol.StopEnd, prose("x")), steered("y"), reply(protocol.StopEnd)},
		} {
			t.Run(name, func(t *testing.T) {
				x := start(t, -1, answers...)
				x.ends(want)
				if issues := x.m.Result().Issues; len(issues) != 1 || issues[0].Code != "empty_response" {
					t.Errorf("issues are %+v", issues)
				}
			})
		}
	})

	t.Run("runtime/R01 the output limit keeps the partial text", func(t *testing.T) {
		x := start(t, -1, reply(protocol.StopOutputLimit, prose("once upon"), call("a")))
		x.ends(protocol.TurnOutcome{Kind: protocol.OutcomeIncomplete, Text: "once upon"})
		x.messages("user text=hello", "assistant prose=once upon")
	})

	t.Run("runtime/T15 the budget ends the turn where a person sees it", func(t *testing.T) {
		const text = "The turn was stopped: it has used up its budget of model calls."
		var answers []turn.Response
		for i := range 3 {
			id := protocol.CallID(fmt.Sprint(i))
			answers = append(answers, reply(protocol.StopToolUse, call(id)), results(good(id)))
		}
		x := start(t, 3, answers...)
		x.ends(protocol.TurnOutcome{Kind: protocol.OutcomeMaxTurns, Text: text})
		x.messages("user text=hello", "assistant toolCall=0", "user toolResult=0:success", "assistant toolCall=1",
			"user toolResult=1:success", "assistant toolCall=2", "user toolResult=2:success", "system error="+text)
		if e := x.effects[len(x.effects)-2]; e.Kind != turn.EffectProgress || e.Progress.Ordinal != 7 {
			t.Errorf("the message is not shown: %+v", e)
		}
		x = start(t, 3, append(answers[:4:4], reply(protocol.StopEnd, prose("in time")))...)
		x.ends(protocol.TurnOutcome{Kind: protocol.OutcomeAssistantMessage, Text: "in time"})
	})
}

func TestControls(t *testing.T) {
	tool := func(kind protocol.OutcomeKind, id string) protocol.TurnOutcome {
		return protocol.TurnOutcome{Kind: kind, Tool: "tool_" + id, Value: json.RawMessage(`"` + id + `"`)}
	}
	for _, c := range []struct {
		name    string
		replies []turn.ToolReply
		want    protocol.TurnOutcome
	}{
		{"finish", []turn.ToolReply{controlled("a", protocol.ControlFinish)}, tool(protocol.OutcomeToolValue, "a")},
		{"fail", []turn.ToolReply{controlled("a", protocol.ControlFail)}, tool(protocol.OutcomeToolError, "a")},
		{"switch", []turn.ToolReply{controlled("a", protocol.ControlSwitchFrame)}, protocol.TurnOutcome{
			Kind: protocol.OutcomeFrameSwitch, Frame: &protocol.FrameSwitch{Key: "k", Task: "a"},
		}},
		{"the first in the order of the calls", []turn.ToolReply{
			controlled("b", protocol.ControlFail), controlled("a", protocol.ControlFinish),
		}, tool(protocol.OutcomeToolValue, "a")},
		{"that of a failed call is ignored", []turn.ToolReply{
			bad(controlled("a", protocol.ControlFinish)), controlled("b", protocol.ControlFail),
		}, tool(protocol.OutcomeToolError, "b")},
	} {
		t.Run("runtime/T11 "+c.name, func(t *testing.T) {
			x := start(t, -1, reply(protocol.StopToolUse, call("a"), call("b")), results(append(c.replies, good("b"))...))
			x.ends(c.want)
			if n := len(x.m.Messages()); n != 3 {
				t.Errorf("%d messages, want the results to be the third", n)
			}
		})
	}

	t.Run("runtime/T11 a failed call's control alone changes nothing", func(t *testing.T) {
		x := start(t, -1, reply(protocol.StopToolUse, call("a")), results(bad(controlled("a", protocol.ControlFinish))), reply(protocol.StopEnd, prose("sorry")))
		x.ends(protocol.TurnOutcome{Kind: protocol.OutcomeAssistantMessage, Text: "sorry"})
	})
}

func TestPrepare(t *testing.T) {
	choice := func(v turn.View) provider.ToolChoice {
		d := probe{grace: v.Grace}
		m := turn.New(d, turn.Config{Budget: protocol.Budget{Iterations: -1}})
		for e, ok := m.Next(); ok; e, ok = m.Next() {
			switch e.Kind {
			case turn.EffectSync:
				m.Deliver(e.ID, turn.Response{Sync: &turn.Environment{Tools: v.Tools}})
			case turn.EffectModel:
				return e.Model.Choice
			}
		}
		return "nothing"
	}
	t.Run("runtime/R01 tools are offered where there are any, but not in a grace iteration", func(t *testing.T) {
		tools := []protocol.ToolManifest{{Name: "look"}}
		for want, v := range map[provider.ToolChoice]turn.View{provider.ToolsAuto: {Tools: tools}, provider.ToolsNone: {}} {
			if got := choice(v); got != want {
				t.Errorf("choice %s for %+v, want %s", got, v, want)
			}
		}
		if got := choice(turn.View{Tools: tools, Grace: true}); got != provider.ToolsNone {
			t.Errorf("choice %s in a grace iteration", got)
		}
	})
}

// probe is the standard driver, in a grace iteration if wanted.
type probe struct {
	Driver
	grace bool
}

func (p probe) Prepare(v turn.View) []turn.Action {
	v.Grace = p.grace
	return p.Driver.Prepare(v)
}

func TestFactory(t *testing.T) {
	host, err := plugin.NewHost([]plugin.Factory{Factory{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := host.Open(t.Context(), ID, nil, plugin.BuildContext{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if actions := s.Driver().Prepare(turn.View{Iteration: 1}); len(actions) != 1 {
		t.Errorf("the driver begins with %d actions", len(actions))
	}
	none := tool.NewRegistry(nil, nil, protocol.ToolState{}).Catalog()
	if got, err := s.Preamble(t.Context(), none); got.Text != "" || err != nil {
		t.Errorf("without tools the prompt is %q, %v", got, err)
	}
}
