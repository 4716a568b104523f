package rlm

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

func TestObservation(t *testing.T) {
	for name, c := range map[string]struct {
		reply turn.CellReply
		want  string
	}{
		"nothing":         {turn.CellReply{Value: json.RawMessage("null")}, "The code ran and printed nothing."},
		"printed text":    {turn.CellReply{Printed: "a\nb\n"}, "a\nb"},
		"a value":         {turn.CellReply{Printed: "a\n", Value: json.RawMessage(`{"b":[1]}`)}, "a\nValue: {\"b\":[1]}"},
		"an error":        {turn.CellReply{Printed: "a\n", Error: "b is not defined"}, "a\nError: b is not defined"},
		"an error's line": {turn.CellReply{Error: "b", Position: &protocol.CodePosition{Line: 3}}, "Error in line 3: b"},
		"lost globals": {turn.CellReply{Unsaved: []protocol.UnsavedGlobal{{Name: "f", Reason: "a closure"}, {Name: "g", Reason: "a cycle"}}},
			"These globals cannot be stored and may be gone in later turns: f (a closure), g (a cycle)"},
	} {
		t.Run("runtime/R12 the model reads of a cell: "+name, func(t *testing.T) {
			if got := observation(c.reply, "").Parts[0].Text; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	t.Run("runtime/R12 a long output is cut to 10,000 characters, with its beginning, its end and a note", func(t *testing.T) {
		msg := observation(turn.CellReply{Printed: "begin" + strings.Repeat("世", 20_000), Error: "the end"}, "")
		got := msg.Parts[0].Text
		if n := utf8.RuneCountInString(got); n != 10_000 || !utf8.ValidString(got) {
			t.Errorf("%d characters", n)
		}
		const note = "\n[... 10,103 characters are left out here. Print less at a time to read them. ...]\n"
		if !strings.HasPrefix(got, "begin世") || !strings.HasSuffix(got, "世\nError: the end") || !strings.Contains(got, note) {
			t.Errorf("the note is missing: %.80q ... %q", got[20_000:], got[len(got)-40:])
		}
	})
	t.Run("runtime/R12 exactly 10,000 characters are not cut", func(t *testing.T) {
		text := strings.Repeat("世", 10_000)
		if got := observation(turn.CellReply{Printed: text}, "").Parts[0].Text; got != text {
			t.Errorf("%d bytes of %d", len(got), len(text))
		}
	})
	t.Run("runtime/R09 people get the result as data, without values over 64 KiB", func(t *testing.T) {
		value, _ := json.Marshal(strings.Repeat("v", 70_000))
		got := observation(turn.CellReply{ID: "c1", Printed: strings.Repeat("世", 30_000), Value: value, Changed: []string{"x"}, Error: "e", Position: &protocol.CodePosition{Line: 1}}, "").Parts[0].Cell
		if len(got.Printed) != 65_535 || got.Value != nil || got.CellID != "c1" || got.Changed[0] != "x" || got.Error != "e" || got.Position.Line != 1 {
			t.Errorf("%d bytes printed, value of %d, %+v", len(got.Printed), len(got.Value), got.CellID)
		}
	})
}

func TestTail(t *testing.T) {
	for _, c := range []struct {
		used int64
		want string
	}{
		{59_999, ""},
		{60_000, "The conversation has about 60,000 of 100,000 tokens. Keep long values in globals and print only what you need to read."},
		{89_999, "The conversation has about 89,999 of 100,000 tokens. Keep long values in globals and print only what you need to read."},
		{90_000, "The conversation has about 90,000 of 100,000 tokens. Finish soon, or continue with less context: continue_as(task, seed) starts again with only the task and the values of seed."},
		{1_234_567, "The conversation has about 1,234,567 of 100,000 tokens. It is too long. Finish now, or call continue_as(task, seed), which starts again with only the task and the values of seed."},
	} {
		t.Run("runtime/R02 the advice about the size of the conversation changes at 60, 90 and 100 per cent", func(t *testing.T) {
			if got := contextText(c.used, defaultAdvice); got != c.want {
				t.Errorf("%d tokens: %q", c.used, got)
			}
		})
	}
	t.Run("runtime/R02 the globals of earlier cells and the advice are at the end of the prompt", func(t *testing.T) {
		x := &talk{T: t, m: turn.New(Driver{}, config(9, `{"contextAdvice":1000}`)), code: turn.CodeEnvironment{Language: "starlark", Context: 700, Globals: []protocol.CodeGlobal{
			{Name: "df", Type: "list", Size: 3200}, {Name: "f", Type: "function"},
		}}}
		tail := x.run().last(turn.EffectModel).Model.Transient
		const want = "Globals from earlier cells: df (list, 3,200 bytes), f (function).\nThe conversation has about 700 of 1,000 tokens. Keep long values in globals and print only what you need to read."
		if len(tail) != 1 || tail[0].Parts[0].Text != want || !tail[0].Origin.Transient {
			t.Errorf("the tail is %+v", tail)
		}
	})
	t.Run("runtime/R02 at most 50 globals are listed", func(t *testing.T) {
		got := globalsText(make([]protocol.CodeGlobal, 53))
		if !strings.HasSuffix(got, "(), and 3 more.") || strings.Count(got, "()") != 50 {
			t.Errorf("%q", got)
		}
	})
}
