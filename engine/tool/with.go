package tool

import (
	"slices"

	"lashd/rpc/protocol"
)

// Same is the tool of the registry that has the id or the name of another one; nil: there is none.
func (r *Registry) Same(m protocol.ToolManifest) *Entry {
	now := r.now.Load()
	for _, l := range []lookup{{name: m.Name}, {id: m.ID}} {
		if it, ok := now.bound(l); ok && (l.id != "" || l.name != "") {
			return it.Entry
		}
	}
	return nil
}

// With is the catalog as it would be with more over the overlay. The Composer stays as it is, and is not locked while
// providers and contributors are asked.
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
