package acp

import (
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// cellCalls is the number of calls of a code cell that the editor shows.
const cellCalls = 8

// cellContent returns the content of the tool call that shows a code cell: the code, its calls and its result. Without a result it is
// the code alone.
func cellContent(code string, r *protocol.CodeResult) []sdk.ToolCallContent {
	content := textContent(code)
	if r == nil {
		return content
	}
	calls := r.Calls[:min(len(r.Calls), cellCalls)]
	content = append(content, textContent(callList(calls, len(r.Calls)+r.MoreCalls-len(calls)))...)
	return append(content, textContent(r.Text())...)
}

// cellCall adds a call to a code cell that runs. The editor gets the code and the newest calls. Calls of cells that it does not show
// are dropped.
func (v *view) cellCall(ev *protocol.Event) []update {
	id := sdk.ToolCallId(ev.ItemID)
	c := v.calls[id]
	if c == nil || ev.CellCall == nil {
		return nil
	}
	c.calls.AddCall(*ev.CellCall)
	newest := c.calls.Calls[max(0, len(c.calls.Calls)-cellCalls):]
	content := append(textContent(c.code), textContent(callList(newest, len(c.calls.Calls)+c.calls.MoreCalls-len(newest)))...)
	return []update{&sdk.SessionToolCallUpdate{ToolCallId: id, Content: content, SessionUpdate: "tool_call_update"}}
}

// callList describes calls in a list, with the number of the other calls at its end; empty without any.
func callList(calls []protocol.CellCall, others int) string {
	var lines []string
	for i := range calls {
		lines = append(lines, "- "+callText(&calls[i]))
	}
	if others > 0 {
		lines = append(lines, fmt.Sprintf("- and %d other calls", others))
	}
	return strings.Join(lines, "\n")
}

// callText describes a call of a cell: what it does, its duration and its result.
func callText(c *protocol.CellCall) string {
	parts := []string{strings.TrimSpace(c.Tool + " " + termtext.OneLine(termtext.Args(c.Args), maxTitle))}
	if t := protocol.TitleOf(protocol.ToolCall{Name: c.Tool, Args: c.Args}); t != nil {
		parts[0] = shortTitle(t.Line(c.Status))
	}
	switch c.Status {
	case protocol.ItemInProgress:
		return parts[0] + ": running"
	case protocol.ItemFailed:
		parts = append(parts, "failed: "+c.Summary)
	case protocol.ItemUnknown:
		parts = append(parts, "outcome unknown")
	default:
		if c.Summary != "" {
			parts = append(parts, c.Summary)
		}
	}
	return fmt.Sprintf("%s (%d ms)", strings.Join(parts, ": "), c.DurationMs)
}
