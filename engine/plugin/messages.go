package plugin

import "lashd/rpc/protocol"

// MessagesOf returns the messages of a directive, with the plugin as their origin.
func MessagesOf(o Owned) []protocol.Message {
	var msgs []protocol.Message
	for _, m := range o.Messages {
		msg := protocol.Message{Role: m.Role, Origin: originOf(o.Plugin, m.Origin)}
		if m.Content != "" {
			msg.Parts = append(msg.Parts, protocol.Part{Kind: protocol.PartText, Text: m.Content})
		}
		msg.Parts = append(msg.Parts, m.Parts...)
		msgs = append(msgs, msg)
	}
	return msgs
}

// originOf returns the origin of a plugin's message. The plugin itself only decides whether the
// message is transient.
func originOf(plugin string, said *protocol.Origin) *protocol.Origin {
	return &protocol.Origin{Kind: protocol.OriginPlugin, Plugin: plugin, Transient: said != nil && said.Transient}
}

// SplitTransient separates messages that become history from transient ones, which the model sees
// once.
func SplitTransient(msgs []protocol.Message) (lasting, transient []protocol.Message) {
	for _, m := range msgs {
		if m.Origin != nil && m.Origin.Transient {
			transient = append(transient, m)
		} else {
			lasting = append(lasting, m)
		}
	}
	return lasting, transient
}

// KeepUserAndSystem keeps messages with role user or system. Plugins may add no others before and
// after a turn.
func KeepUserAndSystem(msgs []protocol.Message) []protocol.Message {
	var kept []protocol.Message
	for _, m := range msgs {
		if m.Role == protocol.RoleUser || m.Role == protocol.RoleSystem {
			kept = append(kept, m)
		}
	}
	return kept
}
