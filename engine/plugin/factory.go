package plugin

import (
	"context"
	"encoding/json"
	"fmt"

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

// Extension is typed data that one plugin offers to others, under an id that they agree on.
type Extension struct {
	ID      string
	Payload json.RawMessage
}

// Extensions are the payloads of each id, in the order in which the factories gave them.
type Extensions map[string][]json.RawMessage
