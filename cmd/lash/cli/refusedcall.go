package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// refusedCall is the newest call of a turn to which the sandbox refused something,
// and which can run again.
type refusedCall struct {
	tool string
	args json.RawMessage // of the call with as little more as possible
	how  string          // what it then reaches
}

// refusedIn returns the call of an item that can run again; nil: none.
func refusedIn(item *protocol.Item) *refusedCall {
	if item.Output == nil || item.Output.Refusal == nil {
		return nil
	}
	switch r := item.Output.Refusal; {
	case r.WithHosts != nil:
		return &refusedCall{cmp.Or(r.Tool, item.Tool), r.WithHosts.Retry, "with " + strings.Join(r.WithHosts.Hosts, ", ")}
	case len(r.Retry) > 0:
		return &refusedCall{cmp.Or(r.Tool, item.Tool), r.Retry, "outside the sandbox"}
	}
	return nil
}

// repeated asks the person at the terminal, after the turn, whether its refused call
// should run once more. It reports whether the call ran: the agent then reads the
// result in a turn of its own, which becomes the turn to follow.
func (t *turnRun) repeated(ctx context.Context) (bool, error) {
	c := t.refused
	t.refused = nil
	if c == nil || !t.asker.person || t.stopped || ctx.Err() != nil {
		return false, nil
	}
	t.view.question("  Run it once " + console.OneLine(c.how, 200) + "? " + console.OneLine(termtext.Args(c.args), 200) + "\n[y/N]> ")
	if !t.asker.agrees(ctx) {
		return false, nil
	}
	var ran protocol.ToolCallResult
	p := protocol.ToolCallParams{Mutation: protocol.Mutation{IdempotencyKey: string(protocol.NewInputID())}, SessionID: t.session, Name: c.tool, Args: c.args, Tell: true}
	if err := t.call(ctx, "tool/call", p, &ran); err != nil {
		return false, err
	}
	t.view.note(outcomeLine(&protocol.Item{Tool: c.tool, Output: &ran.Output, DurationMs: ran.DurationMs}))
	t.ran, t.over = ran.CallID, false
	return true, nil
}

// agrees reads the answer to a question that only yes agrees to.
func (a *asker) agrees(ctx context.Context) bool {
	a.listen()
	select {
	case line := <-a.lines:
		return slices.Contains([]string{"y", "yes"}, strings.ToLower(line))
	case <-ctx.Done():
		return false
	}
}

// follows makes the turn in which the agent reads the result of a repeated call the
// turn to follow.
func (t *turnRun) follows(ev *protocol.Event) {
	told := slices.ContainsFunc(ev.Causes, func(c protocol.TurnCause) bool { return t.ran != "" && c.ID == "call:"+string(t.ran) })
	if ev.Type == protocol.EventTurnAccepted && told {
		t.turn, t.ran = ev.TurnID, ""
	}
}
