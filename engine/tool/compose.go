package tool

import (
	"slices"
	"sync"
)

// contextSource is the source id of all tools of an overlay.
const contextSource = "context"

// Overlay is a temporary change of a session's tools.
type Overlay struct {
	WithoutBase bool     // leave out the tools of the base registry
	Keep        []string // sources of the base to keep in spite of WithoutBase
	Sources     []Source // their tools replace base tools with the same id or name
}

// same reports whether two overlays have the same providers in the same order.
func (o Overlay) same(p Overlay) bool {
	return o.WithoutBase == p.WithoutBase && slices.Equal(o.Keep, p.Keep) && slices.EqualFunc(o.Sources, p.Sources, func(a, b Source) bool {
		return a.ID == b.ID && sameProvider(a.Provider, b.Provider)
	})
}

// Composition configures a Composer.
type Composition struct {
	Base  *Registry // the session's own tools
	Rules Rules
	// Extra computes a value from a catalog that is cached with it, such as a preamble. Nil: nothing.
	Extra func(*Catalog) (any, error)
}

// Composer keeps the current catalog of a session. The catalog comes from a fork of the base registry with the overlay
// applied, filtered by the rules. Changes of the base take effect at the next Recompose. A Composer is safe for
// concurrent use; it calls providers and contributors only outside of mu.
type Composer struct {
	base  *Registry
	rules Rules
	extra func(*Catalog) (any, error)

	// composing is held during SetOverlay and Recompose. Providers of overlays are called under it, with a time limit.
	composing sync.Mutex
	overlay   Overlay // guarded by composing

	mu       sync.Mutex
	composed *Registry
	without  bool     // the overlay leaves out the base
	revision uint64   // counts changes of the overlay
	key      cacheKey // what cached was built from
	cached   *View    // nil: must be built
	// making is the build in progress; nil: none, or its result is already outdated.
	making *making
}

// making is a catalog being built. Callers that want the same one wait for done instead of building it again.
type making struct {
	key  cacheKey
	done chan struct{}
	view *View
	err  error
}

// View is a catalog with the value of Composition.Extra.
type View struct {
	*Catalog
	Extra any
}

// cacheKey lists everything that a catalog depends on.
type cacheKey struct {
	includeBase bool
	overlay     uint64
	composed    int64
	plugins     uint64 // fingerprint of the plugins' revisions
}

// NewComposer returns a composer without an overlay. It makes the base hide the tools that the rules hide.
func NewComposer(c Composition) *Composer {
	c.Base.Hide(c.Rules.Access.Hidden...)
	k := &Composer{base: c.Base, rules: c.Rules, extra: c.Extra}
	k.composed = k.base.copy()
	return k
}

// Base returns the registry of the session's own tools. The stored tool state and its generation are always those of
// the base.
func (k *Composer) Base() *Registry { return k.base }

// Composed returns the current composition. The next Recompose or SetOverlay replaces it, so do not keep it.
func (k *Composer) Composed() *Registry {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.composed
}

// SetOverlay replaces the overlay and reports whether it differs from the old one. On an error the old overlay stays.
func (k *Composer) SetOverlay(o Overlay) (changed bool, err error) {
	k.composing.Lock()
	defer k.composing.Unlock()
	composed, err := k.compose(o)
	if err != nil {
		return false, err
	}
	changed = !o.same(k.overlay)
	k.overlay = Overlay{o.WithoutBase, slices.Clone(o.Keep), slices.Clone(o.Sources)}
	k.use(composed, changed)
	return changed, nil
}

// Recompose applies changes of the base. On an error the old composition stays.
func (k *Composer) Recompose() error {
	k.composing.Lock()
	defer k.composing.Unlock()
	composed, err := k.compose(k.overlay)
	if err != nil {
		return err
	}
	k.use(composed, false)
	return nil
}

// compose returns a fork of the base with the overlay applied.
func (k *Composer) compose(o Overlay) (*Registry, error) {
	composed := k.base.copy()
	if o.WithoutBase {
		composed = k.base.only(o.Keep)
	}
	if len(o.Sources) == 0 {
		return composed, nil
	}
	old := k.Composed().now.Load().sources[contextSource]
	return composed, composed.upsert(old, contextSource, true, o.Sources)
}

// use installs a composition. It drops the cached catalog, because the generation of the new registry may repeat a
// number of the old one.
func (k *Composer) use(composed *Registry, overlaid bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.composed, k.without, k.cached, k.making = composed, k.overlay.WithoutBase, nil, nil
	if overlaid {
		k.revision++
	}
}

// Catalog returns the current catalog with its extra value. It rebuilds the catalog if the overlay, the composed
// registry or plugins (the fingerprint of the plugins) has changed. Errors are not cached, nor are catalogs that
// contributors marked with ErrForNow. Concurrent callers share one build, and no lock is held during it.
func (k *Composer) Catalog(plugins uint64) (*View, error) {
	k.mu.Lock()
	key := cacheKey{!k.without, k.revision, k.composed.Generation(), plugins}
	if k.cached != nil && k.key == key {
		defer k.mu.Unlock()
		return k.cached, nil
	}
	if m := k.making; m != nil && m.key == key {
		k.mu.Unlock()
		<-m.done
		return m.view, m.err
	}
	m := &making{key: key, done: make(chan struct{})}
	k.making = m
	composed := k.composed.now.Load()
	k.mu.Unlock()
	m.view, m.err = k.build(composed)
	k.made(m)
	return m.view, m.err
}

// made caches a finished build, unless something has changed since it started.
func (k *Composer) made(m *making) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.making == m {
		k.making = nil
		if m.err == nil && !m.view.forNow {
			k.key, k.cached = m.key, m.view
		}
	}
	close(m.done)
}

// build makes a catalog and its extra value. A panic of a contributor becomes an error.
func (k *Composer) build(composed *contents) (v *View, err error) {
	defer guard(&err)
	c, err := k.rules.catalog(composed)
	if err != nil {
		return nil, err
	}
	v = &View{Catalog: c}
	if k.extra != nil {
		v.Extra, err = k.extra(c)
	}
	return v, err
}
