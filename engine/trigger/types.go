package trigger

import (
	"context"
	"errors"
	"sync"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// eventTypes caches the events that the plugins of a workspace declare. An entry is valid
// while its plugin host is current.
type eventTypes struct {
	mu sync.Mutex
	// of maps workspaces to their events.
	of map[string]declared
}

// declared is the events of one workspace, and the host that declared them.
type declared struct {
	host   *plugin.Host
	events []plugin.TriggerEvent
}

// maxDeclared is the number of cached workspaces. When it is reached, the cache is emptied.
const maxDeclared = 64

// errNoEventType completes a message that begins with the type.
var errNoEventType = errors.New("is not a declared event type; lash call trigger/types lists them")

// eventTypes returns the events known to sessions in a directory, lashd's own first. It may
// load plugins and block. Concurrent calls for the same directory may load them twice,
// which is harmless.
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

// eventType returns the event with a type name, or errNoEventType.
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

// Types lists the event types that triggers can wait for.
func (r *Registry) Types(ctx context.Context, p *protocol.TriggerTypesParams) (*protocol.TriggerTypesResult, error) {
	cwd, err := param.CheckWorkspace(p.Cwd)
	if err != nil {
		return nil, err
	}
	events, err := r.eventTypes(ctx, cwd)
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

// watched reports whether lashd itself watches for events of a type, so that clients cannot
// emit them.
func watched(name string) bool {
	return name == protocol.TypeCronTick || name == protocol.TypeFileChanged
}
