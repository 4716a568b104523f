package turn

import (
	"fmt"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

func TestShownCalls(t *testing.T) {
	t.Run("issue/19-8 people see a call as the code made it and what the code got of its result", func(t *testing.T) {
		call := protocol.ToolCall{CallID: "c", Name: "look", Args: []byte(`{"key":"asked"}`)}
		out := protocol.Succeed("the secret")
		masked := protocol.Succeed("line one\n\n  line two")
		got := ShownCall(call, 3, &ToolReply{Args: []byte(`{"key":"secret"}`), Output: out, Shown: &masked, DurationMs: 7})
		if s := fmt.Sprintf("%+v", got); s != fmt.Sprintf("%+v", protocol.CellCall{
			CallID: "c", Index: 3, Tool: "look", Args: []byte(`{"key":"asked"}`), Status: protocol.ItemDone, DurationMs: 7, Summary: "line one line two",
		}) {
			t.Errorf("it shows %s", s)
		}
	})
	t.Run("issue/19-8 the summary of a call is its error, its change or its text, and its status that of the output", func(t *testing.T) {
		for want, out := range map[string]protocol.ToolOutput{
			"failed no such file":  protocol.Fail(protocol.FailIO, "x", "no such file", protocol.FromTool),
			"completed a.go +2 -1": {Status: protocol.OutputSuccess, Text: "done", Change: &protocol.FileChange{Path: "a.go", Added: 2, Removed: 1}},
			"unknown ":             {Status: protocol.OutputUnknown},
			"failed stopped":       {Status: protocol.OutputCancelled, Text: "stopped"},
		} {
			c := ShownCall(protocol.ToolCall{}, 1, &ToolReply{Output: out})
			if got := fmt.Sprint(c.Status, " ", c.Summary); got != want {
				t.Errorf("it shows %q, want %q", got, want)
			}
		}
	})
	t.Run("issue/19-8 long arguments and results of a call are cut", func(t *testing.T) {
		long := strings.Repeat("ü", 500)
		for args, want := range map[string]string{
			`{"text":"` + long + `","n":1}`:        `{"text":"` + long[:156] + `…","n":1}`,
			`[` + strings.Repeat(`1,`, 500) + `1]`: ``,
			`{}`:                                   `{}`,
		} {
			if got := ShownCall(protocol.ToolCall{Args: []byte(args)}, 1, nil); string(got.Args) != want {
				t.Errorf("%.40s is shown as %s", args, got.Args)
			}
		}
		out := protocol.Succeed(long)
		if got := ShownCall(protocol.ToolCall{}, 1, &ToolReply{Output: out}).Summary; got != long[:156]+"…" {
			t.Errorf("the summary is %q", got)
		}
	})
}
