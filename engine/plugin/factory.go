package plugin

import (
	"context"
	"encoding/json"
	"fmt"

	"lashd/rpc/protocol"
)

// Extender is a Factory that offers typed data to other plugins. Extensions is called once, when the host is created.
type Extender interface{ Extensions() []Extension }

// ProcessEngine runs durable processes of one kind.
type ProcessEngine interface{ Kind() string }

// EngineContributor is a Factory that provides process engines. It is called once per host, after all extensions are
// known.
type EngineContributor interface {
	ProcessEngines(Extensions) []ProcessEngine
}

// Shutdowner is a Factory that holds resources for the lifetime of the daemon.
type Shutdowner interface {
	// Shutdown is called once, after the last session has been closed. It must return soon after ctx is done.
	Shutdown(context.Context) error
}

// Loaded is a Factory of a plugin that does not ship with lashd. Its own claims about its tools are not trusted.
type Loaded interface {
	// Sandboxed reports whether all programs of the plugin run in a sandbox, where the system supports one.
	Sandboxed() bool
}

// Readier is a Plugin that wants to know when its session is known to the host.
type Readier interface {
	// Ready is called after the host knows the session and before any state is restored. It must not do IO. An error
	// keeps the session from opening.
	Ready(protocol.SessionID, *Host) error
}

// extensionsOf collects the extensions of all factories, by id, in the order of the factories.
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

// enginesOf collects the process engines of all factories, by kind. Two engines of the same kind are an error.
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
				return nil, fmt.Errorf("plugins %s and %s both provide a process engine of kind %q", other, f.ID(), kind)
			}
			engines[kind], owner[kind] = e, f.ID()
		}
	}
	return engines, nil
}

// Extension is typed data that one plugin offers to others. Both sides agree on the id and the shape of the payload.
type Extension struct {
	ID      string
	Payload json.RawMessage
}

// Extensions hold the payloads of each extension id, in the order of the factories.
type Extensions map[string][]json.RawMessage
