package tool

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"lashd/rpc/protocol"
)

// Report is the result of restoring a saved state.
type Report struct {
	Generation int64
	Orphaned   []string // sorted ids of tools that no source provides
}

// Restore applies saved settings even if the sources have changed: a tool without a provider becomes an orphan, and
// a tool that is missing in the state becomes a member. The generation becomes the higher of both, plus one if the
// tools differ from those of that generation. The registry must not be in use yet.
func (r *Registry) Restore(saved protocol.ToolState) Report {
	found := r.now.Load().tolerate(saved)
	// The change cannot fail.
	_ = r.change(func(c *contents) error {
		before := c.state()
		for _, id := range slices.Sorted(maps.Keys(found)) {
			c.recall(id, found[id])
		}
		c.generation = max(before.Generation, saved.Generation)
		if saved.Generation >= before.Generation && !alike(saved, c.state()) { // if it is older, change compares with before
			c.generation++
		}
		return nil
	})
	return r.now.Load().report()
}

// tolerate looks up the providers of the saved tools. Errors make a tool an orphan, and an unknown level is dropped.
func (c *contents) tolerate(saved protocol.ToolState) map[string]*binding {
	found := map[string]*binding{}
	for id, s := range saved.Tools {
		s.Manifest.ID = id
		b, err := c.settle(id, s)
		if err != nil {
			b.behind, b.Entry = nil, orphan(s.Manifest)
		}
		if !known(b.override) {
			b.override = ""
		}
		found[id] = b
	}
	return found
}

// recall applies one saved tool. A tool that conflicts with another one is left out.
func (c *contents) recall(id string, b *binding) {
	it, bound := c.bound(lookup{id: id})
	if !bound && b.behind != nil && c.adopt(&offer{b.Entry, b.behind}) == nil {
		it, bound = c.bound(lookup{id: id})
	}
	_, taken := c.bound(lookup{name: b.Manifest.Name})
	switch {
	case bound:
		it.member, it.override = b.member, b.override
		c.entries[id] = it
	case b.behind == nil && !taken && !c.hidden[b.Manifest.Name]:
		c.entries[id] = b.item
	}
}

// alike reports whether two states have the same tools.
func alike(a, b protocol.ToolState) bool {
	x, errX := json.Marshal(a.Tools)
	y, errY := json.Marshal(b.Tools)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// report lists the orphans.
func (c *contents) report() Report {
	report := Report{Generation: c.generation}
	for _, it := range c.sorted() {
		if it.orphan() {
			report.Orphaned = append(report.Orphaned, it.Manifest.ID)
		}
	}
	return report
}

// copy returns an independent registry with the same sources, tools, settings and hidden names. Its generation is at
// least 1.
func (r *Registry) copy() *Registry {
	c := r.now.Load().clone()
	c.generation = max(1, c.generation)
	fork := &Registry{}
	fork.now.Store(c)
	return fork
}

// only returns an independent registry with some of the sources and their tools. It hides the same names.
func (r *Registry) only(sources []string) *Registry {
	some := r.copy()
	c := some.now.Load()
	maps.DeleteFunc(c.sources, func(id string, _ *source) bool { return !slices.Contains(sources, id) })
	maps.DeleteFunc(c.entries, func(_ string, it item) bool { return !slices.Contains(sources, it.source) })
	return some
}
