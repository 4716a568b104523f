package tool

import (
	"fmt"

	"lashd/rpc/protocol"
)

// ResolveName finds a tool by its name, and asks every source for it if none is registered. A tool that is found so is
// registered as a member: to look changes the registry.
func (r *Registry) ResolveName(name string) (protocol.ToolManifest, error) {
	return r.resolve(lookup{name: name})
}

// ResolveID finds a tool by its id in the same way; an orphan of that id is one no more.
func (r *Registry) ResolveID(id string) (protocol.ToolManifest, error) {
	return r.resolve(lookup{id: id})
}

func (r *Registry) resolve(l lookup) (protocol.ToolManifest, error) {
	now := r.now.Load()
	if it, ok := now.bound(l); ok {
		return it.Manifest, nil
	}
	found, err := now.offering(l)
	if err != nil {
		return protocol.ToolManifest{}, err
	}
	if found == nil || now.hidden[found.Manifest.Name] {
		return protocol.ToolManifest{}, fmt.Errorf("%q: %w", l, ErrUnknown)
	}
	err = r.change(func(c *contents) error {
		if _, ok := c.bound(l); ok { // somebody else has found it meanwhile
			return nil
		}
		return c.adopt(found)
	})
	return found.Manifest, err
}

// offer is an entry, and the source that has it.
type offer struct {
	*Entry
	source *source
}

// offering asks the sources for a tool. Nil means that none has it; it is a ConflictError if several have.
func (c *contents) offering(l lookup) (*offer, error) {
	var found *offer
	for _, s := range c.ranked() {
		e, err := s.resolve(l)
		if err != nil {
			return nil, fmt.Errorf("resolve %q: %w", l, err)
		}
		if e == nil {
			continue
		}
		if found != nil {
			return nil, &ConflictError{"id or name", l.String(), s.id, found.source.id}
		}
		found = &offer{e, s}
	}
	return found, nil
}

// adopt registers a tool that was asked for, unless its source went meanwhile.
func (c *contents) adopt(o *offer) error {
	s := c.sources[o.source.id]
	if s == nil {
		return fmt.Errorf("%q: %w", o.source.id, ErrNoSource)
	}
	alone := &source{id: s.id, offers: map[string]*Entry{o.Manifest.ID: o.Entry}}
	if err := c.conflict(alone); err != nil {
		return err
	}
	for id, it := range c.entries { // a listed tool that has the name by now goes by another name no more
		if it.source == s.id && id != o.Manifest.ID && it.Manifest.Name == o.Manifest.Name {
			return &ConflictError{"name", o.Manifest.Name, s.id, s.id}
		}
	}
	s = s.with(o.Entry)
	c.sources[s.id] = s
	c.put(s, alone.offers)
	return nil
}
