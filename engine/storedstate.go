package engine

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"lashd/engine/change"
	"lashd/engine/fact"
	"lashd/engine/plugin"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// componentExecution is the prefix of the components that store the state of the code executor: one for each global, so
// that only changed ones are written. They are read only when the executor is opened.
const componentExecution = "execution"

// globalPart returns the name of the component of a global.
func globalPart(name string) string { return componentExecution + "/" + url.PathEscape(name) }

// storedState caches what the store has of a session's tools, plugins, code executor and turn
// options. Methods that take a change add rows to it; the cache follows once the change is stored.
// The session's actor calls them. A running turn or command may also call pluginState, because
// nothing else captures plugin state then.
type storedState struct {
	store    *persistence.Store
	key      int64 // of the session in the store
	tools    protocol.ToolState
	plugins  *pluginState // nil: nothing is stored
	recorded recordedOptions
	facts    fact.Book
}

// components maps the names of the components to the variables that they are decoded into.
func (s *storedState) components() map[string]any {
	return map[string]any{componentTools: &s.tools, componentPlugins: &s.plugins, componentProtocol: &s.recorded, fact.Component: &s.facts}
}

// forget clears the state that a restored snapshot replaces, before the components are read again.
func (s *storedState) forget() { s.tools, s.plugins = protocol.ToolState{}, nil }

// toolState returns the settings of the session's tools.
func (s *storedState) toolState() protocol.ToolState { return s.tools }

// pluginState returns the state of the session's plugins; nil: nothing is stored.
func (s *storedState) pluginState() *pluginState { return s.plugins }

// optionsOf returns the turn options of a frame; nil: there are none.
func (s *storedState) optionsOf(frame protocol.FrameID) *protocol.TurnOptions {
	return s.recorded.of(frame)
}

// setTools adds new tool settings and their event to a change.
func (s *storedState) setTools(c *change.Change, next protocol.ToolState) {
	s.storeTools(c, next)
	c.TellOf(protocol.Event{Type: protocol.EventToolsChanged, Tools: &next})
}

// storeTools is setTools without the event.
func (s *storedState) storeTools(c *change.Change, next protocol.ToolState) {
	c.Component = append(c.Component, persistence.Component{Name: componentTools, Body: encode(next)})
	c.Then(func() { s.tools = next })
}

// keep adds captured state to a change; nil: nothing was captured.
func (s *storedState) keep(c *change.Change, k *captured) {
	if k == nil {
		return
	}
	c.Component = append(c.Component, k.components...)
	if k.execution != nil {
		c.Component = append(c.Component, globalParts(k.execution.ExecutionChange)...)
	}
	c.Then(func() {
		if k.state != nil {
			s.plugins = k.state
		}
		if k.execution != nil {
			k.execution.Stored()
		}
	})
}

// globalParts returns the components of a changed state of the code executor, ordered by name.
func globalParts(change plugin.ExecutionChange) (parts []persistence.Component) {
	for _, name := range slices.Sorted(maps.Keys(change.Changed)) {
		body := change.Changed[name]
		if body == nil {
			body = []byte{} // nil would remove the component
		}
		parts = append(parts, persistence.Component{Name: globalPart(name), Body: body})
	}
	for _, name := range change.Removed {
		parts = append(parts, persistence.Component{Name: globalPart(name)})
	}
	return parts
}

// execution reads the values of the code executor by name: the current ones, or those of a snapshot
// if its name is given. It returns nil if nothing is stored.
func (s *storedState) execution(ctx context.Context, snapshot string) (map[string][]byte, error) {
	parts, err := s.store.Parts(ctx, s.key, snapshot, componentExecution)
	var values map[string][]byte
	for part, body := range parts {
		name, bad := url.PathUnescape(strings.TrimPrefix(part, componentExecution+"/"))
		if bad != nil {
			return nil, fmt.Errorf("component %s: %w", part, persistence.ErrCorrupt)
		}
		if values == nil {
			values = map[string][]byte{}
		}
		values[name] = body
	}
	return values, err
}

// clearExecution adds to a change that the code executor has no state any more: its globals end with
// their frame. It runs on the actor.
func (s *storedState) clearExecution(ctx context.Context, c *change.Change) error {
	names, err := s.store.PartNames(ctx, s.key, componentExecution)
	for _, name := range names {
		c.Component = append(c.Component, persistence.Component{Name: name})
	}
	return err
}

// pluginSnapshot returns stored plugin state in the form that plugins are opened with. It reads
// large artifacts from the current state, or from the named snapshot. A missing artifact is
// persistence.ErrCorrupt. It returns nil for nil.
func (s *storedState) pluginSnapshot(ctx context.Context, from *pluginState, snapshot string) (*plugin.Snapshot, error) {
	if from == nil {
		return nil, nil
	}
	snap := &plugin.Snapshot{Entries: map[string]plugin.Entry{}, Fingerprint: from.Fingerprint}
	var bulk map[string][]byte
	if len(from.bulk()) > 0 {
		var err error
		if bulk, err = s.store.Parts(ctx, s.key, snapshot, componentPlugins); err != nil {
			return snap, err
		}
	}
	for id, e := range from.Entries {
		entry := plugin.Entry{Meta: e.Meta}
		for _, a := range e.Artifacts {
			data, ok := a.Data, true
			if a.Size > smallArtifact {
				data, ok = bulk[partName(a.Digest)]
			}
			if !ok {
				return snap, fmt.Errorf("artifact %s of plugin %s is missing: %w", a.Name, id, persistence.ErrCorrupt)
			}
			entry.Artifacts = append(entry.Artifacts, plugin.Artifact{Name: a.Name, Data: data})
		}
		snap.Entries[id] = entry
	}
	return snap, nil
}
