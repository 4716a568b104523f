package tool

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"lashd/rpc/protocol"
)

// Registry holds the tools of one session: their sources, and the session's settings for each. Tools are identified by
// id; among tools that a source provides, names are unique too.
//
// Every change is atomic and increases the generation by one if it changes anything. Readers use an immutable snapshot
// and never block. A Registry is safe for concurrent use, and holds no lock while it calls a provider.
type Registry struct {
	mu      sync.Mutex // serializes changes
	now     atomic.Pointer[contents]
	refused error // why NewRegistry left out sources
}

// NewRegistry returns a registry of the sources with the saved settings applied. All tools start as members, except
// those whose names are in off; that also applies to tools that are registered later. A source that conflicts with an
// earlier one is left out, see Refused.
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

// listAll merges the providers of each source id and asks them for their tools. Sources that fail are left out and
// joined into the error.
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

// Refused returns why NewRegistry left out sources; nil if it left out none.
func (r *Registry) Refused() error { return r.refused }

// Generation returns the number of the latest change.
func (r *Registry) Generation() int64 { return r.now.Load().generation }

// change applies f to a copy of the contents and publishes it, or discards it if f fails. It increases the generation
// if the tools differ, unless f has changed the generation itself.
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

// Upsert registers a source, or replaces the providers of a registered one. Tools that it no longer has become orphans.
// If another source has one of its ids or names, Upsert returns a ConflictError and changes nothing.
func (r *Registry) Upsert(id string, providers ...Provider) error {
	return r.upsert(r.now.Load().sources[id], id, false, sourcesOf(id, providers))
}

// sourcesOf returns the providers as sources with one id.
func sourcesOf(id string, providers []Provider) []Source {
	sources := make([]Source, len(providers))
	for i, p := range providers {
		sources[i] = Source{ID: id, Provider: p}
	}
	return sources
}

// upsert registers a source. Entries that equal those of the old version are reused.
func (r *Registry) upsert(old *source, id string, overlay bool, providers []Source) error {
	s, err := list(source{id: id, overlay: overlay, parts: parts(old, providers)}, old.known())
	if err != nil {
		return err
	}
	return r.change(func(c *contents) error { return c.upsert(s) })
}

// known returns the offers of a source; s may be nil.
func (s *source) known() map[string]*Entry {
	if s == nil {
		return nil
	}
	return s.offers
}

// Refresh asks every source for its tools again. A source that fails keeps its old tools, and its error is part of the
// result.
func (r *Registry) Refresh() error {
	var errs []error
	for _, old := range r.now.Load().ranked() {
		errs = append(errs, r.refresh(old))
	}
	return errors.Join(errs...)
}

// refresh asks one source for its tools again.
func (r *Registry) refresh(old *source) error {
	s, err := list(source{id: old.id, overlay: old.overlay, parts: old.parts}, old.offers)
	if err != nil {
		return fmt.Errorf("refresh %s: %w", old.id, err)
	}
	return r.change(func(c *contents) error {
		if c.sources[old.id] != old { // replaced by a newer version during the request
			return nil
		}
		return c.upsert(s)
	})
}

// Stuck reports whether an abandoned request to a provider has not returned. lashd sends no further requests to that
// provider until it returns.
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

// Checkpoint is a state that a registry can be rolled back to.
type Checkpoint struct{ then *contents }

// Checkpoint returns the current state.
func (r *Registry) Checkpoint() Checkpoint { return Checkpoint{r.now.Load()} }

// Rollback restores the state of a checkpoint, for example after a commit failed. It discards every change since.
func (r *Registry) Rollback(c Checkpoint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.Store(c.then)
}
