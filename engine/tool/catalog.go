package tool

import (
	"encoding/json"
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// Catalog is the tools that a model may call now. It is immutable.
type Catalog struct {
	records   []protocol.ToolRecord // all, in order of name
	manifests []protocol.ToolManifest
	entries   map[string]*Entry
}

// Entry is a tool in a catalog, ready to be called.
type Entry struct {
	Tool     Tool
	Source   string
	Provider Provider
	schema   *schema
	revision protocol.Digest
}

// Catalog is what the registry's state comes to. It is made once for each state.
func (r *Registry) Catalog() *Catalog {
	if r.catalog == nil {
		r.catalog = r.newCatalog()
	}
	return r.catalog
}

func (r *Registry) newCatalog() *Catalog {
	c := &Catalog{
		records: make([]protocol.ToolRecord, 0, len(r.state.Tools)),
		entries: make(map[string]*Entry, len(r.state.Tools)),
	}
	for _, s := range r.state.Tools {
		e, live := r.live[s.Name]
		if !live {
			c.records = append(c.records, protocol.ToolRecord{
				ToolManifest: protocol.ToolManifest{Name: s.Name}, Source: s.Source, Orphan: true,
			})
			continue
		}
		c.records = append(c.records, e.record(s))
		if s.Member {
			c.manifests = append(c.manifests, e.Tool.Manifest)
			c.entries[s.Name] = e
		}
	}
	return c
}

func (e *Entry) record(s protocol.ToolStateSetting) protocol.ToolRecord {
	m := e.Tool.Manifest
	return protocol.ToolRecord{
		ToolManifest: m, Contract: e.Tool.Contract, Source: e.Source, Revision: e.revision,
		// Four bytes a token is the usual estimate for English and JSON.
		Tokens: (len(m.Name) + len(m.Description) + len(m.Input)) / 4, Member: s.Member, Document: s.Member,
	}
}

func revision(t Tool) protocol.Digest {
	text, err := json.Marshal(t)
	if err != nil { // the input is no JSON: every call will fail, and the revision still says which input it was
		text = t.Manifest.Input
	}
	return protocol.DigestOf(text)
}

// Manifests are the members' manifests in order of name. The caller does not change them.
func (c *Catalog) Manifests() []protocol.ToolManifest { return slices.Clip(c.manifests) }

// Records are all tools, members or not, in order of name.
func (c *Catalog) Records() []protocol.ToolRecord { return slices.Clip(c.records) }

// Lookup finds a member.
func (c *Catalog) Lookup(name string) (*Entry, bool) {
	e, ok := c.entries[name]
	return e, ok
}

// Nearest is the member whose name differs from name only in case and in what separates its words, or "".
func (c *Catalog) Nearest(name string) string {
	plain := letters(name)
	i := slices.IndexFunc(c.manifests, func(m protocol.ToolManifest) bool { return letters(m.Name) == plain })
	if i < 0 {
		return ""
	}
	return c.manifests[i].Name
}

func letters(name string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(strings.ToLower(name))
}
