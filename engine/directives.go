package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"lashd/engine/authority"
	"lashd/engine/change"
	"lashd/engine/plugin"
	"lashd/engine/trace"
	"lashd/rpc/protocol"
)

// apply does what directives want that concern neither the conversation nor the call, in order. What was done before one
// that fails stays. at tells the seam's place in the turn, so that what is done again after a restart is the same.
func (h *hooks) apply(ctx context.Context, seam plugin.Hook, at string, all []plugin.Owned) error {
	for i, o := range all {
		if err := plugin.CheckSeam(seam, o); err != nil {
			return err
		}
		switch o.Kind {
		case plugin.EmitTrace:
			h.trace.add(trace.Kind("plugin."+o.Plugin+"."+o.Trace.Name), o.Trace.Payload)
		case plugin.EmitEvents:
			if err := h.caller.tell(ctx, pluginEvents(h.caller.journalID(), o)); err != nil {
				return err
			}
		case plugin.CreateSession:
			if err := h.createFor(ctx, o, fmt.Sprintf("%s:%s:%s:%d", h.caller.journalID(), seam, at, i)); err != nil {
				return fmt.Errorf("plugin %s: create a session: %w", o.Plugin, err)
			}
		}
	}
	return nil
}

// createFor creates the session that a plugin wants, once for each place in a turn.
func (h *hooks) createFor(ctx context.Context, o plugin.Owned, key string) error {
	p := *o.Session
	if p.IdempotencyKey == "" {
		p.IdempotencyKey = key
	}
	ceiling := authority.MeetAll(h.judge.ceiling, authority.Sandboxed(h.plugins.Sandboxed(o.Plugin)))
	_, err := h.eng.Sessions.new(ctx, &requester{h.session.id, ceiling, h.plugins.Loaded(o.Plugin)}, &p)
	return err
}

func pluginEvents(turn protocol.TurnID, o plugin.Owned) []change.Event {
	var events []change.Event
	for _, e := range o.Events {
		event := protocol.Event{Type: protocol.EventPluginCustom, TurnID: turn, Plugin: o.Plugin, Name: e.Name}
		if json.Valid(e.Payload) {
			event.Body = e.Payload
		}
		if e.Kind == "status" {
			event.Type, event.Name, event.Text, event.Body = protocol.EventPluginStatus, e.Key, e.Label, nil
			if e.Detail != "" {
				event.Text += ": " + e.Detail
			}
		}
		events = append(events, change.Event{Event: event})
	}
	return events
}

// messagesOfPlugin are what a directive says, as messages of the conversation.
func messagesOfPlugin(o plugin.Owned) []protocol.Message {
	var msgs []protocol.Message
	for _, m := range o.Messages {
		msg := protocol.Message{Role: m.Role, Origin: pluginOrigin(o.Plugin, m.Origin)}
		if m.Content != "" {
			msg.Parts = append(msg.Parts, protocol.Part{Kind: protocol.PartText, Text: m.Content})
		}
		msg.Parts = append(msg.Parts, m.Parts...)
		msgs = append(msgs, msg)
	}
	return msgs
}

// pluginOrigin is the origin of a message of a plugin, which chooses only whether it is transient.
func pluginOrigin(plugin string, said *protocol.Origin) *protocol.Origin {
	return &protocol.Origin{Kind: protocol.OriginPlugin, Plugin: plugin, Transient: said != nil && said.Transient}
}

// splitTransient tells the messages of plugins that become history from those that a model is only shown, once.
func splitTransient(msgs []protocol.Message) (lasting, transient []protocol.Message) {
	for _, m := range msgs {
		if m.Origin != nil && m.Origin.Transient {
			transient = append(transient, m)
		} else {
			lasting = append(lasting, m)
		}
	}
	return lasting, transient
}

// keepUserAndSystem keeps the messages of roles that plugins may speak in.
func keepUserAndSystem(msgs []protocol.Message) []protocol.Message {
	var kept []protocol.Message
	for _, m := range msgs {
		if m.Role == protocol.RoleUser || m.Role == protocol.RoleSystem {
			kept = append(kept, m)
		}
	}
	return kept
}
