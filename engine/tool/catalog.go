package tool

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync/atomic"

	"lashd/rpc/protocol"
)

// Catalog is the immutable list of tools that can be called at one moment. It is ordered by tool id, unless an Access
// sets an order. Contracts of lazy providers are fetched when first needed. Safe for concurrent use.
type Catalog struct {
	all         *contents // the registry that the catalog was made from
	entries     []*Entry
	index       map[string]*Entry // by name
	only        map[string]bool   // names that an Access allows; nil: no such limit
	fingerprint uint64
	forNow      bool // a contributor returned ErrForNow: do not cache
	// specs caches Manifests; nil: not complete yet, because a contract is missing.
	specs atomic.Pointer[[]protocol.ToolManifest]
	// cellSpecs caches CellManifests in the same way.
	cellSpecs atomic.Pointer[[]protocol.ToolManifest]
}

// newCatalog returns a catalog of the entries in their order. all is what grants and records look at.
func newCatalog(all *contents, entries []*Entry) *Catalog {
	c := &Catalog{all: all, entries: entries, index: make(map[string]*Entry, len(entries))}
	h, size := fnv.New64a(), make([]byte, 8)
	for _, e := range entries {
		c.index[e.Manifest.Name] = e
		h.Write(append(binary.LittleEndian.AppendUint64(size[:0], uint64(len(e.Manifest.Name))), e.Manifest.Name...))
	}
	c.fingerprint = h.Sum64()
	return c
}

// Catalog returns a catalog of all members of the registry, without rules.
func (r *Registry) Catalog() *Catalog {
	all := r.now.Load()
	return newCatalog(all, all.members())
}

// members returns the tools that can be called, ordered by id.
func (c *contents) members() []*Entry {
	var entries []*Entry
	for _, it := range c.sorted() {
		if it.member && !it.orphan() {
			entries = append(entries, it.Entry)
		}
	}
	return entries
}

// Names returns the names of the tools, in order.
func (c *Catalog) Names() []string {
	names := make([]string, len(c.entries))
	for i, e := range c.entries {
		names[i] = e.Manifest.Name
	}
	return names
}

// Fingerprint identifies the names and their order. Catalogs with the same names in the same order have the same
// fingerprint.
func (c *Catalog) Fingerprint() uint64 { return c.fingerprint }

// Manifests returns what the model sees of the tools: name, description, schema and kind. A tool whose contract cannot
// be fetched is left out until it can. The slice is shared and must not be modified.
func (c *Catalog) Manifests() []protocol.ToolManifest {
	if known := c.specs.Load(); known != nil {
		return slices.Clip(*known)
	}
	specs, complete := c.describe()
	if complete {
		c.specs.Store(&specs)
	}
	return slices.Clip(specs)
}

// CellManifests returns the tools of Manifests that code cells may call. While all contracts are known, it returns the same slice each
// time, so that callers can tell from its identity that nothing has changed.
func (c *Catalog) CellManifests() []protocol.ToolManifest {
	if known := c.cellSpecs.Load(); known != nil {
		return *known
	}
	all := c.Manifests()
	complete := c.specs.Load()
	if complete != nil {
		all = *complete
	}
	direct := func(m protocol.ToolManifest) bool {
		return c.index[m.Name].Manifest.Activation == protocol.ActivateDirect
	}
	specs := slices.Clip(slices.DeleteFunc(slices.Clone(all), direct))
	if complete != nil && !c.cellSpecs.CompareAndSwap(nil, &specs) {
		return *c.cellSpecs.Load()
	}
	return specs
}

// describe builds the manifests. It is incomplete if a contract could not be fetched.
func (c *Catalog) describe() (specs []protocol.ToolManifest, complete bool) {
	specs, complete = make([]protocol.ToolManifest, 0, len(c.entries)), true
	for _, e := range c.entries {
		if e.Manifest.Activation == protocol.ActivateInternal {
			continue
		}
		t, err := e.terms()
		if err != nil {
			complete = false
			continue
		}
		m := e.Manifest
		specs = append(specs, protocol.ToolManifest{Name: m.Name, Title: m.Title, Description: m.Description, Input: t.Input, Kind: m.Kind})
	}
	return specs, complete
}

// Lookup returns the tool with this name.
func (c *Catalog) Lookup(name string) (*Entry, bool) {
	e, ok := c.index[name]
	return e, ok
}

// Admit checks a call: the tool must be in the catalog, its contract available, and the arguments valid. Every error is
// a CallError. The entry is nil only if the tool is unknown.
func (c *Catalog) Admit(name string, args json.RawMessage) (*Entry, error) {
	e, err := c.Find(name)
	if err != nil {
		return nil, err
	}
	return e, e.Validate(args)
}

// Find is Lookup with a CallError, which suggests a similar name if there is one.
func (c *Catalog) Find(name string) (*Entry, error) {
	e, ok := c.index[name]
	if !ok {
		return nil, &CallError{CodeUnavailable, name, c.unknown(name)}
	}
	return e, nil
}

// unknown returns ErrUnknown, with the nearest name if there is one.
func (c *Catalog) unknown(name string) error {
	if near := c.Nearest(name); near != "" {
		return fmt.Errorf("%w; did you mean %q?", ErrUnknown, near)
	}
	return ErrUnknown
}

// Nearest returns the tool whose name differs only in case or in the separators between words, or "".
func (c *Catalog) Nearest(name string) string {
	plain := letters(name)
	i := slices.IndexFunc(c.entries, func(e *Entry) bool { return letters(e.Manifest.Name) == plain })
	if i < 0 {
		return ""
	}
	return c.entries[i].Manifest.Name
}

// letters returns a name in lower case without separators.
func letters(name string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(strings.ToLower(name))
}
