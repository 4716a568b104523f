package tool

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Source is a provider with the id of the plugin or client that it belongs to. Several providers with one id form one
// source.
type Source struct {
	ID       string
	Provider Provider
}

// source is a registered source with its tools. It is immutable.
type source struct {
	id      string
	parts   []*part
	offers  map[string]*Entry // by tool id: listed tools and tools resolved later
	overlay bool              // its tools replace conflicting ones
	rank    int               // order of registration
}

// parts wraps providers as parts of a source. Providers that the old version has keep their part. With it they keep
// their contracts and the record of abandoned requests.
func parts(old *source, providers []Source) []*part {
	out := make([]*part, len(providers))
	for i, p := range providers {
		out[i] = &part{label: p.ID, provider: p.Provider}
		if old == nil {
			continue
		}
		same := func(o *part) bool { return o.label == p.ID && sameProvider(o.provider, p.Provider) }
		if at := slices.IndexFunc(old.parts, same); at >= 0 {
			out[i] = old.parts[at]
		}
	}
	return out
}

// sameProvider reports whether a and b are the same value. Values that cannot be compared count as different.
func sameProvider(a, b Provider) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// list asks all providers of a source for their tools. Unchanged entries of known are reused, so that their contracts
// are not fetched again. Tools in known that are no longer listed stay if the provider can still resolve them. One
// failing provider fails the whole source.
func list(s source, known map[string]*Entry) (_ *source, err error) {
	defer guard(&err)
	s.offers = map[string]*Entry{}
	names := map[string]bool{}
	for _, p := range s.parts {
		offered, err := p.tools()
		if err != nil {
			return nil, err
		}
		for _, t := range offered {
			if err := s.add(newEntry(p, t, known), names); err != nil {
				return nil, err
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		p := known[id].from
		if s.offers[id] != nil || !slices.Contains(s.parts, p) {
			continue
		}
		e, err := p.resolve(lookup{id: id}, known)
		if err != nil {
			return nil, err
		}
		if e != nil {
			_ = s.add(e, names) // a tool in the list that took the name wins
		}
	}
	return &s, nil
}

// add adds an entry unless its id or name is taken.
func (s *source) add(e *Entry, names map[string]bool) error {
	m := e.Manifest
	switch {
	case m.ID == "" || m.Name == "":
		return fmt.Errorf("%s offers a tool without an id or a name: %w", s.id, ErrState)
	case s.offers[m.ID] != nil:
		return &ConflictError{"id", m.ID, s.id, s.id}
	case names[m.Name]:
		return &ConflictError{"name", m.Name, s.id, s.id}
	}
	s.offers[m.ID], names[m.Name] = e, true
	return nil
}

// newEntry returns an entry for a listed tool. It reuses a known entry, or its contract, if the tool has not changed.
func newEntry(p *part, t Tool, known map[string]*Entry) *Entry {
	m, c := split(t)
	e := &Entry{Manifest: m, from: p}
	switch old := known[m.ID]; {
	case old == nil || old.from == nil || !old.same(p, m, c):
		e.contract = newContract(p, m, c)
	case old.from == p:
		return old
	default:
		e.contract = old.contract
	}
	return e
}

// lookup is a search by id or by name; exactly one is set.
type lookup struct{ id, name string }

func (l lookup) String() string { return cmp.Or(l.id, l.name) }

// fits reports whether the entry is the one searched for.
func (l lookup) fits(e *Entry) bool {
	return e.Manifest.ID == l.id || l.id == "" && e.Manifest.Name == l.name
}

// tools asks the provider for its list, with a time limit.
func (p *part) tools() ([]Tool, error) {
	return withTimeout(p, "tools", func() ([]Tool, error) { return p.provider.Tools(), nil })
}

// resolve asks the provider for a tool, listed or not. It returns nil if there is none.
func (p *part) resolve(l lookup, known map[string]*Entry) (*Entry, error) {
	offered, err := p.tools()
	if err != nil {
		return nil, err
	}
	more, err := p.unlisted(l)
	if err != nil {
		return nil, err
	}
	for _, t := range append(slices.Clip(offered), more...) {
		if e := newEntry(p, t, known); l.fits(e) {
			return e, nil
		}
	}
	return nil, nil
}

// unlisted asks a Resolver for a tool.
func (p *part) unlisted(l lookup) ([]Tool, error) {
	r, ok := p.provider.(Resolver)
	if !ok {
		return nil, nil
	}
	find, key := r.ResolveName, l.name
	if l.id != "" {
		find, key = r.ResolveID, l.id
	}
	return withTimeout(p, "resolve", func() ([]Tool, error) {
		if t, ok := find(key); ok {
			return []Tool{t}, nil
		}
		return nil, nil
	})
}

// resolve asks the providers of the source in order.
func (s *source) resolve(l lookup) (e *Entry, err error) {
	defer guard(&err)
	for _, p := range s.parts {
		if e, err := p.resolve(l, s.offers); e != nil || err != nil {
			return e, err
		}
	}
	return nil, nil
}

// with returns the source with one more offer.
func (s *source) with(e *Entry) *source {
	if s.offers[e.Manifest.ID] == e {
		return s
	}
	more := *s
	more.offers = maps.Clone(s.offers)
	more.offers[e.Manifest.ID] = e
	return &more
}
