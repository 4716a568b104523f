package graph

import (
	"strconv"
	"strings"

	"lashd/rpc/protocol"
)

// ItemIDOf returns the id of the item that shows a part of a node. The id is known before the node is stored.
func ItemIDOf(node protocol.NodeID, part int) protocol.ItemID {
	return protocol.ItemID(string(node) + ":" + strconv.Itoa(part))
}

// Split is the inverse of ItemIDOf. It reports false for an id of another form, and does not check that the node
// exists.
func Split(id protocol.ItemID) (protocol.NodeID, int, bool) {
	node, part, ok := strings.Cut(string(id), ":")
	n, err := strconv.Atoi(part)
	return protocol.NodeID(node), n, ok && err == nil && n >= 0
}

// Items returns what a person sees of consecutive nodes, in order of node and part. A tool call is one item at the
// place of the call, although its result is in another node, and so is a code cell. A result is left out if its call or
// code is before the first node. Pass all nodes of a turn or a page at once: results are matched only within the slice.
// An output whose driver keeps no code in history is an item by itself, without text.
func Items(nodes []protocol.Node) []protocol.Item {
	items, _ := Shown(nodes)
	return items
}

// Shown is Items with, for each item, the parts of nodes that it shows. Both slices have the same length and order. The
// log stores the refs of finished items instead of their content.
// Nodes without an item, such as the opening of a frame other than a compaction, appear in neither. Kept messages do not
// either: they are in the result of the nodes that they repeat.
func Shown(nodes []protocol.Node) (items []protocol.Item, refs []Ref) {
	calls := map[protocol.CallID]int{} // index in items of a call without its result
	cell := -1                         // index in items of the newest code cell, if it has no result
	for i := range nodes {
		n := &nodes[i]
		if n.Kept {
			continue
		}
		if n.Message == nil {
			if items = appendSpecial(items, n); len(items) > len(refs) {
				refs = append(refs, Ref{Node: n.ID})
			}
			continue
		}
		for p := range n.Message.Parts {
			part := &n.Message.Parts[p]
			switch part.Kind {
			case protocol.PartToolResult:
				if part.Result == nil {
					continue
				}
				if at, ok := calls[part.Result.CallID]; ok {
					Complete(&items[at], part.Result)
					refs[at].Result, refs[at].ResultPart = n.ID, p
					delete(calls, part.Result.CallID)
				}
				continue
			case protocol.PartOutput:
				if cell >= 0 && items[cell].TurnID == n.TurnID {
					CompleteCell(&items[cell], part)
					refs[cell].Result, refs[cell].ResultPart = n.ID, p
					cell = -1
					continue
				}
				if i == 0 { // the code is in the node before
					continue
				}
			}
			item := PartItem(n, p)
			switch {
			case part.Kind == protocol.PartCode:
				cell = len(items)
			case item.Status == protocol.ItemInProgress:
				calls[item.CallID] = len(items)
			}
			items, refs = append(items, item), append(refs, Ref{Node: n.ID, Part: p})
		}
	}
	return items, refs
}

// PartItem returns the item of one part of a message node. A tool call is in progress until Complete adds its result, and
// a code cell until CompleteCell does; a cell without its closing tag has failed, because it does not run. Every other item
// is done. n must have a message, and index must be in the range of its parts.
// The item shares text, arguments and attachment with the node.
func PartItem(n *protocol.Node, index int) protocol.Item {
	part := &n.Message.Parts[index]
	item := protocol.Item{
		ID: ItemIDOf(n.ID, index), Status: protocol.ItemDone, TurnID: n.TurnID, AtMs: n.AtMs,
		Kind: itemKind(n.Message.Role, part.Kind), Text: part.Text, Attachment: part.Attachment, Origin: n.Message.Origin,
	}
	if part.Kind == protocol.PartToolCall && part.Call != nil {
		item.Status = protocol.ItemInProgress
		item.CallID, item.Tool, item.Args, item.Decision = part.Call.CallID, part.Call.Name, part.Call.Args, part.Decision
		item.Title = protocol.TitleOf(*part.Call)
	}
	switch part.Kind {
	case protocol.PartOutput:
		item.Text = ""
		CompleteCell(&item, part)
	case protocol.PartCode:
		item.Status = protocol.ItemInProgress
		var closed bool
		if item.Language, item.Text, closed = protocol.SplitCell(part.Text); !closed {
			item.Status = protocol.ItemFailed
		}
	}
	return item
}

