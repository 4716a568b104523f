package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"lashd/engine"
	"lashd/engine/provider"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// busyModel makes a number of replies with a number of parallel tool calls each, and then ends.
func busyModel(times, atOnce int) provider.Provider {
	made := 0
	return modelFunc(func(_ context.Context, _ *provider.Request, yield func(provider.Chunk, error) bool) {
		if made++; made > times {
			yield(provider.Chunk{Text: "done", Stop: protocol.StopEnd}, nil)
			return
		}
		for i := range atOnce {
			call := &protocol.ToolCall{CallID: protocol.CallID(fmt.Sprint("c", made, "_", i)), Name: "look", Args: []byte(`{}`)}
			if !yield(provider.Chunk{Part: &protocol.Part{Kind: protocol.PartToolCall, Call: call}}, nil) {
				return
			}
		}
		yield(provider.Chunk{Stop: protocol.StopToolUse}, nil)
	})
}

// TestLongTurns runs turns that are larger than other commits may be, and checks that nothing of them is lost.
func TestLongTurns(t *testing.T) {
	for _, c := range []struct {
		name                 string
		times, atOnce, bytes int
		state                protocol.TurnState
		calls                int
	}{
		{"many steps", 260, 1, 10, protocol.TurnCompleted, 260},
		{"a batch larger than one commit", 1, 150, 60_000, protocol.TurnCompleted, 150},
		{"more than one turn can store", 100, 8, 1 << 20, protocol.TurnFailed, 16},
	} {
		t.Run("issue/2 "+c.name, func(t *testing.T) {
			look := toolFunc{name: "look", contract: protocol.ToolContract{Replay: protocol.ReplaySafe}, run: func(context.Context, tool.Invocation) (tool.Result, error) {
				return tool.Result{Output: protocol.Succeed(strings.Repeat("x", c.bytes))}, nil
			}}
			d := start(t, setup{model: busyModel(c.times, c.atOnce), tools: []tool.Provider{look}, config: func(c *engine.Config) { c.Defaults.Budget.Iterations = -1 }})
			id := d.session(t)
			report := d.turn(t, id, "go")
			if report.State != c.state || len(report.ToolCalls) != c.calls {
				t.Errorf("the turn is %s after %d calls, %+v; want %s after %d", report.State, len(report.ToolCalls), report.Issues, c.state, c.calls)
			}
			if c.state == protocol.TurnFailed && (len(report.Issues) != 1 || report.Issues[0].Code != "turn_full") {
				t.Errorf("it failed because of %+v", report.Issues)
			}
			nodes := 0
			for cursor := ""; ; {
				page := must[*protocol.GraphReadResult](t)(d.History.Read(t.Context(), &protocol.GraphReadParams{SessionID: id, Cursor: cursor}))
				nodes += len(page.Data)
				if cursor = page.NextCursor; cursor == "" {
					break
				}
			}
			if nodes < 2*c.calls/c.atOnce {
				t.Errorf("%d nodes of the turn are kept", nodes)
			}
		})
	}
}
