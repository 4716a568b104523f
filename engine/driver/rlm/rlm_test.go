package rlm

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/provider"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// talk is a turn with this driver. Each answer is the answer to the next model call or cell.
type talk struct {
	*testing.T
	m       *turn.Machine
	code    turn.CodeEnvironment
	effects []turn.Effect
}

// config is a turn with options.
func config(iterations int, payload string) turn.Config {
	c := turn.Config{
		Input:  []protocol.Message{{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: "hello"}}}},
		Budget: protocol.Budget{Iterations: iterations},
	}
	if payload != "" {
		c.Options = &protocol.TurnOptions{SchemaVersion: 1, Payload: json.RawMessage(payload)}
	}
	return c
}

// start runs a turn until its answers are used up.
func start(t *testing.T, c turn.Config, answers ...turn.Response) *talk {
	x := &talk{T: t, m: turn.New(Driver{}, c), code: turn.CodeEnvironment{Language: "starlark"}}
	return x.run(answers...)
}

// run continues the turn until its answers are used up.
func (x *talk) run(answers ...turn.Response) *talk {
	for e, ok := x.m.Next(); ok; e, ok = x.m.Next() {
		x.effects = append(x.effects, e)
		switch {
		case e.Kind == turn.EffectSync:
			code := x.code
			x.m.Deliver(e.ID, turn.Response{Sync: &turn.Environment{System: "s", Tools: []protocol.ToolManifest{{Name: "look"}}, Code: &code}})
		case e.Kind == turn.EffectCheckpoint:
			x.m.Deliver(e.ID, turn.Response{Checkpoint: &turn.Delivery{}})
		case e.Waits() && len(answers) == 0:
			return x
		case e.Waits():
			x.m.Deliver(e.ID, answers[0])
			answers = answers[1:]
		}
	}
	return x
}

// says answers a model call with text.
func says(text string) turn.Response { return stops(protocol.StopEnd, text) }

// stops answers a model call with text and a stop reason.
func stops(stop protocol.StopReason, text string) turn.Response {
	return turn.Response{Model: &turn.ModelReply{Reply: provider.Reply{
		Stop: stop, Parts: []protocol.Part{{Kind: protocol.PartProse, Text: text}},
	}}}
}

// ran answers a cell.
func ran(r turn.CellReply) turn.Response { return turn.Response{Code: &r} }

// cell is the text of a reply with a code cell.
func cell(source string) string { return "Look:\n<starlark>\n" + source + "\n</starlark>\n" }

// last returns the newest effect of a kind.
func (x *talk) last(kind turn.EffectKind) turn.Effect {
	x.Helper()
	for i := len(x.effects) - 1; i >= 0; i-- {
		if x.effects[i].Kind == kind {
			return x.effects[i]
		}
	}
	x.Fatalf("no %s effect", kind)
	panic("unreachable")
}

// decisions returns the decisions that observers were told.
func (x *talk) decisions() string {
	var all []string
	for _, e := range x.effects {
		if e.Kind == turn.EffectEmit {
			var body struct {
				Decision    string
				Fingerprint string
			}
			if err := json.Unmarshal(e.Emit.Body, &body); err != nil || len(body.Fingerprint) != 16 {
				x.Errorf("decision %s: %v", e.Emit.Body, err)
			}
			all = append(all, body.Decision)
		}
	}
	return strings.Join(all, " ")
}

