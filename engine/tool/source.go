package tool

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Source is a provider under the name of what it belongs to: a plugin, or a client. Several of one id are one source.
type Source struct {
	ID       string
	Provider Provider
}

// source is a registered source, with what it offers. It does not change.
type source struct {
	id      string
	parts   []*part
	offers  map[string]*Entry // by tool id: what it listed, and what was resolved beyond that
	overlay bool              // replaces what conflicts with it
	rank    int               // order of arrival
}

// parts are providers as parts of a source; those that it has already stay the same.
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

func sameProvider(a, b Provider) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// list asks a source what it offers. An entry that is what it was stays the same. What was resolved beyond the list is
// kept as long as it can be resolved.
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
			_ = s.add(e, names) // a name that is listed by now goes to the tool in the list
		}
	}
	return &s, nil
}

// add takes an entry in, if its id and name are not taken.
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

// lookup is what a tool is looked for by; one of them is set.
type lookup struct{ id, name string }

func (l lookup) String() string { return cmp.Or(l.id, l.name) }

func (l lookup) fits(e *Entry) bool {
	return e.Manifest.ID == l.id || l.id == "" && e.Manifest.Name == l.name
}

// tools asks a provider what it lists.
func (p *part) tools() ([]Tool, error) {
	return within(p, "tools", func() ([]Tool, error) { return p.provider.Tools(), nil })
}

// resolve asks a provider for a tool, listed or not. It is nil if there is none.
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

func (p *part) unlisted(l lookup) ([]Tool, error) {
	r, ok := p.provider.(Resolver)
	if !ok {
		return nil, nil
	}
	find, key := r.ResolveName, l.name
	if l.id != "" {
		find, key = r.ResolveID, l.id
	}
	return within(p, "resolve", func() ([]Tool, error) {
		if t, ok := find(key); ok {
			return []Tool{t}, nil
		}
		return nil, nil
	})
}

// resolve asks the parts in order.
func (s *source) resolve(l lookup) (e *Entry, err error) {
	defer guard(&err)
	for _, p := range s.parts {
		if e, err := p.resolve(l, s.offers); e != nil || err != nil {
			return e, err
		}
	}
	return nil, nil
}

// with is the source with one more offer.
func (s *source) with(e *Entry) *source {
	if s.offers[e.Manifest.ID] == e {
		return s
	}
	more := *s
	more.offers = maps.Clone(s.offers)
	more.offers[e.Manifest.ID] = e
	return &more
}
