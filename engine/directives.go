package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"lashd/engine/authority"
	"lashd/engine/change"
	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// apply does what directives want that concern neither the conversation nor the call, in order. What was done before one
// that fails stays. at tells the seam's place in the turn, so that what is done again after a restart is the same.
func (r *run) apply(ctx context.Context, seam plugin.Hook, at string, all []plugin.Owned) error {
	for i, o := range all {
		if err := plugin.CheckSeam(seam, o); err != nil {
			return err
		}
		switch o.Kind {
		case plugin.EmitTrace:
			r.trace(TraceKind("plugin."+o.Plugin+"."+o.Trace.Name), o.Trace.Payload)
		case plugin.EmitEvents:
			if err := r.tell(ctx, o); err != nil {
				return err
			}
		case plugin.CreateSession:
			if err := r.createFor(ctx, o, fmt.Sprintf("%s:%s:%s:%d", r.id, seam, at, i)); err != nil {
				return fmt.Errorf("plugin %s: create a session: %w", o.Plugin, err)
			}
		}
	}
	return nil
}

// createFor creates the session that a plugin wants, once for each place in a turn.
func (r *run) createFor(ctx context.Context, o plugin.Owned, key string) error {
	p := *o.Session
	if p.IdempotencyKey == "" {
		p.IdempotencyKey = key
	}
	ceiling := authority.MeetAll(r.ceiling, authority.Sandboxed(r.plugins.Sandboxed(o.Plugin)))
	_, err := r.eng.newSession(ctx, &requester{r.session.id, ceiling, r.plugins.Loaded(o.Plugin)}, &p)
	return err
}

// tell makes news of a plugin durable, and so shows them.
func (r *run) tell(ctx context.Context, o plugin.Owned) error {
	events := pluginEvents(r.id, o)
	if r.owner == nil {
		_, err := do(ctx, r.eng, r.session.id, func(ctx context.Context, st *state) (struct{}, error) {
			return struct{}{}, st.tell(ctx, events...)
		})
		return err
	}
	return r.flush(ctx, nil, events...)
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
		msg := protocol.Message{Role: m.Role, Origin: originOf(o.Plugin, m.Origin)}
		if m.Content != "" {
			msg.Parts = append(msg.Parts, protocol.Part{Kind: protocol.PartText, Text: m.Content})
		}
		msg.Parts = append(msg.Parts, m.Parts...)
		msgs = append(msgs, msg)
	}
	return msgs
}

// originOf is where a plugin's message comes from: from the plugin, unless it says something else.
func originOf(plugin string, said *protocol.Origin) *protocol.Origin {
	if said != nil && said.Kind != "" && said.Kind != protocol.OriginPlugin {
		return said
	}
	return &protocol.Origin{Kind: protocol.OriginPlugin, Plugin: plugin, Transient: said != nil && said.Transient}
}

// apart tells the messages of plugins that become history from those that a model is only shown, once.
func apart(msgs []protocol.Message) (lasting, transient []protocol.Message) {
	for _, m := range msgs {
		if m.Origin != nil && m.Origin.Transient {
			transient = append(transient, m)
		} else {
			lasting = append(lasting, m)
		}
	}
	return lasting, transient
}

// spoken keeps the messages of roles that plugins may speak in.
func spoken(msgs []protocol.Message) []protocol.Message {
	var kept []protocol.Message
	for _, m := range msgs {
		if m.Role == protocol.RoleUser || m.Role == protocol.RoleSystem {
			kept = append(kept, m)
		}
	}
	return kept
}
