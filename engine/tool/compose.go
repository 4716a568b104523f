package tool

import (
	"slices"
	"sync"
)

// contextSource is the source of what an overlay adds.
const contextSource = "context"

// Overlay is what a session has for a while only.
type Overlay struct {
	WithoutBase bool     // the base registry's tools are left out
	Keep        []string // sources of the base whose tools are there all the same
	Sources     []Source // their tools replace those of the base that have the same id or name
}

// same tells whether two overlays have the same providers in the same order.
func (o Overlay) same(p Overlay) bool {
	return o.WithoutBase == p.WithoutBase && slices.Equal(o.Keep, p.Keep) && slices.EqualFunc(o.Sources, p.Sources, func(a, b Source) bool {
		return a.ID == b.ID && sameProvider(a.Provider, b.Provider)
	})
}

// Composition is what a Composer is made of.
type Composition struct {
	Base  *Registry // what hides what: the session's own tools
	Rules Rules
	// Extra makes something of a catalog that is kept beside it, such as a preamble. Nil: nothing.
	Extra func(*Catalog) (any, error)
}

// Composer keeps the catalog of a session: that of a fork of the base, with an overlay. What changes the base is in the
// catalog after Recompose. A Composer is safe for concurrent use.
type Composer struct {
	base  *Registry
	rules Rules
	extra func(*Catalog) (any, error)

	composing sync.Mutex // held by whoever composes; providers of overlays are asked under it, with a limit
	overlay   Overlay    // guarded by composing

	mu       sync.Mutex
	composed *Registry
	without  bool   // the base is left out
	revision uint64 // of the overlay
	key      cacheKey
	cached   *View   // nil: none
	making   *making // the one that is being made; nil: none, or what it comes to does not count any more
}

// making is a catalog that is being made: whoever wants the same one waits for it.
type making struct {
	key  cacheKey
	done chan struct{}
	view *View
	err  error
}

// View is a catalog with what its user keeps beside it.
type View struct {
	*Catalog
	Extra any
}

// cacheKey is what a catalog depends on.
type cacheKey struct {
	includeBase bool
	overlay     uint64
	composed    int64
	plugins     uint64
}

// NewComposer composes a base without an overlay. From now on the base hides what the access hides.
func NewComposer(c Composition) *Composer {
	c.Base.Hide(c.Rules.Access.Hidden...)
	k := &Composer{base: c.Base, rules: c.Rules, extra: c.Extra}
	k.composed = k.base.copy()
	return k
}

// Base is the registry of what the session keeps. State and generation of a session are always those of the base.
func (k *Composer) Base() *Registry { return k.base }

// Composed is the newest composition; it is thrown away at the next one.
func (k *Composer) Composed() *Registry {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.composed
}

// SetOverlay replaces the overlay, and tells whether it is another one. If it cannot be composed, the old one stays.
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

// Recompose brings in what changed in the base.
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

// compose is a fork of the base with an overlay.
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

// use puts a composition in force. Numbers of its generation may have been those of another composition.
func (k *Composer) use(composed *Registry, overlaid bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.composed, k.without, k.cached, k.making = composed, k.overlay.WithoutBase, nil, nil
	if overlaid {
		k.revision++
	}
}

// Catalog is the catalog as it is, with its extra. It is made anew if the overlay, the composed registry or the plugins'
// fingerprint changed since the last time; an error is not kept, nor what holds for now only. What several ask for at once is made once, and nothing is
// locked meanwhile.
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

// made keeps a catalog, unless something has changed since it was begun.
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
