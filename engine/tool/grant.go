package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"lashd/rpc/protocol"
)

// Grant allows one call of a tool that need not be in the catalog or in the registry. A tool that makes calls passes it
// in a Request.
type Grant struct {
	Manifest protocol.ToolManifest
	Contract protocol.ToolContract
	Source   string          // id of the source that runs the call; empty: that of the tool that makes the call
	Binding  json.RawMessage // opaque data for the source
}

// Of returns the request of a grant with what the tool that makes the call determines: its source, unless the grant names one. maker may be
// nil.
func (r Request) Of(maker *Entry) Request {
	grant := *r.Grant
	if grant.Source == "" && maker != nil {
		grant.Source = maker.Source()
	}
	return Request{Name: grant.Manifest.Name, Args: r.Args, Grant: &grant}
}

// grantedCall marks an entry that comes from a grant.
type grantedCall struct{ binding json.RawMessage }

// pluginsSource is the source id in grants that were stored before each plugin was its own source. It stands for the
// one plugin that has the tool.
const pluginsSource = "plugins"

// Granted returns an entry for the tool of a grant, without changing the catalog or its registry. A grant cannot exceed
// the session's Access: a hidden tool, or one that an Access with explicit tools does not list, is refused. The error
// is a CallError.
func (c *Catalog) Granted(g Grant) (*Entry, error) {
	if c.only != nil && !c.only[g.Manifest.Name] {
		return nil, &CallError{CodeUnavailable, g.Manifest.Name, ErrHidden}
	}
	return c.all.granted(g)
}

// granted builds the entry of a grant.
func (c *contents) granted(g Grant) (*Entry, error) {
	m, terms := split(Tool{Manifest: g.Manifest, Contract: g.Contract})
	p, err := c.grantee(m, g.Source)
	if err != nil {
		return nil, &CallError{CodeUnavailable, m.Name, err}
	}
	return &Entry{Manifest: m, from: p, contract: &contract{known: newTerms(m, terms)}, granted: &grantedCall{g.Binding}}, nil
}

// run makes the provider run a prepared call.
func (e *Entry) run(ctx context.Context, call Invocation) (Result, error) {
	if e.granted != nil {
		return e.from.provider.(Granter).ExecuteGranted(ctx, call, e.granted.binding)
	}
	return e.from.provider.Execute(ctx, call)
}

// grantee returns the provider that runs a granted call.
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

// only returns the one plugin that offers a tool; nil if there is none or more than one.
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

// granter returns the provider of the source that has the tool and accepts grants. Otherwise it returns the only
// provider that accepts grants, if there is exactly one.
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
