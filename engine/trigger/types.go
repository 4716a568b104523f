package trigger

import (
	"context"
	"errors"
	"sync"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// eventTypes caches which events the plugins of a workspace declare, until the plugins change.
type eventTypes struct {
	mu sync.Mutex
	of map[string]declared // by workspace
}

type declared struct {
	host   *plugin.Host
	events []plugin.TriggerEvent
}

// maxDeclared is how many workspaces are cached.
const maxDeclared = 64

var errNoEventType = errors.New("is not declared; trigger/types lists what is")

// eventTypes returns the events that sessions in a directory know, lashd's own first.
func (r *Registry) eventTypes(ctx context.Context, cwd string) ([]plugin.TriggerEvent, error) {
	host, err := r.Host.Plugins(ctx, cwd)
	if err != nil {
		return nil, err
	}
	t := &r.types
	t.mu.Lock()
	known := t.of[cwd]
	t.mu.Unlock()
	if known.host == host {
		return known.events, nil
	}
	events, err := r.Host.Events(ctx, cwd)
	if err != nil {
		return nil, err
	}
	events = append(plugin.OwnTriggers(), events...)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil || len(t.of) >= maxDeclared {
		t.of = map[string]declared{}
	}
	t.of[cwd] = declared{host, events}
	return events, nil
}

// eventType finds an event by the name of its type.
func (r *Registry) eventType(ctx context.Context, cwd, name string) (plugin.TriggerEvent, error) {
	events, err := r.eventTypes(ctx, cwd)
	if err != nil {
		return plugin.TriggerEvent{}, err
	}
	for _, e := range events {
		if e.SourceType() == name {
			return e, nil
		}
	}
	return plugin.TriggerEvent{}, errNoEventType
}

// Types lists the types of events that triggers can wait for.
func (r *Registry) Types(ctx context.Context, p *protocol.TriggerTypesParams) (*protocol.TriggerTypesResult, error) {
	if err := param.CheckWorkspace(p.Cwd); err != nil {
		return nil, err
	}
	events, err := r.eventTypes(ctx, p.Cwd)
	if err != nil {
		return nil, err
	}
	result := &protocol.TriggerTypesResult{Data: []protocol.TriggerType{}}
	for _, e := range events {
		result.Data = append(result.Data, protocol.TriggerType{
			Type: e.SourceType(), ResourceType: e.ResourceType, Description: e.Description, Payload: e.Payload, Watched: watched(e.SourceType()),
		})
	}
	return result, nil
}

// watched tells whether lashd itself watches for events of a type.
func watched(name string) bool {
	return name == protocol.TypeCronTick || name == protocol.TypeFileChanged
}
