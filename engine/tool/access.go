package tool

import (
	"maps"

	"lashd/rpc/protocol"
)

// Access limits the tools that a session can have, whatever its sources and settings say. The zero Access allows
// everything.
type Access struct {
	Tools  []Tool   // if any: only these exist, in this order, with these contracts
	Names  []string // the same by name, with the registry's manifests and contracts; after Tools
	None   bool     // no tool exists
	Hidden []string // names that no catalog contains and that cannot be called
}

// AccessOf returns the part of an authority that concerns tools.
func AccessOf(a protocol.Authority) Access {
	return Access{Names: a.Tools, None: a.NoTools, Hidden: a.Hidden}
}

// limits reports whether only certain tools exist.
func (a Access) limits() bool { return a.None || len(a.Tools) > 0 || len(a.Names) > 0 }

// Hide removes tools by name permanently: no source, refresh, lookup or saved state brings them back. Forks of the
// registry hide them too.
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
