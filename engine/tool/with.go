package tool

import "slices"

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
