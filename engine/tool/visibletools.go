package tool

import (
	"errors"
	"fmt"
	"slices"

	"lashd/rpc/protocol"
)

// Contributor names tools to be left out of a catalog. What it goes by, other than its argument, must change the fingerprint
// that the catalog is asked for with; or else the names come with ErrForNow.
type Contributor func(Listing) (remove []string, err error)

// ErrForNow comes with names that hold for this catalog only: it is made anew when it is asked for the next time.
var ErrForNow = errors.New("what is left out holds for now only")

// Listing is what a contributor knows: the registry's members, filtered by nobody.
type Listing struct {
	Manifests []protocol.ToolManifest // by id; the contributor's own
	Access    Access
	all       *contents
}

// Contract is the contract of a tool that the registry knows by that id.
func (l Listing) Contract(id string) (protocol.ToolContract, error) {
	it, ok := l.all.entries[id]
	if !ok {
		return protocol.ToolContract{}, &CallError{CodeContract, id, ErrUnknown}
	}
	return it.Contract()
}

// Rules make a catalog of a registry.
type Rules struct {
	Contributors []Contributor // in order; each may leave tools out
	Remove       []string      // what the session itself leaves out
	Access       Access        // has the last word
}

// catalog applies the rules.
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

func (f Contributor) call(l Listing) (remove []string, err error) {
	defer guard(&err)
	return f(l)
}

// entries are the tools that an access allows, in its order, each name once. One that nothing provides is there if the
// access defines it; its calls fail.
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

// defined is a tool as an access defines it, with the provider that the registry knows by its id.
func (c *contents) defined(t Tool) *Entry {
	m, terms := split(t)
	e := &Entry{Manifest: m, contract: &contract{known: newTerms(m, terms)}}
	if it, ok := c.bound(lookup{id: m.ID}); ok {
		e.from = it.from
	}
	return e
}
