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
}

// Catalog is what the registry's state comes to.
func (r *Registry) Catalog() *Catalog {
	live := r.live()
	c := &Catalog{entries: map[string]*Entry{}}
	for _, s := range r.state.Tools {
		f, ok := live[s.Name]
		c.records = append(c.records, record(s, f.tool))
		if !ok || !s.Member {
			continue
		}
		c.manifests = append(c.manifests, f.tool.Manifest)
		c.entries[s.Name] = &Entry{Tool: f.tool, Source: f.source, Provider: f.provider, schema: newSchema(f.tool.Manifest.Input)}
	}
	return c
}

func record(s protocol.ToolStateSetting, t Tool) protocol.ToolRecord {
	r := protocol.ToolRecord{
		ToolManifest: t.Manifest, Contract: t.Contract, Source: s.Source, Member: s.Member && !s.Orphan, Orphan: s.Orphan,
	}
	r.Name = s.Name
	text, _ := json.Marshal(t) // plain data: cannot fail
	r.Revision = protocol.DigestOf(text)
	// Four bytes a token is the usual estimate for English and JSON.
	r.Tokens = (len(t.Manifest.Name) + len(t.Manifest.Description) + len(t.Manifest.Input)) / 4
	r.Document = r.Member
	return r
}

// Manifests are the members' manifests in order of name. The caller does not change them.
func (c *Catalog) Manifests() []protocol.ToolManifest { return c.manifests }

// Records are all tools, members or not, in order of name.
func (c *Catalog) Records() []protocol.ToolRecord { return c.records }

// Lookup finds a member.
func (c *Catalog) Lookup(name string) (*Entry, bool) {
	e, ok := c.entries[name]
	return e, ok
}

// Nearest is the member whose name is most like name, or "".
func (c *Catalog) Nearest(name string) string {
	i := slices.IndexFunc(c.manifests, func(m protocol.ToolManifest) bool { return strings.EqualFold(m.Name, name) })
	if i < 0 {
		return ""
	}
	return c.manifests[i].Name
}
