package tool

import (
	"cmp"
	"maps"
	"slices"

	"lashd/rpc/protocol"
)

// contents are a registry at one moment. Whoever has published them does not change them any more.
type contents struct {
	sources    map[string]*source
	entries    map[string]item // by tool id
	hidden     map[string]bool // names that never get in
	off        map[string]bool // names of tools that are no members when they come; does not change
	generation int64
	ranks      int // how many sources there have been
}

// item is what the session decided about a tool.
type item struct {
	*Entry
	source   string // id; empty: an orphan
	member   bool
	override protocol.ToolAvailability
}

func (it item) orphan() bool { return it.source == "" }

func (c *contents) clone() *contents {
	next := *c
	next.sources, next.entries, next.hidden = maps.Clone(c.sources), maps.Clone(c.entries), maps.Clone(c.hidden)
	return &next
}

// sorted are the items in order of id.
func (c *contents) sorted() []item {
	items := make([]item, 0, len(c.entries))
	for _, id := range slices.Sorted(maps.Keys(c.entries)) {
		items = append(items, c.entries[id])
	}
	return items
}

// ranked are the sources in order of arrival.
func (c *contents) ranked() []*source {
	return slices.SortedFunc(maps.Values(c.sources), func(a, b *source) int { return cmp.Compare(a.rank, b.rank) })
}

// bound finds a tool that something provides.
func (c *contents) bound(l lookup) (item, bool) {
	if l.id != "" {
		it, ok := c.entries[l.id]
		return it, ok && !it.orphan()
	}
	for _, it := range c.entries {
		if !it.orphan() && it.Manifest.Name == l.name {
			return it, true
		}
	}
	return item{}, false
}

// put registers what a source offers. A known tool keeps its settings; an orphan that only has its name is another tool,
// which is gone for good.
func (c *contents) put(s *source, offers map[string]*Entry) {
	names := map[string]bool{}
	for id, e := range offers {
		name := e.Manifest.Name
		if c.hidden[name] {
			continue
		}
		names[name] = true
		known, ok := c.entries[id]
		c.entries[id] = item{Entry: e, source: s.id, member: !ok && (s.overlay || !c.off[name]) || ok && known.member, override: known.override}
	}
	maps.DeleteFunc(c.entries, func(_ string, it item) bool { return it.orphan() && names[it.Manifest.Name] })
}

// upsert registers a source or what it has become, or nothing at all. Tools that it offers no more become orphans.
func (c *contents) upsert(s *source) error {
	if s.overlay {
		c.evict(s)
	} else if err := c.conflict(s); err != nil {
		return err
	}
	if old := c.sources[s.id]; old != nil {
		s.rank = old.rank
	} else {
		c.ranks++
		s.rank = c.ranks
	}
	c.sources[s.id] = s
	for id, it := range c.entries {
		if it.source == s.id && s.offers[id] == nil {
			it.Entry, it.source = orphan(it.Manifest), ""
			c.entries[id] = it
		}
	}
	c.put(s, s.offers)
	return nil
}

// conflict is the first tool of a source whose id or name another source has.
func (c *contents) conflict(s *source) error {
	taken := c.names(s.id)
	for _, id := range slices.Sorted(maps.Keys(s.offers)) {
		name := s.offers[id].Manifest.Name
		other, nameTaken := taken[name]
		switch it := c.entries[id]; {
		case c.hidden[name]:
		case it.source != "" && it.source != s.id:
			return &ConflictError{"id", id, s.id, it.source}
		case nameTaken:
			return &ConflictError{"name", name, s.id, other}
		}
	}
	return nil
}

// names says which source has which name, but for one source.
func (c *contents) names(but string) map[string]string {
	taken := make(map[string]string, len(c.entries))
	for _, it := range c.entries {
		if !it.orphan() && it.source != but {
			taken[it.Manifest.Name] = it.source
		}
	}
	return taken
}

// evict makes room for an overlay: whatever has an id or a name of its tools goes.
func (c *contents) evict(s *source) {
	ids, names := map[string]bool{}, map[string]bool{}
	for id, e := range s.offers {
		if name := e.Manifest.Name; !c.hidden[name] {
			ids[id], names[name] = true, true
		}
	}
	maps.DeleteFunc(c.entries, func(id string, it item) bool {
		return it.source != s.id && (ids[id] || names[it.Manifest.Name])
	})
}
