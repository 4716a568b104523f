package tool

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"lashd/rpc/protocol"
)

// Registry is the tools of one session: where they come from, and what the session decided about each. A tool is known by
// its id; among tools that something provides, names are unique, too. A change happens whole or not at all, and each one
// makes the generation grow by one. A Registry is safe for concurrent use, and holds no lock while it asks a provider.
type Registry struct {
	mu      sync.Mutex // held by whoever changes the contents
	now     atomic.Pointer[contents]
	refused error
}

// NewRegistry is the tools of sources with every tool a member, but for the names in off, then with what was saved. Tools of
// these names, whenever they come, are no members unless the saved state or a later change says so. A source that conflicts
// with one before it is left out: see Refused.
func NewRegistry(off map[string]bool, sources []Source, saved protocol.ToolState) *Registry {
	r := &Registry{}
	r.now.Store(&contents{sources: map[string]*source{}, entries: map[string]item{}, hidden: map[string]bool{}, off: off})
	listed, err := listAll(sources)
	errs := []error{err}
	// The change cannot fail.
	_ = r.change(func(c *contents) error {
		for _, s := range listed {
			errs = append(errs, c.upsert(s))
		}
		return nil
	})
	r.refused = errors.Join(errs...)
	if len(saved.Tools) > 0 || saved.Generation > 0 {
		r.Restore(saved)
	}
	return r
}

// listAll makes one source of all providers of an id.
func listAll(sources []Source) (listed []*source, err error) {
	var order []string
	byID := map[string][]Source{}
	for _, s := range sources {
		if byID[s.ID] == nil {
			order = append(order, s.ID)
		}
		byID[s.ID] = append(byID[s.ID], s)
	}
	for _, id := range order {
		s, listErr := list(source{id: id, parts: parts(nil, byID[id])}, nil)
		if err = errors.Join(err, listErr); listErr == nil {
			listed = append(listed, s)
		}
	}
	return listed, err
}

// Refused tells which sources NewRegistry has left out, and why.
func (r *Registry) Refused() error { return r.refused }

// Generation is the number of the newest change.
func (r *Registry) Generation() int64 { return r.now.Load().generation }

// change makes a change, or none if there is an error. The generation grows if something is different then, unless the
// change has set it.
func (r *Registry) change(f func(*contents) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now.Load()
	next := now.clone()
	if err := f(next); err != nil {
		return err
	}
	if next.generation == now.generation && !maps.Equal(next.entries, now.entries) {
		next.generation++
	}
	r.now.Store(next)
	return nil
}

// Upsert registers a source, or replaces the providers of one that is there. Tools that it has no more become orphans. An
// id or a name that another source has is a ConflictError, and nothing changes.
func (r *Registry) Upsert(id string, providers ...Provider) error {
	return r.upsert(r.now.Load().sources[id], id, false, sourcesOf(id, providers))
}

func sourcesOf(id string, providers []Provider) []Source {
	sources := make([]Source, len(providers))
	for i, p := range providers {
		sources[i] = Source{ID: id, Provider: p}
	}
	return sources
}

// upsert registers a source; what it has in common with an old one stays the same.
func (r *Registry) upsert(old *source, id string, overlay bool, providers []Source) error {
	s, err := list(source{id: id, overlay: overlay, parts: parts(old, providers)}, old.known())
	if err != nil {
		return err
	}
	return r.change(func(c *contents) error { return c.upsert(s) })
}

// known are the offers of a source, if there is one.
func (s *source) known() map[string]*Entry {
	if s == nil {
		return nil
	}
	return s.offers
}

// Refresh asks every source again what it offers. A source that fails stays as it was.
func (r *Registry) Refresh() error {
	var errs []error
	for _, old := range r.now.Load().ranked() {
		errs = append(errs, r.refresh(old))
	}
	return errors.Join(errs...)
}

func (r *Registry) refresh(old *source) error {
	s, err := list(source{id: old.id, overlay: old.overlay, parts: old.parts}, old.offers)
	if err != nil {
		return fmt.Errorf("refresh %s: %w", old.id, err)
	}
	return r.change(func(c *contents) error {
		if c.sources[old.id] != old { // it was replaced meanwhile, by something newer
			return nil
		}
		return c.upsert(s)
	})
}

// Stuck tells whether a provider has not returned that was asked what it offers: until it does, it is asked nothing more.
func (r *Registry) Stuck() bool {
	for _, s := range r.now.Load().sources {
		for _, p := range s.parts {
			if p.out.Load() > 0 {
				return true
			}
		}
	}
	return false
}

// Checkpoint is what a registry can be taken back to.
type Checkpoint struct{ then *contents }

// Checkpoint remembers the registry as it is.
func (r *Registry) Checkpoint() Checkpoint { return Checkpoint{r.now.Load()} }

// Rollback takes back everything since a checkpoint, such as for a commit that failed.
func (r *Registry) Rollback(c Checkpoint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.Store(c.then)
}
