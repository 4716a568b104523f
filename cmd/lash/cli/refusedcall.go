package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// refusedCall is a call to which the sandbox refused something, and which can run
// again.
type refusedCall struct {
	tool string
	args json.RawMessage // of the call with as little more as possible
	how  string          // what it then reaches
}

// refusedCalls are the refused calls of a turn that a person has not been asked about.
type refusedCalls struct {
	calls  []refusedCall
	agents []*protocol.TaskChild // subagents whose calls are not among them yet
}

// add adds the call of a refusal, unless it cannot run again or is there already.
// tool is the tool that was called.
func (c *refusedCalls) add(tool string, r *protocol.SandboxRefusal) {
	if r == nil || r.WithHosts == nil && len(r.Retry) == 0 {
		return
	}
	call := refusedCall{cmp.Or(r.Tool, tool), r.Retry, "outside the sandbox"}
	if r.WithHosts != nil {
		call.args, call.how = r.WithHosts.Retry, "with "+strings.Join(r.WithHosts.Hosts, ", ")
	}
	if !slices.ContainsFunc(c.calls, func(known refusedCall) bool { return known.tool == call.tool && bytes.Equal(known.args, call.args) }) {
		c.calls = append(c.calls, call)
	}
}

// item adds the call of an item.
func (c *refusedCalls) item(item *protocol.Item) {
	if item.Output != nil {
		c.add(item.Tool, item.Output.Refusal)
	}
}

// task adds a background command, or the calls of a subagent, when it ends.
func (c *refusedCalls) task(t *protocol.Task) {
	if t.Outcome != nil {
		c.add("start_command", t.Outcome.Refusal)
	}
	if t.Spec.Subagent != nil {
		c.agents = append(c.agents, t.Spec.Subagent)
	}
}

// take removes the first refused call and returns it; nil if there is none left.
func (c *refusedCalls) take() *refusedCall {
	if len(c.calls) == 0 {
		return nil
	}
	first := c.calls[0]
	c.calls = c.calls[1:]
	return &first
}

// readAgents adds the refused calls of subagents that worked in the session's
// directory. Those of a subagent whose session was deleted are lost.
func (t *turnRun) readAgents(ctx context.Context) {
	for _, child := range t.refused.agents {
		var r protocol.SessionReadResult
		if err := t.call(ctx, "session/read", protocol.SessionReadParams{SessionID: child.SessionID}, &r); err != nil || r.Session.Cwd != t.about.Cwd {
			continue
		}
		for _, item := range r.Data {
			if item.TurnID == child.TurnID {
				t.refused.item(&item)
			}
		}
	}
	t.refused.agents = nil
}

// repeated asks the person at the terminal, after the turn, whether its refused calls
// should run once more, one after the other. It reports whether a call ran: the agent
// then reads the result in a turn of its own, which becomes the turn to follow.
func (t *turnRun) repeated(ctx context.Context) (bool, error) {
	if !t.asker.person || t.stopped || ctx.Err() != nil {
		return false, nil
	}
	t.readAgents(ctx)
	for {
		c := t.refused.take()
		if c == nil {
			return false, nil
		}
		t.view.question("  Run it once " + console.OneLine(c.how, 200) + "? " + console.OneLine(termtext.Args(c.args), 200) + "\n[y/N]> ")
		if t.asker.agrees(ctx) {
			err := t.repeat(ctx, c)
			return err == nil, err
		}
		if ctx.Err() != nil {
			return false, nil
		}
	}
}

// repeat runs a refused call once more.
func (t *turnRun) repeat(ctx context.Context, c *refusedCall) error {
	var ran protocol.ToolCallResult
	p := protocol.ToolCallParams{Mutation: protocol.Mutation{IdempotencyKey: string(protocol.NewInputID())}, SessionID: t.session, Name: c.tool, Args: c.args, Tell: true}
	if err := t.call(ctx, "tool/call", p, &ran); err != nil {
		return err
	}
	t.view.note(outcomeLine(&protocol.Item{
		Status: protocol.ItemDone, Tool: c.tool, Args: c.args, Title: protocol.TitleOf(protocol.ToolCall{Name: c.tool, Args: c.args}), Output: &ran.Output, DurationMs: ran.DurationMs,
	}, 60))
	t.ran, t.over = ran.CallID, false
	return nil
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
