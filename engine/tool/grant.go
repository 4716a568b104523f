package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"lashd/rpc/protocol"
)

// Grant allows one call of a tool that need not be in the catalog, nor in the registry.
type Grant struct {
	Manifest protocol.ToolManifest
	Contract protocol.ToolContract
	Source   string          // id of the source that is to run the call
	Binding  json.RawMessage // what the source needs to know; its own business
}

// grantedCall is a grant that an entry was made of.
type grantedCall struct{ binding json.RawMessage }

// pluginsSource stands for the one plugin that has the tool. Grants from before each plugin was a source say so.
const pluginsSource = "plugins"

// Granted is the tool of a grant, to be called as any of the catalog. The catalog and its registry stay as they are. What the
// session may not use no grant allows: what is hidden, and, where only certain tools exist, all others. The error is a CallError.
func (c *Catalog) Granted(g Grant) (*Entry, error) {
	if c.only != nil && !c.only[g.Manifest.Name] {
		return nil, &CallError{CodeUnavailable, g.Manifest.Name, ErrHidden}
	}
	return c.all.granted(g)
}

func (c *contents) granted(g Grant) (*Entry, error) {
	m, terms := split(Tool{Manifest: g.Manifest, Contract: g.Contract})
	p, err := c.grantee(m, g.Source)
	if err != nil {
		return nil, &CallError{CodeUnavailable, m.Name, err}
	}
	return &Entry{Manifest: m, from: p, contract: &contract{known: newTerms(m, terms)}, granted: &grantedCall{g.Binding}}, nil
}

// run has the provider make a call that is prepared.
func (e *Entry) run(ctx context.Context, call Invocation) (Result, error) {
	if e.granted != nil {
		return e.from.provider.(Granter).ExecuteGranted(ctx, call, e.granted.binding)
	}
	return e.from.provider.Execute(ctx, call)
}

// grantee is who runs a granted call.
func (c *contents) grantee(m protocol.ToolManifest, id string) (*part, error) {
	if c.hidden[m.Name] {
		return nil, ErrHidden
	}
	s := c.sources[id]
	if s == nil && id == pluginsSource {
		s = c.only(m.ID)
	}
	if s == nil {
		return nil, fmt.Errorf("%q: %w", id, ErrNoSource)
	}
	return s.granter(m.ID)
}

// only is the one plugin that offers a tool; nil if it is none, or one of several.
func (c *contents) only(id string) *source {
	var found *source
	for _, s := range c.sources {
		if s.overlay || s.offers[id] == nil {
			continue
		}
		if found != nil {
			return nil
		}
		found = s
	}
	return found
}

// granter is the provider of a source that has the tool and takes grants, or else the only one that takes them.
func (s *source) granter(id string) (*part, error) {
	takes := func(p *part) bool { _, ok := p.provider.(Granter); return ok }
	if e := s.offers[id]; e != nil && takes(e.from) {
		return e.from, nil
	}
	all := slices.DeleteFunc(slices.Clone(s.parts), func(p *part) bool { return !takes(p) })
	if len(all) != 1 {
		return nil, fmt.Errorf("%q: %w", s.id, ErrNoGrant)
	}
	return all[0], nil
}
