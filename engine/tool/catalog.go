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

// Catalog is the tools that may be called now, in order: by id, unless an Access has its own order. It does not change;
// contracts are asked for when something needs them.
type Catalog struct {
	all         *contents
	entries     []*Entry
	index       map[string]*Entry // by name
	only        map[string]bool   // the names that exist at all; nil: nothing says so
	fingerprint uint64
	forNow      bool                                    // it is not kept
	specs       atomic.Pointer[[]protocol.ToolManifest] // nil: not complete yet
}

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

// Catalog is the registry's members, as they are.
func (r *Registry) Catalog() *Catalog {
	all := r.now.Load()
	return newCatalog(all, all.members())
}

// members are the tools that can be called, in order of id.
func (c *contents) members() []*Entry {
	var entries []*Entry
	for _, it := range c.sorted() {
		if it.member && !it.orphan() {
			entries = append(entries, it.Entry)
		}
	}
	return entries
}

// Names are the names of the tools, in order.
func (c *Catalog) Names() []string {
	names := make([]string, len(c.entries))
	for i, e := range c.entries {
		names[i] = e.Manifest.Name
	}
	return names
}

// Fingerprint tells catalogs with other names, or another order of them, apart.
func (c *Catalog) Fingerprint() uint64 { return c.fingerprint }

// Manifests are what the model is told: name, description, schema and kind. Tools whose contract cannot be had are left
// out, until it can. The caller does not change them.
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
		specs = append(specs, protocol.ToolManifest{Name: m.Name, Description: m.Description, Input: t.Input, Kind: m.Kind})
	}
	return specs, complete
}

// Lookup finds a tool by name.
func (c *Catalog) Lookup(name string) (*Entry, bool) {
	e, ok := c.index[name]
	return e, ok
}

// Admit lets a call through if its tool is in the catalog, has a contract, and takes the arguments. The error is a
// CallError; the entry is nil only if there is no such tool.
func (c *Catalog) Admit(name string, args json.RawMessage) (*Entry, error) {
	e, err := c.Find(name)
	if err != nil {
		return nil, err
	}
	return e, e.Validate(args)
}

// Find is Lookup, with a CallError that knows of a name which is almost the same.
func (c *Catalog) Find(name string) (*Entry, error) {
	e, ok := c.index[name]
	if !ok {
		return nil, &CallError{CodeUnavailable, name, c.unknown(name)}
	}
	return e, nil
}

func (c *Catalog) unknown(name string) error {
	if near := c.Nearest(name); near != "" {
		return fmt.Errorf("%w; did you mean %q?", ErrUnknown, near)
	}
	return ErrUnknown
}

// Nearest is the tool whose name differs from name only in case and in what separates its words, or "".
func (c *Catalog) Nearest(name string) string {
	plain := letters(name)
	i := slices.IndexFunc(c.entries, func(e *Entry) bool { return letters(e.Manifest.Name) == plain })
	if i < 0 {
		return ""
	}
	return c.entries[i].Manifest.Name
}

func letters(name string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(strings.ToLower(name))
}
