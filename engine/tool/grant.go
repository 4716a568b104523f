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

// pluginsSource stands for the one plugin that has the tool. Grants from before each plugin was a source say so.
const pluginsSource = "plugins"

// ExecuteGranted makes a call that a grant allows. The registry stays as it is. What is hidden stays so: no grant allows
// it. The error is a CallError if the call was not made.
func (r *Registry) ExecuteGranted(ctx context.Context, g Grant, call Invocation) (Result, error) {
	m, c := split(Tool{Manifest: g.Manifest, Contract: g.Contract})
	p, err := r.now.Load().grantee(m, g.Source)
	if err != nil {
		return Result{}, &CallError{CodeUnavailable, m.Name, err}
	}
	e := &Entry{Manifest: m, from: p, contract: &contract{known: newTerms(m, c)}}
	if err := e.Validate(call.Args); err != nil {
		return Result{}, err
	}
	if call, err = e.prepare(ctx, call); err != nil {
		return Result{}, err
	}
	return p.provider.(Granter).ExecuteGranted(ctx, call, g.Binding)
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
