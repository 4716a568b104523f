package tool

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"lashd/rpc/protocol"
)

// Report is what came of a state that was restored.
type Report struct {
	Generation int64
	Orphaned   []string // ids of tools that nothing provides, sorted
}

// Restore takes over the settings of a saved state, whatever became of its sources since: a tool that nothing provides is
// an orphan, and a tool that the state does not know is a member. The generation is the newer of both, and grows once if
// the tools are not what they were at that generation. Nobody else may use the registry yet.
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

// tolerate finds what is behind the tools of a state, without complaints.
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

// recall takes over one saved tool. One that conflicts with another is left out: it would be an orphan without a name.
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

func alike(a, b protocol.ToolState) bool {
	x, errX := json.Marshal(a.Tools)
	y, errY := json.Marshal(b.Tools)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func (c *contents) report() Report {
	report := Report{Generation: c.generation}
	for _, it := range c.sorted() {
		if it.orphan() {
			report.Orphaned = append(report.Orphaned, it.Manifest.ID)
		}
	}
	return report
}

// copy is an independent registry with the same sources and tools, and what was decided of them. It hides what this one hides.
func (r *Registry) copy() *Registry {
	c := r.now.Load().clone()
	c.generation = max(1, c.generation)
	fork := &Registry{}
	fork.now.Store(c)
	return fork
}

// only is a registry of some of the sources, with their tools as they are in this one. It hides what this one hides.
func (r *Registry) only(sources []string) *Registry {
	some := r.copy()
	c := some.now.Load()
	maps.DeleteFunc(c.sources, func(id string, _ *source) bool { return !slices.Contains(sources, id) })
	maps.DeleteFunc(c.entries, func(_ string, it item) bool { return !slices.Contains(sources, it.source) })
	return some
}