// messages compares the messages of the turn, one line for each.
func (x *talk) messages(want ...string) {
	x.Helper()
	var got []string
	for _, m := range x.m.Messages() {
		var line strings.Builder
		line.WriteString(string(m.Role))
		for _, p := range m.Parts {
			fmt.Fprintf(&line, " %s %q", p.Kind, p.Text)
		}
		got = append(got, line.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		x.Errorf("messages: %s", diff)
	}
}

// text returns the text of the newest message.
func (x *talk) text() string {
	msgs := x.m.Messages()
	return msgs[len(msgs)-1].Parts[0].Text
}

// ends compares the outcome of the turn.
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

const mustFinish = `{"termination":{"kind":"finish"}}`

func TestTurns(t *testing.T) {
	t.Run("runtime/R02 a cell runs, its result is a message, and history has the reply as it was written", func(t *testing.T) {
		x := start(t, config(9, ""), says(cell("x = 1\nprint(x)")+"Output: 1\nDone!"), ran(turn.CellReply{Printed: "1\n", Value: json.RawMessage(`[2]`)}), says("It is 1."))
		x.messages(`user text "hello"`,
			`assistant prose "Look:\n" code "<starlark>\nx = 1\nprint(x)\n</starlark>"`,
			`user output "1\nValue: [2]"`,
			`assistant prose "It is 1."`)
		x.ends(protocol.TurnOutcome{Kind: protocol.OutcomeAssistantMessage, Text: "It is 1."})
		if got := x.decisions(); got != "execute finish" {
			t.Errorf("decisions %q", got)
		}
		if c := x.last(turn.EffectCode).Code; c.Source != "x = 1\nprint(x)" || c.Language != "starlark" || !c.AcceptFinish {
			t.Errorf("the cell is %+v", c)
		}
	})
	t.Run("runtime/R02 requests have no tools and tool choice none", func(t *testing.T) {
		call := start(t, config(9, "")).last(turn.EffectModel).Model
		if len(call.Tools) != 0 || call.Choice != provider.ToolsNone || call.Language != "starlark" || len(call.Transient) != 0 {
			t.Errorf("%d tools, choice %s, language %q, %d transient messages", len(call.Tools), call.Choice, call.Language, len(call.Transient))
		}
	})
	t.Run("runtime/R02 reasoning stays in its place, and everything after the cell is dropped", func(t *testing.T) {
		part := func(kind protocol.PartKind, text string) protocol.Part { return protocol.Part{Kind: kind, Text: text} }
		reply := provider.Reply{Stop: protocol.StopEnd, Parts: []protocol.Part{
			part(protocol.PartReasoning, "hm"), part(protocol.PartCommentary, "I look.\n"), part(protocol.PartCode, "<starlark>\nx\n</starlark>"),
			part(protocol.PartReasoning, "and then"), part(protocol.PartProse, "It is 3."),
		}}
		x := start(t, config(9, ""), turn.Response{Model: &turn.ModelReply{Reply: reply}})
		x.messages(`user text "hello"`, `assistant reasoning "hm" commentary "I look.\n" code "<starlark>\nx\n</starlark>"`)
	})
	t.Run("runtime/R02 a session without a code executor fails its turns and says what to do", func(t *testing.T) {
		m := turn.New(Driver{}, config(9, ""))
		e, _ := m.Next()
		m.Deliver(e.ID, turn.Response{Sync: &turn.Environment{}})
		if r := m.Result(); r.Outcome == nil || r.Outcome.Kind != protocol.OutcomeRuntimeError || r.Issues[0].Code != "no_code_executor" {
			t.Errorf("%+v %+v", r.Outcome, r.Issues)
		}
	})
	t.Run("runtime/R03 an empty reply fails the turn, but not after the result of a cell", func(t *testing.T) {
		x := start(t, config(9, ""), says(" \n"))
		x.ends(protocol.TurnOutcome{Kind: protocol.OutcomeProviderError, Text: "the model answered with nothing"})
		x = start(t, config(9, ""), says(cell("x")), ran(turn.CellReply{}), says(""))
		x.ends(protocol.TurnOutcome{Kind: protocol.OutcomeAssistantMessage})
	})
	t.Run("runtime/R03 after the budget the model has one reply for its answer", func(t *testing.T) {
		x := start(t, config(1, ""), says(cell("x")), ran(turn.CellReply{}))
		if tail := x.last(turn.EffectModel).Model.Transient[0].Parts[0].Text; tail != "This is the last reply of the turn. Write your answer without a code cell: code is not run any more." {
			t.Errorf("the model reads %q", tail)
		}
		x.run(says("3"))
		x.ends(protocol.TurnOutcome{Kind: protocol.OutcomeAssistantMessage, Text: "3"})
		x = start(t, config(1, ""), says(cell("x")), ran(turn.CellReply{}), says(cell("y")))
		x.ends(protocol.TurnOutcome{Kind: protocol.OutcomeMaxTurns, Text: "The turn was stopped: it has used up its budget of model calls."})
		if x.text() != "The code was not run: the turn has used up its budget of model calls." {
			t.Errorf("history ends with %q", x.text())
		}
	})
}

func TestRepairs(t *testing.T) {
	fence := "```python\nprint(1)\n```"
	for name, c := range map[string]struct {
		options, reply  string
		stop            protocol.StopReason
		decision, issue string
		reads           string // a part of the message to the model
	}{
		"unclosed cell":              {reply: "a\n<starlark>\nx = 1\n", decision: "unclosedCell", issue: "unclosed_cell", reads: "no closing line </starlark>"},
		"cell cut by the limit":      {reply: "a\n<starlark>\nx = 1", stop: protocol.StopOutputLimit, decision: "cutCell", issue: "cut_cell", reads: "the output limit inside the code cell"},
		"prose cut by the limit":     {reply: "a long", stop: protocol.StopOutputLimit, decision: "cutProse", issue: "cut_prose", reads: "keep it shorter"},
		"prose cut, finish required": {options: mustFinish, reply: "a long", stop: protocol.StopOutputLimit, decision: "cutProse", issue: "cut_prose", reads: "Write the line <starlark>"},
		"tags of another dialect":    {reply: "Look:\n<python>\nprint(1)\n</python>", decision: "foreignCell", issue: "foreign_cell", reads: "Write the line <starlark>"},
		"tags in another case":       {reply: "<Starlark>\nprint(1)\n</Starlark>", decision: "foreignCell", issue: "foreign_cell", reads: "<starlark>"},
		"only a code fence":          {reply: fence, decision: "foreignCell", issue: "foreign_cell", reads: "with a sentence of text before it"},
		"prose, finish required":     {options: mustFinish, reply: "It is 3.", decision: "askForFinish", issue: "finish_required", reads: "calls finish(value)"},
		"nothing, finish required":   {options: mustFinish, reply: "", decision: "askForFinish", issue: "finish_required", reads: "calls finish(value)"},
		"tags within a line":         {options: mustFinish, reply: "<starlark>finish(1)</starlark>", decision: "malformedCell", issue: "malformed_cell", reads: "Each tag is alone on its line"},
		"a fence in prose":           {options: mustFinish, reply: "Look:\n" + fence, decision: "malformedCell", issue: "malformed_cell", reads: "Each tag is alone on its line"},
	} {
		t.Run("runtime/R03 a reply is repaired: "+name, func(t *testing.T) {
			stop := c.stop
			if stop == "" {
				stop = protocol.StopEnd
			}
			x := start(t, config(9, c.options), stops(stop, c.reply))
			if x.last(turn.EffectModel).Iteration != 2 {
				t.Fatalf("the turn is in iteration %d, outcome %+v", x.last(turn.EffectModel).Iteration, x.m.Result().Outcome)
			}
			issues := x.m.Result().Issues
			if x.decisions() != c.decision || len(issues) != 1 || issues[0].Code != c.issue || issues[0].Kind != "protocol" {
				t.Errorf("decisions %q, issues %+v", x.decisions(), issues)
			}
			if !strings.Contains(x.text(), c.reads) || x.m.Messages()[len(x.m.Messages())-1].Role != protocol.RoleEvent {
				t.Errorf("the model reads %q", x.text())
			}
		})
	}
	for name, reply := range map[string]string{
		"code in a fence with text":   "This is how:\n" + fence + "\nRun it with python3.",
		"a fence of data":             "```json\n{\"a\": 1}\n```",
		"a fence without a language":  "```\nprint(1)\n```",
		"two fences":                  fence + "\n" + fence,
		"tags in a fence":             "Write:\n```\n<python>\nx\n</python>\n```",
		"HTML":                        "<code>\nx\n</code>\n<script>\ny\n</script>",
		"tags within a line":          "A cell is `<starlark>x</starlark>`.",
		"a lone tag of a dialect":     "<python>\nis the tag",
		"a closing tag of a dialect":  "the end is\n</python>",
		"a tag that another closes":   "<python>\nx\n</bash>",
		"an unknown tag on two lines": "<result>\n3\n</result>",
	} {
		t.Run("runtime/R03 an answer is not repaired: "+name, func(t *testing.T) {
			x := start(t, config(9, ""), says(reply))
			x.ends(protocol.TurnOutcome{Kind: protocol.OutcomeAssistantMessage, Text: reply})
			if n := len(x.m.Result().Issues); n != 0 || x.decisions() != "finish" {
				t.Errorf("%d issues, decisions %q", n, x.decisions())
			}
		})
	}
	t.Run("runtime/R03 a lone code fence that the model repeats is its answer", func(t *testing.T) {
		x := start(t, config(9, ""), says(fence), says(fence))
		x.ends(protocol.TurnOutcome{Kind: protocol.OutcomeAssistantMessage, Text: fence})
	})
	t.Run("runtime/R03 repairs without progress end the turn", func(t *testing.T) {
		c := config(-1, "")
		c.Budget.NoProgress = 3
		x := start(t, c, says("<starlark>\na"), says("<starlark>\nb"), says("<starlark>\nc"))
		if o := x.m.Result().Outcome; o == nil || o.Kind != protocol.OutcomeMaxTurns || o.Text != "stopped after 3 unsuccessful attempts in a row" {
			t.Errorf("the turn ended as %+v", o)
		}
	})
	t.Run("runtime/R03 a native tool call fails the turn, and history has no call", func(t *testing.T) {
		call := protocol.Part{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: "1", Name: "look", Args: json.RawMessage(`{}`)}}
		x := start(t, config(9, ""), turn.Response{Model: &turn.ModelReply{Reply: provider.Reply{Stop: protocol.StopToolUse, Parts: []protocol.Part{call}}}})
		r := x.m.Result()
		if r.Outcome == nil || r.Outcome.Kind != protocol.OutcomeRuntimeError || r.Issues[0].Code != "unexpected_tool_call" || x.decisions() != "nativeCall" {
			t.Errorf("%+v %+v", r.Outcome, r.Issues)
		}
		x.messages(`user text "hello"`)
	})
}

