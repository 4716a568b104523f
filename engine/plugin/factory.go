package plugin

import (
	"context"
	"fmt"
	"slices"

	"lashd/rpc/protocol"
)

// Extender is a Factory that offers typed data to other plugins. It is asked once.
type Extender interface{ Extensions() []Extension }

// ProcessEngine runs durable processes of a kind.
type ProcessEngine interface{ Kind() string }

// EngineContributor is a Factory that brings process engines. It is asked once, after all extensions are known.
type EngineContributor interface {
	ProcessEngines(Extensions) []ProcessEngine
}

// Shutdowner is a Factory that holds something while the daemon runs.
type Shutdowner interface {
	// Shutdown is called once, after the last session has been closed. It returns soon after ctx is done.
	Shutdown(context.Context) error
}

// Loaded is a Factory of a plugin that does not ship with lashd.
type Loaded interface {
	// Sandboxed tells whether all programs of the plugin are in a sandbox, as far as the system has one.
	Sandboxed() bool
}

// Sandboxed tells whether all programs of a plugin of the session are in a sandbox.
func (s *Session) Sandboxed(id string) bool { return s.loaded[id] }

// Loaded tells whether a plugin of the session does not ship with lashd.
func (s *Session) Loaded(id string) bool {
	_, loaded := s.loaded[id]
	return loaded
}

// Ships tells whether a plugin of the session ships with lashd, so that what it says of its tools is so.
func (s *Session) Ships(id string) bool {
	_, loaded := s.loaded[id]
	return !loaded && s.Has(id)
}

// Has tells whether the session has a plugin.
func (s *Session) Has(id string) bool {
	return slices.ContainsFunc(s.plugins, func(p instance) bool { return p.id == id })
}

// ExecutorSandboxed tells whether code cells of the session run in a sandbox.
func (s *Session) ExecutorSandboxed() bool {
	return s.executor != nil && s.Sandboxed(s.executor.plugin)
}

// Readier is a Plugin that wants to know when its session is open.
type Readier interface {
	// Ready is called after the host knows the session, and before state is restored. It does no IO. An error means that
	// the session is not opened.
	Ready(protocol.SessionID, *Host) error
}

func extensionsOf(factories []Factory) Extensions {
	all := Extensions{}
	for _, f := range factories {
		x, ok := f.(Extender)
		if !ok {
			continue
		}
		for _, e := range x.Extensions() {
			all[e.ID] = append(all[e.ID], own(e.Payload))
		}
	}
	return all
}

func enginesOf(factories []Factory, extensions Extensions) (map[string]ProcessEngine, error) {
	engines, owner := map[string]ProcessEngine{}, map[string]string{}
	for _, f := range factories {
		x, ok := f.(EngineContributor)
		if !ok {
			continue
		}
		for _, e := range x.ProcessEngines(own(extensions)) {
			kind := e.Kind()
			if other, taken := owner[kind]; taken {
				return nil, fmt.Errorf("plugins %s and %s both bring a process engine of the kind %q", other, f.ID(), kind)
			}
			engines[kind], owner[kind] = e, f.ID()
		}
	}
	return engines, nil
}
