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
	_, err := h.eng.Sessions.new(ctx, &sessionDraft{by: &requester{session: h.session.id, ceiling: ceiling, bound: h.plugins.Loaded(o.Plugin)}}, &p)
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
