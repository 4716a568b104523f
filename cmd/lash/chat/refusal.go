package chat

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// refusedCall is a call, or a command that a call started, to which the sandbox refused something.
type refusedCall struct {
	*protocol.SandboxRefusal
	tool    string // to call again
	command string // to describe it
}

// refusedIn returns the call that an output offers to run again; nil: none.
func refusedIn(r *protocol.SandboxRefusal, tool string) *refusedCall {
	if r == nil || len(r.Retry) == 0 {
		return nil
	}
	var call struct{ Command string }
	_ = json.Unmarshal(r.Retry, &call) // other tools are described by all their arguments
	return &refusedCall{r, cmp.Or(r.Tool, tool), cmp.Or(call.Command, termtext.Args(r.Retry))}
}

// refusalLine offers to run the newest call that the sandbox refused. It returns ""
// if there is none. The first key runs it with as little as possible.
func refusalLine(c *refusedCall, width int) string {
	if c == nil {
		return ""
	}
	call := termtext.OneLine(c.command, 60)
	what := termtext.OneLine(c.What, 200) + " "
	key := asking.Bold(true).Render
	offer := key("Ctrl-R") + " runs it once outside: "
	if c.WithHosts != nil {
		offer = key("Ctrl-R") + " runs it once with " + termtext.OneLine(strings.Join(c.WithHosts.Hosts, ", "), 200) + ", " + key("Ctrl-O") + " outside: "
	}
	return fit(asking.Render("  The sandbox refused a call. ")+faint.Render(what)+offer+call, width)
}

// runAgain repeats the newest call that the sandbox refused: in the sandbox with the hosts that it lacked if that is offered, else outside.
func runAgain(u *ui) tea.Cmd {
	if c := u.talk.refused; c != nil && c.WithHosts != nil {
		return u.repeat(c, c.WithHosts.Retry, "with "+strings.Join(c.WithHosts.Hosts, ", "))
	}
	return runOutside(u)
}

// runOutside repeats the newest call that the sandbox refused, without the sandbox.
func runOutside(u *ui) tea.Cmd {
	c := u.talk.refused
	if c == nil {
		return nil
	}
	return u.repeat(c, c.Retry, "outside the sandbox")
}

// repeat makes a call again. It shows the result, which the agent reads at its next
// step.
func (u *ui) repeat(c *refusedCall, args json.RawMessage, how string) tea.Cmd {
	u.talk.refused = nil
	p := protocol.ToolCallParams{Mutation: key(), SessionID: u.talk.session.ID, Name: c.tool, Args: args, Tell: true}
	return tea.Batch(say("Running once %s: %s", termtext.OneLine(how, 200), termtext.OneLine(c.command, 100)), u.ask(&outgoing{method: "tool/call", params: p, result: new(protocol.ToolCallResult)}))
}

// ownCalls keeps a chat from showing the results of its calls twice. The agent reads each result in a wake, which may
// arrive before the answer to the call.
type ownCalls struct {
	shown map[protocol.CallID]bool // calls of which the chat showed the result
	held  []entry                  // wakes that may have the result of an unanswered call
}

// without returns the entries to show. It leaves out wakes with results that the chat has shown. While a call is
// unanswered, it holds back the wakes that may have its result.
func (o *ownCalls) without(all []entry, unsent []*outgoing) (show []entry) {
	waits := slices.ContainsFunc(unsent, func(o *outgoing) bool { return o.method == "tool/call" })
	if !waits {
		all, o.held = append(o.held, all...), nil
	}
	for _, e := range all {
		switch id, wake := toldCall(e); {
		case wake && waits:
			o.held = append(o.held, e)
		case !wake || !o.shown[id]:
			show = append(show, e)
		}
	}
	return show
}

// toldCall returns the id of the client's call whose result a wake has. It reports false for other entries.
func toldCall(e entry) (protocol.CallID, bool) {
	if e.item == nil || e.item.Origin == nil || e.item.Origin.Cause == nil {
		return "", false
	}
	id, ok := strings.CutPrefix(e.item.Origin.Cause.ID, "call:")
	return protocol.CallID(id), ok
}

// called shows the result of a call that this chat made, and then the entries that waited for it.
func called(u *ui, m sentMsg) {
	if r, ok := m.of.result.(*protocol.ToolCallResult); ok && m.err == nil {
		if u.own.shown == nil {
			u.own.shown = map[protocol.CallID]bool{}
		}
		u.own.shown[r.CallID] = true
		u.paper.writeAll(u.talk, []entry{{item: calledItem(m.of.params.(protocol.ToolCallParams), r)}}, u.style)
	}
	u.paper.writeAll(u.talk, u.own.without(nil, u.unsent), u.style)
}

// calledItem returns the item of a call that this chat made.
func calledItem(p protocol.ToolCallParams, r *protocol.ToolCallResult) *protocol.Item {
	status := protocol.ItemDone
	if r.Output.Status == protocol.OutputUnknown {
		status = protocol.ItemUnknown
	}
	return &protocol.Item{Kind: protocol.ItemToolCall, Status: status, Tool: p.Name, Args: p.Args, Title: protocol.TitleOf(protocol.ToolCall{Name: p.Name, Args: p.Args}), Output: &r.Output, DurationMs: r.DurationMs}
}

// refusedMsg is the newest call of a subagent to which the sandbox refused something.
type refusedMsg struct {
	session protocol.SessionID // of the chat
	call    *refusedCall
}

// readRefused returns a command that looks for such a call in a subagent that has ended. Only calls of subagents that work in the directory
// of the session are offered, because the chat repeats them there. The agent of this session reads the result.
func readRefused(u *ui, child *protocol.TaskChild) tea.Cmd {
	id, cwd := u.talk.session.ID, u.talk.session.Cwd
	return func() tea.Msg {
		var r protocol.SessionReadResult
		err := u.session.Call(u.ctx, "session/read", protocol.SessionReadParams{SessionID: child.SessionID}, &r)
		if err != nil || r.Session.Cwd != cwd { // the session may be deleted
			return nil
		}
		if call := newestRefused(r.Data, child.TurnID); call != nil {
			return refusedMsg{id, call}
		}
		return nil
	}
}

// newestRefused returns the newest call of a turn that can run again; nil: none.
func newestRefused(items []protocol.Item, turn protocol.TurnID) *refusedCall {
	for _, item := range slices.Backward(items) {
		if item.TurnID == turn && item.Output != nil {
			if call := refusedIn(item.Output.Refusal, item.Tool); call != nil {
				return call
			}
		}
	}
	return nil
}

// use offers the call, if the chat still shows the session.
func (m refusedMsg) use(u *ui) tea.Cmd {
	if m.session == u.talk.session.ID {
		u.talk.refused = m.call
	}
	return nil
}
