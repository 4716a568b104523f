package tool

import (
	"cmp"
	"maps"
	"slices"

	"lashd/rpc/protocol"
)

// contents is the state of a registry at one moment. It is copied for each change and immutable once published, so
// readers need no lock. The maps are copied; sources and entries are shared between versions, because they are
// immutable themselves.
type contents struct {
	sources    map[string]*source
	entries    map[string]item // by tool id
	hidden     map[string]bool // names that are never registered
	off        map[string]bool // names of tools that are not members when first registered; never changes
	generation int64
	ranks      int // number of sources ever registered, for source.rank
}

// item is a tool with the session's settings for it.
type item struct {
	*Entry
	source   string // id; empty: no source provides it
	member   bool
	override protocol.ToolAvailability // level set with SetAvailability; empty: membership decides
}

// orphan reports whether no source provides the tool any more. Its settings are kept in case the source comes back.
func (it item) orphan() bool { return it.source == "" }

// clone returns a copy that can be changed without affecting c.
func (c *contents) clone() *contents {
	next := *c
	next.sources, next.entries, next.hidden = maps.Clone(c.sources), maps.Clone(c.entries), maps.Clone(c.hidden)
	return &next
}

// sorted returns the items ordered by id.
func (c *contents) sorted() []item {
	items := make([]item, 0, len(c.entries))
	for _, id := range slices.Sorted(maps.Keys(c.entries)) {
		items = append(items, c.entries[id])
	}
	return items
}

// ranked returns the sources in the order in which they were registered.
func (c *contents) ranked() []*source {
	return slices.SortedFunc(maps.Values(c.sources), func(a, b *source) int { return cmp.Compare(a.rank, b.rank) })
}

// bound returns a tool that a source provides.
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

// put registers the offers of a source. A known tool keeps its settings. An orphan that shares only the name with an
// offer is a different tool and is removed.
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

// upsert registers a source or its new version, or changes nothing on an error. Tools that it no longer offers become
// orphans.
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

// conflict returns a ConflictError for the first tool whose id or name another source has.
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

// names maps each registered name to its source, except for the source but.
func (c *contents) names(but string) map[string]string {
	taken := make(map[string]string, len(c.entries))
	for _, it := range c.entries {
		if !it.orphan() && it.source != but {
			taken[it.Manifest.Name] = it.source
		}
	}
	return taken
}

// evict removes the tools that have an id or a name of the overlay s.
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
