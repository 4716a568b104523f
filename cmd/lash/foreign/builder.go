package foreign

import (
	"encoding/json"
	"fmt"
	"strings"

	"lashd/engine/attachment"
	"lashd/rpc/protocol"
)

// builder makes nodes so that each call has exactly one result after it, as an import requires.
type builder struct {
	nodes []protocol.Node
	turn  int                  // number of the current turn; 0: there is none yet
	calls []*protocol.ToolCall // of the newest reply, without results
}

// add appends a node.
func (b *builder) add(at int64, n protocol.Node) {
	n.ID, n.AtMs = protocol.NodeID(fmt.Sprintf("nod_%d", len(b.nodes))), at
	if b.turn > 0 && n.FrameOpen == nil {
		n.TurnID = protocol.TurnID(fmt.Sprintf("trn_%d", b.turn))
	}
	b.nodes = append(b.nodes, n)
}

// message appends a message, unless it has no parts.
func (b *builder) message(at int64, role protocol.Role, parts ...protocol.Part) {
	if len(parts) > 0 {
		b.add(at, protocol.Node{Message: &protocol.Message{Role: role, Parts: parts}})
	}
}

// input appends what a person sent, which begins a turn.
func (b *builder) input(at int64, parts ...protocol.Part) {
	if len(parts) == 0 {
		return
	}
	b.settle(at)
	b.turn++
	b.message(at, protocol.RoleUser, parts...)
}

// notice appends text that a program wrote and the model has read.
func (b *builder) notice(at int64, text string) {
	if strings.TrimSpace(text) != "" {
		b.settle(at)
		b.message(at, protocol.RoleEvent, protocol.Part{Kind: protocol.PartText, Text: text})
	}
}

// reply appends parts of a reply of the model, and remembers its calls. Calls of earlier replies get their results first.
func (b *builder) reply(at int64, parts ...protocol.Part) {
	b.settle(at)
	for i := range parts {
		if c := parts[i].Call; c != nil {
			b.calls = append(b.calls, c)
		}
	}
	b.message(at, protocol.RoleAssistant, parts...)
}

// results appends the results of the newest calls, in the order of the calls. A call without one counts as cancelled.
func (b *builder) results(at int64, of map[protocol.CallID]protocol.ToolOutput) {
	var parts []protocol.Part
	for i, c := range b.calls {
		out, ok := of[c.CallID]
		if !ok {
			out = protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "The session has no result of this call."}
		}
		parts = append(parts, protocol.Part{Kind: protocol.PartToolResult, Result: &protocol.ToolResult{CallID: c.CallID, Name: c.Name, Output: out, Order: i}})
	}
	b.calls = nil
	b.message(at, protocol.RoleUser, parts...)
}

// settle gives results to calls that have none.
func (b *builder) settle(at int64) {
	if len(b.calls) > 0 {
		b.results(at, nil)
	}
}

// compacted begins a new frame: the model sees only what follows.
func (b *builder) compacted(at int64) {
	b.settle(at)
	b.add(at, protocol.Node{FrameOpen: &protocol.FrameOpen{Key: fmt.Sprintf("compaction %d", len(b.nodes)), Reason: "compaction"}})
}

// summary appends what the model reads in place of older messages. It belongs to no turn, because no person sent it.
func (b *builder) summary(at int64, parts ...protocol.Part) {
	if len(parts) > 0 {
		b.message(at, protocol.RoleUser, parts...)
		b.nodes[len(b.nodes)-1].TurnID = ""
	}
}

// rollBack removes the newest turns.
func (b *builder) rollBack(turns int) {
	first := b.turn - turns + 1
	for i := range b.nodes {
		var n int
		if _, err := fmt.Sscanf(string(b.nodes[i].TurnID), "trn_%d", &n); err == nil && n >= first {
			b.nodes, b.calls, b.turn = b.nodes[:i], nil, max(first-1, 0)
			return
		}
	}
}

// text is a part with text of a person.
func text(s string) []protocol.Part {
	if s == "" {
		return nil
	}
	return []protocol.Part{{Kind: protocol.PartText, Text: s}}
}

// call is a part with a call. Arguments that are not JSON become the member input.
func call(id, name, args string) protocol.Part {
	raw := json.RawMessage(args)
	if !json.Valid(raw) {
		raw, _ = json.Marshal(map[string]string{"input": args})
	}
	return protocol.Part{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: protocol.CallID(id), Name: name, Args: raw}}
}

// file is a part with a file, or text in place of one that lashd cannot take.
func file(name, mediaType string, data []byte) protocol.Part {
	found, err := attachment.Checked(mediaType, data)
	if err != nil || len(data) == 0 {
		return protocol.Part{Kind: protocol.PartText, Text: fmt.Sprintf("[A file (%s) was not imported.]", mediaType)}
	}
	return protocol.Part{Kind: protocol.PartAttachment, Attachment: &protocol.Attachment{Name: name, Type: found, Data: data}}
}

// outputOf returns the output of a call: the texts of parts and the files.
func outputOf(status protocol.OutputStatus, parts []protocol.Part) protocol.ToolOutput {
	out := protocol.ToolOutput{Status: status}
	var texts []string
	for _, p := range parts {
		if p.Attachment != nil {
			out.Attachments = append(out.Attachments, *p.Attachment)
		} else {
			texts = append(texts, p.Text)
		}
	}
	out.Text = strings.Join(texts, "\n")
	return out
}
