package engine

import (
	"context"
	"sync"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// eventTypes remember what the plugins of a workspace declare that may happen, for as long as they are the same plugins.
type eventTypes struct {
	mu sync.Mutex
	of map[string]declared
}

type declared struct {
	host   *plugin.Host
	events []plugin.TriggerEvent
}

// maxDeclared is of how many workspaces this is remembered.
const maxDeclared = 64

// eventTypes are what may happen as sessions in a directory know it, lashd's own first.
func (e *Engine) eventTypes(ctx context.Context, cwd string) ([]plugin.TriggerEvent, error) {
	host, err := e.Plugins.Host(ctx, cwd)
	if err != nil {
		return nil, err
	}
	t := &e.triggers.types
	t.mu.Lock()
	known := t.of[cwd]
	t.mu.Unlock()
	if known.host == host {
		return known.events, nil
	}
	events, err := e.askForEvents(ctx, cwd)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil || len(t.of) >= maxDeclared {
		t.of = map[string]declared{}
	}
	t.of[cwd] = declared{host, events}
	return events, nil
}

// askForEvents builds plugins where nobody knows of them, to hear what they declare.
func (e *Engine) askForEvents(ctx context.Context, cwd string) ([]plugin.TriggerEvent, error) {
	cfg, err := e.defaults()
	if err != nil {
		return nil, err
	}
	return callPlugin(ctx, e, func(ctx context.Context) ([]plugin.TriggerEvent, error) {
		bc := plugin.BuildContext{SessionID: protocol.NewSessionID(), Cwd: cwd, StateDir: e.StateDir}
		plugins, err := e.build(ctx, cfg, bc, (*plugin.Host).Isolated)
		if err != nil {
			return nil, err
		}
		return append(plugin.OwnTriggers(), plugins.Triggers()...), plugins.Close()
	})
}

// eventType finds one by its name.
func (e *Engine) eventType(ctx context.Context, cwd, name string) (plugin.TriggerEvent, error) {
	events, err := e.eventTypes(ctx, cwd)
	if err != nil {
		return plugin.TriggerEvent{}, err
	}
	for _, ev := range events {
		if ev.SourceType() == name {
			return ev, nil
		}
	}
	return plugin.TriggerEvent{}, errNoEventType
}

// TriggerTypes lists what may happen.
func (e *Engine) TriggerTypes(ctx context.Context, p *protocol.TriggerTypesParams) (*protocol.TriggerTypesResult, error) {
	if err := CheckWorkspace(p.Cwd); err != nil {
		return nil, err
	}
	events, err := e.eventTypes(ctx, p.Cwd)
	if err != nil {
		return nil, err
	}
	r := &protocol.TriggerTypesResult{Data: []protocol.TriggerType{}}
	for _, ev := range events {
		r.Data = append(r.Data, protocol.TriggerType{
			Type: ev.SourceType(), ResourceType: ev.ResourceType, Description: ev.Description, Payload: ev.Payload, Watched: watched(ev.SourceType()),
		})
	}
	return r, nil
}

// watched tells whether lashd itself says when something of a type happens.
func watched(name string) bool {
	return name == protocol.TypeCronTick || name == protocol.TypeFileChanged
}
