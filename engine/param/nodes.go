package param

import (
	"strconv"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// CheckInput validates the parts of an input: their number, their types, and their total
// size. Larger data belongs into artifacts.
// It returns the first problem as an Error with a pointer below /input. The size is that of
// texts and attachments together, at most protocol.MaxInput bytes.
func CheckInput(parts []protocol.InputPart) error {
	if len(parts) == 0 {
		return Bad("/input", "must have at least one part")
	}
	if len(parts) > maxParts {
		return Bad("/input", "has %d parts, at most %d", len(parts), maxParts)
	}
	for i, p := range parts {
		pointer := "/input/" + strconv.Itoa(i)
		switch p.Type {
		case protocol.InputText:
			if p.Text == "" {
				return Bad(pointer+"/text", "must not be empty")
			}
		case protocol.InputAttachment:
			if p.Attachment == nil || p.Attachment.Type == "" {
				return Bad(pointer+"/attachment", "must name a media type")
			}
		default:
			return Bad(pointer+"/type", "must be text or attachment, not %.40q", p.Type)
		}
	}
	if size := protocol.InputSize(parts); size > protocol.MaxInput {
		return Bad("/input", "has %d bytes, at most %d; write large files as artifacts", size, protocol.MaxInput)
	}
	return nil
}

// CheckPluginInputs validates the total size of the inputs for plugins. Their contents are
// left to the plugins.
// The size includes the ids of the plugins.
func CheckPluginInputs(in protocol.PluginInputs) error {
	size := 0
	for id, value := range in {
		size += len(id) + len(value)
	}
	if size > protocol.MaxInput {
		return Bad("/pluginInputs", "has %d bytes, at most %d; write large data as artifacts", size, protocol.MaxInput)
	}
	return nil
}

// CheckInputsOfPlugin is CheckPluginInputs for the inputs of a turn that a plugin starts or queues. Only clients read resources and prompts of
// MCP servers, because lashd does so for the person, without a question.
func CheckInputsOfPlugin(in protocol.PluginInputs) error {
	if _, ok := in[protocol.ServersID]; ok {
		return Bad("/pluginInputs/"+protocol.ServersID, "is for clients; a plugin calls the tools of an MCP server instead")
	}
	return CheckPluginInputs(in)
}

// CheckAppend validates nodes that a client or a plugin appends to the history. Each has
// either a message or a plugin body. lashd sets the plugin of a body and most of the origin
// of a message, see CheckOrigin.
// The limit of nodes is that of one commit, because all nodes of a request are stored
// together. Frames cannot be opened this way; compaction and frame switches do that.
func CheckAppend(nodes []protocol.NodeBody) error {
	if len(nodes) == 0 {
		return Bad("/nodes", "must have at least one node")
	}
	if len(nodes) > persistence.MaxCommitNodes {
		return Bad("/nodes", "has %d nodes, at most %d", len(nodes), persistence.MaxCommitNodes)
	}
	for i, n := range nodes {
		pointer := "/nodes/" + strconv.Itoa(i)
		if (n.Message == nil) == (n.Plugin == nil) || n.FrameOpen != nil {
			return Bad(pointer, "must have either a message or a plugin body")
		}
		if n.Message != nil {
			if err := CheckMessage(pointer+"/message", n.Message); err != nil {
				return err
			}
			if o := n.Message.Origin; o != nil && o.Transient {
				return Bad(pointer+"/message/origin/transient", "must not be set: appended nodes are stored")
			}
			if err := CheckOrigin(pointer+"/message/origin", n.Message.Origin); err != nil {
				return err
			}
		}
		if n.Plugin != nil && n.Plugin.Type == "" {
			return Bad(pointer+"/plugin/type", "must not be empty")
		}
		if n.Plugin != nil && n.Plugin.Plugin != "" {
			return Bad(pointer+"/plugin/plugin", "must not be set by clients or plugins")
		}
	}
	return nil
}

// CheckOrigin rejects an origin that only lashd may set. Clients and plugins may only claim
// that a message comes from a plugin. Nil is valid.
func CheckOrigin(pointer string, o *protocol.Origin) error {
	switch {
	case o == nil:
		return nil
	case o.Kind != "" && o.Kind != protocol.OriginPlugin:
		return Bad(pointer+"/kind", "must be plugin, not %.40q: only lashd sets other kinds", o.Kind)
	case o.TurnID != "":
		return Bad(pointer+"/turnId", "must not be set by clients or plugins")
	case o.InputID != "":
		return Bad(pointer+"/inputId", "must not be set by clients or plugins")
	case o.Cause != nil:
		return Bad(pointer+"/cause", "must not be set by clients or plugins")
	}
	return nil
}

// CheckMessage validates a message from a client or a plugin. It rejects tool calls and
// results, because every call in history must have exactly one result, which only lashd can
// guarantee.
// pointer locates the message in the request.
func CheckMessage(pointer string, m *protocol.Message) error {
	switch m.Role {
	case protocol.RoleUser, protocol.RoleAssistant, protocol.RoleSystem, protocol.RoleEvent:
	default:
		return Bad(pointer+"/role", "must be user, assistant, system or event, not %.40q", m.Role)
	}
	if len(m.Parts) == 0 || len(m.Parts) > maxParts {
		return Bad(pointer+"/parts", "must have 1 to %d parts, not %d", maxParts, len(m.Parts))
	}
	for i := range m.Parts {
		if err := checkPart(pointer+"/parts/"+strconv.Itoa(i), &m.Parts[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkPart validates one part of such a message. An attachment is only allowed in a part
// of its own kind.
func checkPart(pointer string, p *protocol.Part) error {
	switch p.Kind {
	case protocol.PartText, protocol.PartProse, protocol.PartCommentary, protocol.PartReasoning, protocol.PartError:
	case protocol.PartAttachment:
		if p.Attachment == nil || p.Attachment.Type == "" {
			return Bad(pointer+"/attachment", "must name a media type")
		}
	default:
		return Bad(pointer+"/kind", "must be text, prose, reasoning, error or attachment, not %.40q", p.Kind)
	}
	switch {
	case p.Call != nil:
		return Bad(pointer+"/call", "must not be set by clients or plugins")
	case p.Result != nil:
		return Bad(pointer+"/result", "must not be set by clients or plugins")
	case p.Attachment != nil && p.Kind != protocol.PartAttachment:
		return Bad(pointer+"/attachment", "must not be set in a part of kind %s", p.Kind)
	}
	return nil
}

// CheckSeeds validates the nodes that the new frame starts with.
func CheckSeeds(to *protocol.FrameSwitch) error {
	if len(to.Nodes) == 0 {
		return nil
	}
	return CheckAppend(to.Nodes)
}

// CheckLeaf rejects a node that cannot be a leaf: one with tool calls, whose results would be
// missing from the history that the model sees. pointer is the JSON pointer of the parameter that
// the error names.
func CheckLeaf(n *protocol.Node, pointer string) error {
	if n.Message != nil && len(n.Message.Calls()) > 0 {
		return Bad(pointer, "is a message with tool calls and its results come after it; choose the node before it or the one with the results")
	}
	return nil
}