// ends is the control of a cell that ends the turn.
func control(kind protocol.ControlKind, value string) turn.Response {
	return ran(turn.CellReply{Control: &protocol.ToolControl{Kind: kind, Value: json.RawMessage(value)}})
}

func TestTermination(t *testing.T) {
	for name, c := range map[string]struct{ options, value, text string }{
		"a text in Markdown":   {`{"answer":"markdown"}`, `"It is *3*."`, "It is *3*."},
		"an object, Markdown":  {``, `{"a":1}`, "```json\n{\n  \"a\": 1\n}\n```"},
		"a text as a value":    {`{"answer":"value"}`, `"It is 3."`, `"It is 3."`},
		"nothing, as a value":  {`{"answer":"value"}`, ``, `null`},
		"a required value":     {mustFinish, `3`, "```json\n3\n```"},
		"a value for a schema": {`{"termination":{"kind":"finish","schema":{"type":"integer"}}}`, `3`, "```json\n3\n```"},
	} {
		t.Run("runtime/R04 finish ends the turn with "+name, func(t *testing.T) {
			x := start(t, config(9, c.options), says(cell("finish(x)")), control(protocol.ControlFinish, c.value))
			value := c.value
			if value == "" {
				value = "null"
			}
			x.ends(protocol.TurnOutcome{Kind: protocol.OutcomeFinalValue, Text: c.text, Value: json.RawMessage(value)})
			msgs := x.m.Messages()
			if p := msgs[len(msgs)-1].Parts[0]; p.Kind != protocol.PartOutput || !p.Cell.Final || string(p.Cell.Value) != value {
				t.Errorf("history ends with %+v", p)
			}
		})
	}
	t.Run("runtime/R04 a value that does not match the schema is repaired and counts as no progress", func(t *testing.T) {
		c := config(9, `{"termination":{"kind":"finish","schema":{"type":"integer"}}}`)
		c.Budget.NoProgress = 2
		x := start(t, c, says(cell("finish('a')")), control(protocol.ControlFinish, `"a"`))
		if s := string(x.last(turn.EffectCode).Code.Schema); s != `{"type":"integer"}` {
			t.Errorf("the executor gets the schema %q", s)
		}
		if !strings.HasPrefix(x.text(), "Error: finish: the value does not match the schema of this turn") || !strings.Contains(x.text(), `{"type":"integer"}`) {
			t.Errorf("the model reads %q", x.text())
		}
		if x.decisions() != "execute wrongValue" || x.m.Result().Issues[0].Code != "wrong_value" {
			t.Errorf("decisions %q, issues %+v", x.decisions(), x.m.Result().Issues)
		}
		x.run(says(cell("finish('b')")), control(protocol.ControlFinish, `"b"`))
		if o := x.m.Result().Outcome; o == nil || o.Kind != protocol.OutcomeMaxTurns {
			t.Errorf("the turn ended as %+v", o)
		}
	})
	t.Run("runtime/R04 the model reads at the end of the prompt that the turn must end with finish", func(t *testing.T) {
		call := start(t, config(9, `{"termination":{"kind":"finish","schema":{"type":"integer"}}}`)).last(turn.EffectModel).Model
		const want = `This turn ends only when a code cell calls finish(value). The value must match this JSON Schema: {"type":"integer"}`
		if len(call.Transient) != 1 || call.Transient[0].Parts[0].Text != want || !call.Transient[0].Origin.Transient {
			t.Errorf("the tail is %+v", call.Transient)
		}
	})
	t.Run("runtime/R04 submit_error fails the turn with its value", func(t *testing.T) {
		x := start(t, config(9, ""), says(cell("submit_error('no')")), control(protocol.ControlFail, `{"why":"no"}`))
		x.ends(protocol.TurnOutcome{Kind: protocol.OutcomeSubmittedError, Text: `{"why":"no"}`, Value: json.RawMessage(`{"why":"no"}`)})
	})
	t.Run("runtime/R05 continue_as switches to another frame", func(t *testing.T) {
		to := &protocol.FrameSwitch{Key: "k", Task: "go on"}
		x := start(t, config(9, ""), says(cell("continue_as('go on')")), ran(turn.CellReply{Control: &protocol.ToolControl{Kind: protocol.ControlSwitchFrame, Frame: to}}))
		x.ends(protocol.TurnOutcome{Kind: protocol.OutcomeFrameSwitch, Frame: to})
		if x.text() != "The work continues in a new frame." {
			t.Errorf("history ends with %q", x.text())
		}
	})
	t.Run("runtime/R05 a switch without a task is ignored", func(t *testing.T) {
		x := start(t, config(9, ""), says(cell("x")), ran(turn.CellReply{Control: &protocol.ToolControl{Kind: protocol.ControlSwitchFrame, Frame: &protocol.FrameSwitch{Key: "k"}}}))
		if x.m.Finished() {
			t.Errorf("the turn ended as %+v", x.m.Result().Outcome)
		}
	})
	t.Run("runtime/R12 code that failed does not end the turn", func(t *testing.T) {
		x := start(t, config(9, ""), says(cell("finish(1)\nx")), ran(turn.CellReply{Error: "x is not defined", Position: &protocol.CodePosition{Line: 2, Column: 1},
			Control: &protocol.ToolControl{Kind: protocol.ControlFinish, Value: json.RawMessage("1")}}))
		if x.m.Finished() || x.text() != "Error in line 2, column 1: x is not defined" {
			t.Errorf("the model reads %q, outcome %+v", x.text(), x.m.Result().Outcome)
		}
	})
}
