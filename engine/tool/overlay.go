package tool

import (
	"slices"

	"lashd/rpc/protocol"
)

// Same returns the registered tool with the name, or else the id, of a manifest; nil if there is none.
func (r *Registry) Same(m protocol.ToolManifest) *Entry {
	now := r.now.Load()
	for _, l := range []lookup{{name: m.Name}, {id: m.ID}} {
		if it, ok := now.bound(l); ok && (l.id != "" || l.name != "") {
			return it.Entry
		}
	}
	return nil
}

// With returns the catalog that a further overlay on top of the current one would produce. Turns use it for tools that
// exist in that turn only. The Composer does not change, and no lock is held while providers and contributors run. A
// panic of one of them becomes an error.
func (k *Composer) With(more Overlay) (c *Catalog, err error) {
	defer guard(&err)
	k.composing.Lock()
	now := k.overlay
	k.composing.Unlock()
	composed, err := k.compose(Overlay{
		WithoutBase: now.WithoutBase || more.WithoutBase, Keep: slices.Concat(now.Keep, more.Keep), Sources: slices.Concat(now.Sources, more.Sources),
	})
	if err != nil {
		return nil, err
	}
	return k.rules.catalog(composed.now.Load())
}
