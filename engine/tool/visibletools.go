package tool

import (
	"errors"
	"fmt"
	"slices"

	"lashd/rpc/protocol"
)

// Contributor returns the names of tools to leave out of a catalog. If the result depends on anything besides the
// argument, a change of that must change the fingerprint passed to Composer.Catalog. Otherwise it must return the names
// with ErrForNow.
type Contributor func(Listing) (remove []string, err error)

// ErrForNow marks names as valid for this catalog only: the catalog is not cached.
var ErrForNow = errors.New("the removed names are valid for this catalog only")

// Listing is the argument of a contributor: all members of the registry, before any filter.
type Listing struct {
	Manifests []protocol.ToolManifest // ordered by id; a copy for this contributor
	Access    Access
	all       *contents
}

// Contract returns the contract of a tool in the registry. The error is a CallError.
func (l Listing) Contract(id string) (protocol.ToolContract, error) {
	it, ok := l.all.entries[id]
	if !ok {
		return protocol.ToolContract{}, &CallError{CodeContract, id, ErrUnknown}
	}
	return it.Contract()
}

// Rules filter a registry into a catalog.
type Rules struct {
	Contributors []Contributor // called in order; each may leave tools out
	Remove       []string      // names that the session leaves out
	Access       Access        // applied last; it can also add tools
}

// catalog applies the rules to the contents.
func (rules Rules) catalog(all *contents) (*Catalog, error) {
	members := all.members()
	remove, err := rules.contributions(all, members)
	forNow := errors.Is(err, ErrForNow)
	if err != nil && !forNow {
		return nil, err
	}
	var only map[string]bool
	if rules.Access.limits() {
		members, only = rules.Access.entries(all), map[string]bool{}
		for _, e := range members {
			only[e.Manifest.Name] = true
		}
	}
	for _, name := range slices.Concat(rules.Remove, rules.Access.Hidden) {
		remove[name] = true
	}
	c := newCatalog(all, slices.DeleteFunc(members, func(e *Entry) bool { return remove[e.Manifest.Name] }))
	c.only, c.forNow = only, forNow
	return c, nil
}

// contributions collects the names that contributors leave out. An ErrForNow is returned with them; other errors fail
// the catalog.
func (rules Rules) contributions(all *contents, members []*Entry) (remove map[string]bool, forNow error) {
	remove = map[string]bool{}
	for i, contribute := range rules.Contributors {
		l := Listing{Manifests: make([]protocol.ToolManifest, len(members)), Access: rules.Access, all: all}
		for j, e := range members {
			l.Manifests[j] = e.Manifest
		}
		names, err := contribute.call(l)
		switch {
		case errors.Is(err, ErrForNow):
			forNow = err
		case err != nil:
			return nil, fmt.Errorf("catalog contributor %d: %w", i+1, err)
		}
		for _, name := range names {
			remove[name] = true
		}
	}
	return remove, forNow
}

// call runs the contributor and converts a panic to an error.
func (f Contributor) call(l Listing) (remove []string, err error) {
	defer guard(&err)
	return f(l)
}

// entries returns the tools that an Access allows, in its order, each name once. A tool that the Access defines is
// included even without a provider; calls of it fail.
func (a Access) entries(all *contents) []*Entry {
	entries := make([]*Entry, 0, len(a.Tools)+len(a.Names))
	seen := map[string]bool{}
	add := func(e *Entry) {
		if !seen[e.Manifest.Name] {
			entries = append(entries, e)
		}
		seen[e.Manifest.Name] = true
	}
	for _, t := range a.Tools {
		add(all.defined(t))
	}
	for _, name := range a.Names {
		if it, ok := all.bound(lookup{name: name}); ok && it.member {
			add(it.Entry)
		}
	}
	return entries
}

// defined returns a tool as an Access defines it, with the provider that the registry has for its id.
func (c *contents) defined(t Tool) *Entry {
	m, terms := split(t)
	e := &Entry{Manifest: m, contract: &contract{known: newTerms(m, terms)}}
	if it, ok := c.bound(lookup{id: m.ID}); ok {
		e.from = it.from
	}
	return e
}
