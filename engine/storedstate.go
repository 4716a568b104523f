package engine

import (
	"context"

	"lashd/engine/change"
	"lashd/engine/fact"
	"lashd/engine/plugin"
	"lashd/engine/pluginstate"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// storedState caches what the store has of a session's tools, plugins, code executor and turn
// options. Methods that take a change add rows to it; the cache follows once the change is stored.
// The session's actor calls them. A running turn or command may also call pluginState, because
// nothing else captures plugin state then.
type storedState struct {
	store    *persistence.Store
	key      int64 // of the session in the store
	tools    protocol.ToolState
	plugins  *pluginstate.State // nil: nothing is stored
	recorded recordedOptions
	facts    fact.Book
}

// components maps the names of the components to the variables that they are decoded into.
func (s *storedState) components() map[string]any {
	return map[string]any{componentTools: &s.tools, pluginstate.Component: &s.plugins, componentProtocol: &s.recorded, fact.Component: &s.facts}
}

// forget clears the state that a restored snapshot replaces, before the components are read again.
func (s *storedState) forget() { s.tools, s.plugins = protocol.ToolState{}, nil }

// toolState returns the settings of the session's tools.
func (s *storedState) toolState() protocol.ToolState { return s.tools }

// pluginState returns the state of the session's plugins; nil: nothing is stored.
func (s *storedState) pluginState() *pluginstate.State { return s.plugins }

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
func (s *storedState) keep(c *change.Change, k *pluginstate.Captured) {
	if k == nil {
		return
	}
	c.Component = append(c.Component, k.Components()...)
	c.Then(func() {
		if k.State != nil {
			s.plugins = k.State
		}
		if k.Execution != nil {
			k.Execution.Stored()
		}
	})
}

// execution reads the values of the code executor by name: the current ones, or those of a snapshot
// if its name is given. It returns nil if nothing is stored.
func (s *storedState) execution(ctx context.Context, snapshot string) (map[string][]byte, error) {
	parts, err := s.store.Parts(ctx, s.key, snapshot, pluginstate.Execution)
	if err != nil {
		return nil, err
	}
	return pluginstate.Globals(parts)
}

// clearExecution adds to a change that the code executor has no state any more: its globals end with
// their frame. It runs on the actor.
func (s *storedState) clearExecution(ctx context.Context, c *change.Change) error {
	names, err := s.store.PartNames(ctx, s.key, pluginstate.Execution)
	for _, name := range names {
		c.Component = append(c.Component, persistence.Component{Name: name})
	}
	return err
}

// pluginSnapshot returns stored plugin state in the form that plugins are opened with. It reads
// large artifacts from the current state, or from the named snapshot.
func (s *storedState) pluginSnapshot(ctx context.Context, from *pluginstate.State, snapshot string) (*plugin.Snapshot, error) {
	return from.Snapshot(func() (map[string][]byte, error) { return s.store.Parts(ctx, s.key, snapshot, pluginstate.Component) })
}
