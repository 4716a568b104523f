package tool

import (
	"fmt"
	"maps"
	"slices"

	"lashd/rpc/protocol"
)

// State returns the settings to save.
func (r *Registry) State() protocol.ToolState { return r.now.Load().state() }

func (c *contents) state() protocol.ToolState {
	tools := make(map[string]protocol.ToolSetting, len(c.entries))
	for id, it := range c.entries {
		s := protocol.ToolSetting{Manifest: it.Manifest, Orphaned: it.orphan(), Override: it.override}
		if !it.member {
			s.Member = new(false)
		}
		tools[id] = s
	}
	return protocol.ToolState{Generation: c.generation, Tools: tools}
}

// Apply replaces the settings by a state of the current generation. Tools that are missing in it are removed until
// their source is refreshed. A tool without a provider must be marked as an orphan in it. Apply returns the resulting
// state. It fails with a GenerationError, ErrUnknown, ErrState or a ConflictError, and then changes nothing.
func (r *Registry) Apply(want protocol.ToolState) (protocol.ToolState, error) {
	now := r.now.Load()
	if err := now.expect(want.Generation); err != nil {
		return now.state(), err
	}
	entries, err := now.bind(want)
	if err != nil {
		return now.state(), err
	}
	return r.set(want.Generation, func(c *contents) error { return c.define(entries) })
}

// expect returns a GenerationError unless the generation is current.
func (c *contents) expect(generation int64) error {
	if generation != c.generation {
		return &GenerationError{Expected: generation, Actual: c.generation}
	}
	return nil
}

// set applies one change to the given generation. It increases the generation even if nothing differs, so that a
// repeated request is detected.
func (r *Registry) set(generation int64, f func(*contents) error) (protocol.ToolState, error) {
	err := r.change(func(c *contents) error {
		if err := c.expect(generation); err != nil {
			return err
		}
		c.generation++
		return f(c)
	})
	return r.State(), err
}

// bind finds the providers of all tools of a state, and rejects a state that is inconsistent.
func (c *contents) bind(want protocol.ToolState) (map[string]*binding, error) {
	names := map[string]bool{}
	entries := map[string]*binding{}
	for _, id := range slices.Sorted(maps.Keys(want.Tools)) {
		b, err := c.settle(id, want.Tools[id])
		switch {
		case err != nil:
			return nil, err
		case b.Manifest.ID != id || b.Manifest.Name == "" || !known(b.override):
			return nil, fmt.Errorf("%q has a different id, no name or an unknown availability: %w", id, ErrState)
		case b.behind == nil && !b.exported:
			return nil, fmt.Errorf("%q: %w", id, ErrUnknown)
		case b.behind != nil && names[b.Manifest.Name]:
			return nil, fmt.Errorf("two tools have the name %q: %w", b.Manifest.Name, ErrState)
		}
		names[b.Manifest.Name] = names[b.Manifest.Name] || b.behind != nil
		entries[id] = b
	}
	return entries, nil
}

// binding is a tool of a state with its provider. It is built before the change, because finding providers calls
// foreign code, which must not happen under the lock of the registry.
type binding struct {
	item
	behind   *source // nil: no source provides it
	exported bool    // the state marks it as an orphan
}

// settle finds the provider of one tool of a state. A tool that is already provided keeps its provider; more than one
// candidate is an error.
func (c *contents) settle(id string, s protocol.ToolSetting) (*binding, error) {
	m, _ := split(Tool{Manifest: s.Manifest})
	b := &binding{item: item{Entry: orphan(m), member: s.IsMember(), override: s.Override}, exported: s.Orphaned}
	if it, ok := c.bound(lookup{id: id}); ok {
		b.Entry, b.behind = it.Entry, c.sources[it.source]
		return b, nil
	}
	found, err := c.offering(lookup{id: id})
	if found != nil {
		b.Entry, b.behind = found.Entry, found.source
	}
	return b, err
}

// define replaces all entries by the bindings. bind has checked that they do not conflict.
func (c *contents) define(entries map[string]*binding) error {
	c.entries = make(map[string]item, len(entries))
	for id, b := range entries {
		it := b.item
		if b.behind != nil {
			s := c.sources[b.behind.id]
			if s == nil {
				return fmt.Errorf("%q: %w", b.behind.id, ErrNoSource)
			}
			c.sources[s.id], it.source = s.with(b.Entry), s.id
		}
		if !c.hidden[it.Manifest.Name] {
			c.entries[id] = it
		}
	}
	return nil
}
