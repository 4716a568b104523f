package cli

import (
	"testing"

	"lashd/rpc/protocol"
)

func TestCellLines(t *testing.T) {
	t.Run("issue/19-5 a code cell takes two lines, one for the code and one for the result", func(t *testing.T) {
		item := &protocol.Item{Kind: protocol.ItemCodeCell, Language: "starlark", Text: "a = 1\nprint(a)"}
		if got := codeLine(item); got != "[starlark a = 1 print(a)]" {
			t.Errorf("the code is %q", got)
		}
		for want, r := range map[string]*protocol.CodeResult{
			"[starlark, 1.2 s: 1 Value: 2]":                              {Printed: "1\n", Value: []byte("2"), DurationMs: 1200},
			"[starlark, 0 ms: done]":                                     {Value: []byte("null")},
			"[starlark, 0 ms: failed: Error in line 2: no]":              {Printed: "1", Error: "no", Position: &protocol.CodePosition{Line: 2}},
			"[starlark, failed: the code is incomplete and was not run]": nil,
		} {
			item.Cell = r
			if got := cellOutcome(item); got != want {
				t.Errorf("the result is %q, want %q", got, want)
			}
		}
	})
	t.Run("issue/19-8 a call of a cell takes one line, with its arguments, duration and result", func(t *testing.T) {
		call := protocol.CellCall{Index: 1, Tool: "read", Args: []byte(`{"path":"a"}`), Status: protocol.ItemDone, DurationMs: 3, Summary: "module x"}
		failed, unknown := call, call
		failed.Status, unknown.Status = protocol.ItemFailed, protocol.ItemUnknown
		r := &protocol.CodeResult{Calls: []protocol.CellCall{call, failed, unknown, {Tool: "list", Status: protocol.ItemDone}}, MoreCalls: 120}
		want := `  [Read a, 3 ms: module x]` + "\n" + `  [Read a, 3 ms: failed: module x]` + "\n" +
			`  [Read a, 3 ms: outcome unknown]` + "\n  [Listed, 0 ms: done]\n  [120 more calls]\n"
		if got := cellCallLines(r); got != want {
			t.Errorf("the calls are\n%s\nwant\n%s", got, want)
		}
	})
}
