package history

import (
	"fmt"
	"slices"

	"lashd/rpc/protocol"
)

// plain is messages without calls, which no frame may begin with: their results stay as text that says what was called. What
// the model thought is left out.
func plain(messages []protocol.Message) []protocol.Message {
	made := map[protocol.CallID]*protocol.ToolCall{}
	var out []protocol.Message
	for _, m := range messages {
		var parts []protocol.Part
		for _, p := range m.Parts {
			if p.Call != nil {
				made[p.Call.CallID] = p.Call
			} else if p, ok := plainPart(p, made); ok {
				parts = append(parts, p)
			}
		}
		if m.Parts = parts; len(parts) > 0 {
			out = append(out, m)
		}
	}
	return out
}

// asTheyAre are the parts that may stand at the beginning of a frame.
var asTheyAre = []protocol.PartKind{protocol.PartText, protocol.PartProse, protocol.PartCommentary, protocol.PartError}

func plainPart(p protocol.Part, made map[protocol.CallID]*protocol.ToolCall) (protocol.Part, bool) {
	switch {
	case p.Attachment != nil:
		return p, true
	case p.Result != nil:
		return said(resultText(p.Result, made[p.Result.CallID])), true
	case p.Kind == protocol.PartReasoning || p.Text == "":
		return p, false
	case slices.Contains(asTheyAre, p.Kind):
		return protocol.Part{Kind: p.Kind, Text: p.Text}, true
	}
	return said(p.Text), true
}

func resultText(r *protocol.ToolResult, call *protocol.ToolCall) string {
	args := "{}"
	if call != nil {
		args = string(call.Args)
	}
	text := r.Output.Text
	if text == "" {
		text = string(r.Output.Value)
	}
	return fmt.Sprintf("[The call of %s with %s ended with %s.]\n%s", r.Name, args, r.Output.Status, text)
}

func said(text string) protocol.Part { return protocol.Part{Kind: protocol.PartText, Text: text} }
