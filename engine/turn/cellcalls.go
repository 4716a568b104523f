package turn

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"lashd/rpc/protocol"
)

// Limits of what people see of a call of a code cell, in bytes. A cell lists protocol.MaxCellCalls calls, so the list of a
// cell stays under 128 KiB.
const (
	maxCellArgs    = 768 // arguments with their texts cut; larger ones are left out
	maxCellArg     = 160 // one text of the arguments
	maxCellSummary = 160
)

// ShownCall returns what people see of the index-th call of a code cell: of a call that runs if reply is nil, else of one
// that has ended. call is the call as the code made it. Only the output that the code got appears, so a secret that a
// hook added to the arguments or removed from the output stays hidden.
func ShownCall(call protocol.ToolCall, index int, reply *ToolReply) protocol.CellCall {
	shown := protocol.CellCall{CallID: call.CallID, Index: index, Tool: call.Name, Args: shownArgs(call.Args), Status: protocol.ItemInProgress}
	if reply == nil {
		return shown
	}
	out := reply.Seen()
	shown.DurationMs, shown.Summary = reply.DurationMs, oneLine(outputSummary(&out), maxCellSummary)
	switch out.Status {
	case protocol.OutputSuccess:
		shown.Status = protocol.ItemDone
	case protocol.OutputUnknown:
		shown.Status = protocol.ItemUnknown
	default:
		shown.Status = protocol.ItemFailed
	}
	return shown
}

// outputSummary returns the part of an output that tells most: the error, the change of a file, or the text.
func outputSummary(out *protocol.ToolOutput) string {
	switch {
	case out.Failure != nil:
		return out.Failure.Message
	case out.Change != nil:
		return fmt.Sprintf("%s +%d -%d", out.Change.Path, out.Change.Added, out.Change.Removed)
	}
	return out.Text
}

// shownArgs returns arguments with long texts cut; nil if they are large even so.
func shownArgs(args json.RawMessage) json.RawMessage {
	var out []byte
	for rest := []byte(args); len(rest) > 0 && len(out) <= maxCellArgs; {
		n := tokenSize(rest)
		token := rest[:n]
		var text string
		if n > maxCellArg && json.Unmarshal(token, &text) == nil {
			token, _ = json.Marshal(cutText(text, maxCellArg)) // text can be encoded
		}
		out, rest = append(out, token...), rest[n:]
	}
	if len(out) > maxCellArgs {
		return nil
	}
	return out
}

// oneLine returns a text with each run of white space as one blank, cut to size bytes. It reads no more of a long text
// than it needs.
func oneLine(text string, size int) string {
	return cutText(strings.Join(strings.Fields(cutText(text, 4*size)), " "), size)
}

// cutText cuts a text to size bytes, without breaking a character. A text that is cut ends with an ellipsis.
func cutText(text string, size int) string {
	if len(text) <= size {
		return text
	}
	for size -= len("…"); size > 0 && !utf8.RuneStart(text[size]); {
		size--
	}
	return text[:size] + "…"
}
