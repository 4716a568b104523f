package tool

import (
	"fmt"

	"lashd/rpc/protocol"
)

// ResolveName returns the tool with this name. If none is registered, it asks every source, and registers the tool that
// it finds as a member. So a lookup can change the registry.
func (r *Registry) ResolveName(name string) (protocol.ToolManifest, error) {
	return r.resolve(lookup{name: name})
}

// ResolveID is ResolveName for an id. An orphan with this id becomes a provided tool again.
func (r *Registry) ResolveID(id string) (protocol.ToolManifest, error) {
	return r.resolve(lookup{id: id})
}

// resolve looks a tool up in the registry and then in the sources. The sources are asked without a lock, so the
// registry may have changed when their answer is applied.
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
		if _, ok := c.bound(l); ok { // found by another caller in the meantime
			return nil
		}
		return c.adopt(found)
	})
	return found.Manifest, err
}

// offer is an entry with the source that offers it.
type offer struct {
	*Entry
	source *source
}

// offering asks all sources for a tool. It returns nil if none has it, and a ConflictError if several have it.
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

// adopt registers a tool that offering has found. It fails if the source was removed or the tool conflicts with another
// one.
func (c *contents) adopt(o *offer) error {
	s := c.sources[o.source.id]
	if s == nil {
		return fmt.Errorf("%q: %w", o.source.id, ErrNoSource)
	}
	alone := &source{id: s.id, offers: map[string]*Entry{o.Manifest.ID: o.Entry}}
	if err := c.conflict(alone); err != nil {
		return err
	}
	for id, it := range c.entries { // the same source may list another tool with that name now
		if it.source == s.id && id != o.Manifest.ID && it.Manifest.Name == o.Manifest.Name {
			return &ConflictError{"name", o.Manifest.Name, s.id, s.id}
		}
	}
	s = s.with(o.Entry)
	c.sources[s.id] = s
	c.put(s, alone.offers)
	return nil
}
