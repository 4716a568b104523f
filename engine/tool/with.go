package tool

import "slices"

// With is the catalog as it would be with more over the overlay. The Composer stays as it is.
func (k *Composer) With(more Overlay) (c *Catalog, err error) {
	k.composing.Lock()
	defer k.composing.Unlock()
	defer guard(&err)
	composed, err := k.compose(Overlay{
		WithoutBase: k.overlay.WithoutBase || more.WithoutBase,
		Sources:     slices.Concat(k.overlay.Sources, more.Sources),
	})
	if err != nil {
		return nil, err
	}
	return k.rules.catalog(composed.now.Load())
}
