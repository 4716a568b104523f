package tool

import (
	"maps"

	"lashd/rpc/protocol"
)

// Access is what a session may use, whatever it makes of itself. The zero Access allows everything.
type Access struct {
	Tools  []Tool   // if any: exactly these exist, in this order, with these contracts
	Names  []string // the same, with the registry's own manifests and contracts; Tools come first
	None   bool     // no tool exists
	Hidden []string // names that are never in a catalog, and cannot be called
}

// AccessOf is an authority's part that is about tools.
func AccessOf(a protocol.Authority) Access {
	return Access{Names: a.Tools, None: a.NoTools, Hidden: a.Hidden}
}

func (a Access) limits() bool { return a.None || len(a.Tools) > 0 || len(a.Names) > 0 }

// Hide withholds tools by name for good. Nothing brings them back: no source, no refresh, no lookup, no saved state.
// Forks hide them, too.
func (r *Registry) Hide(names ...string) {
	// The change cannot fail.
	_ = r.change(func(c *contents) error {
		for _, name := range names {
			c.hidden[name] = true
		}
		maps.DeleteFunc(c.entries, func(_ string, it item) bool { return c.hidden[it.Manifest.Name] })
		return nil
	})
}
