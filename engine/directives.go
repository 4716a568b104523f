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

// apply carries out the directives of plugins that concern neither the conversation nor the call,
// in order. If one fails, the earlier ones stay in effect. at is the place of the seam within the
// turn. It is part of idempotency keys, so a directive that is repeated after a restart has no
// second effect.
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

// createFor creates the session that a directive requests. key identifies the place in the turn,
// unless the plugin gave a key. The new session gets the ceiling of the turn and, if it has one, of
// the plugin.
func (h *hooks) createFor(ctx context.Context, o plugin.Owned, key string) error {
	p := *o.Session
	if p.IdempotencyKey == "" {
		p.IdempotencyKey = key
	}
	ceiling := authority.MeetAll(h.judge.ceiling, authority.Sandboxed(h.plugins.Sandboxed(o.Plugin)))
	_, err := h.eng.Sessions.new(ctx, &requester{session: h.session.id, ceiling: ceiling, bound: h.plugins.Loaded(o.Plugin)}, &p)
	return err
}

// pluginEvents returns the events that a directive publishes. Only valid JSON payloads are
// included.
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

// messagesOfPlugin returns the messages of a directive, with the plugin as their origin.
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

// pluginOrigin returns the origin of a plugin's message. The plugin itself only decides whether the
// message is transient.
func pluginOrigin(plugin string, said *protocol.Origin) *protocol.Origin {
	return &protocol.Origin{Kind: protocol.OriginPlugin, Plugin: plugin, Transient: said != nil && said.Transient}
}

// splitTransient separates messages that become history from transient ones, which the model sees
// once.
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

// keepUserAndSystem keeps messages with role user or system. Plugins may add no others before and
// after a turn.
func keepUserAndSystem(msgs []protocol.Message) []protocol.Message {
	var kept []protocol.Message
	for _, m := range msgs {
		if m.Role == protocol.RoleUser || m.Role == protocol.RoleSystem {
			kept = append(kept, m)
		}
	}
	return kept
}
