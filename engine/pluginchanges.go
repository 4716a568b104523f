package engine

import (
	"context"

	"lashd/engine/change"
	"lashd/rpc/protocol"
)

// PluginChanged publishes a change of a plugin to subscribers of the daemon. A later event of the same plugin
// replaces one that a subscriber has not read.
func (e *Engine) PluginChanged(event protocol.ServerEvent) {
	e.Events.Publish("plugin "+event.Plugin.Dir, event)
}

// ToolsChanged makes a session ask its plugins again for their tools, or all sessions in memory if id is empty.
// Sessions that have no plugins open are skipped: they ask when they open them. Failures are logged.
func (e *Engine) ToolsChanged(ctx context.Context, id protocol.SessionID) {
	ids := []protocol.SessionID{id}
	if id == "" {
		ids = e.loadedSessions()
	}
	for _, id := range ids {
		asked, err := do(ctx, e, id, func(_ context.Context, st *state) (bool, error) { return st.plugins.opened() != nil, nil })
		if asked {
			_, err = e.Tools.Refresh(ctx, &protocol.SessionMutationParams{SessionID: id})
		}
		if err != nil && ctx.Err() == nil {
			e.Log.Warn("tools of a session were not refreshed after its plugins changed them", "session", id, "error", err)
		}
	}
}

// PluginsRevoked makes idle sessions close plugins whose trust a person revoked. Busy sessions do so at their next
// turn. It waits for the sessions one after the other.
func (e *Engine) PluginsRevoked(ctx context.Context) {
	for _, id := range e.loadedSessions() {
		_, err := lockedPlugins(ctx, e, id, func(k *pluginLock) (struct{}, error) {
			if t := k.owner.plugins.opened(); t == nil || t.leases.inUse() || !t.plugins.From().Revoked() {
				return struct{}{}, nil
			}
			_, err := k.open(k.row().Config)
			return struct{}{}, err
		})
		if err != nil && ctx.Err() == nil {
			e.Log.Warn("plugins of a session did not reopen after trust in some was revoked", "session", id, "error", err)
		}
	}
}

// loadedSessions returns the ids of the sessions in memory, in no order.
func (e *Engine) loadedSessions() []protocol.SessionID {
	e.mu.Lock()
	defer e.mu.Unlock()
	ids := make([]protocol.SessionID, 0, len(e.sessions))
	for id := range e.sessions {
		ids = append(ids, id)
	}
	return ids
}

// Running returns a turn that runs in any session; false if none does.
func (e *Engine) Running() (protocol.TurnID, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.sessions {
		s.turnMu.Lock()
		r := s.turn
		s.turnMu.Unlock()
		if r != nil {
			return r.id, true
		}
	}
	return "", false
}

// issueEvent returns the event that reports problems of plugins. Its text is that of the first issue; Issues has
// them all. issues must not be empty.
func issueEvent(turn protocol.TurnID, issues ...protocol.Issue) change.Event {
	return change.Event{Event: protocol.Event{
		Type: protocol.EventPluginStatus, TurnID: turn, Name: issues[0].Code, Text: issues[0].Message, Issues: issues,
	}}
}