// itemKind returns the kind of item for a part of a message. Calls, code, reasoning and errors have their own kinds;
// for other parts the role of the message decides.
func itemKind(role protocol.Role, part protocol.PartKind) protocol.ItemKind {
	switch {
	case part == protocol.PartToolCall:
		return protocol.ItemToolCall
	case part == protocol.PartCode, part == protocol.PartOutput:
		return protocol.ItemCodeCell
	case part == protocol.PartReasoning:
		return protocol.ItemReasoning
	case part == protocol.PartError, role == protocol.RoleSystem, role == protocol.RoleEvent:
		return protocol.ItemNotice
	case role == protocol.RoleUser:
		return protocol.ItemUserMessage
	}
	return protocol.ItemAgentMessage
}

// Complete adds the result of a tool call to its item. A successful result makes the item done, an unknown one unknown,
// and any other status failed.
// The item shares the output with the result, which must not change afterwards.
func Complete(item *protocol.Item, r *protocol.ToolResult) {
	item.Output, item.DurationMs = &r.Output, r.DurationMs
	switch r.Output.Status {
	case protocol.OutputSuccess:
		item.Status = protocol.ItemDone
	case protocol.OutputUnknown:
		item.Status = protocol.ItemUnknown
	default:
		item.Status = protocol.ItemFailed
	}
}

// CompleteCell adds the result of a code cell to its item. The cell has failed if the result has an error. A result that
// only has the text for the model, as drivers of plugins may write it, shows this text as printed.
func CompleteCell(item *protocol.Item, output *protocol.Part) {
	item.Status, item.Cell = protocol.ItemDone, output.Cell
	if item.Cell == nil {
		item.Cell = &protocol.CodeResult{Printed: output.Text}
	}
	if item.Cell.Error != "" {
		item.Status = protocol.ItemFailed
	}
}

// appendSpecial adds the item of a node without a message: a compaction or a notice of a plugin. Other nodes have none.
func appendSpecial(items []protocol.Item, n *protocol.Node) []protocol.Item {
	item := protocol.Item{ID: ItemIDOf(n.ID, 0), Status: protocol.ItemDone, TurnID: n.TurnID, AtMs: n.AtMs}
	switch {
	case n.FrameOpen != nil && n.FrameOpen.Reason == "compaction":
		item.Kind = protocol.ItemCompaction
	case n.Plugin != nil:
		item.Kind, item.Plugin = protocol.ItemNotice, n.Plugin
	default:
		return items
	}
	return append(items, item)
}

// Ref identifies the parts of nodes that an item of a log event shows. The log stores it in place of the item.
type Ref struct {
	Node       protocol.NodeID `json:"node"`
	Part       int             `json:"part"`
	Result     protocol.NodeID `json:"result,omitempty"` // of a finished tool call or code cell; empty: none
	ResultPart int             `json:"resultPart,omitempty"`
	Undecided  bool            `json:"undecided,omitempty"` // the event was stored before the call was decided
}

// Resolve rebuilds the item from the nodes that lookup finds; lookup returns nil for a missing node. It reports false
// if the nodes are missing or lack the parts, for example after a damaged row.
// The item is built with PartItem, so it suits refs to messages. Nodes of compactions and plugins have no such parts.
func (r Ref) Resolve(lookup func(protocol.NodeID) *protocol.Node) (protocol.Item, bool) {
	n := lookup(r.Node)
	if partOf(n, r.Part) == nil {
		return protocol.Item{}, false
	}
	item := PartItem(n, r.Part)
	if r.Undecided {
		item.Decision = nil
	}
	if r.Result == "" {
		return item, true
	}
	switch part := partOf(lookup(r.Result), r.ResultPart); {
	case part != nil && part.Result != nil:
		Complete(&item, part.Result)
	case part != nil && part.Kind == protocol.PartOutput:
		CompleteCell(&item, part)
	default:
		return protocol.Item{}, false
	}
	return item, true
}

// partOf returns a part of a message node; nil if there is none.
func partOf(n *protocol.Node, part int) *protocol.Part {
	if n == nil || n.Message == nil || part < 0 || part >= len(n.Message.Parts) {
		return nil
	}
	return &n.Message.Parts[part]
}

// IsResults reports whether a node is a message of tool results.
func IsResults(n *protocol.Node) bool {
	return n.Message != nil && len(n.Message.Parts) > 0 && n.Message.Parts[0].Kind == protocol.PartToolResult
}
