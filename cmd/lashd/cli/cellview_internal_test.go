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
			"[starlark: 1 Value: 2]":                                     {Printed: "1\n", Value: []byte("2")},
			"[starlark: done]":                                           {Value: []byte("null")},
			"[starlark, failed: Error in line 2: no]":                    {Printed: "1", Error: "no", Position: &protocol.CodePosition{Line: 2}},
			"[starlark, failed: the code is incomplete and was not run]": nil,
		} {
			item.Cell = r
			if got := cellOutcome(item); got != want {
				t.Errorf("the result is %q, want %q", got, want)
			}
		}
	})
}
