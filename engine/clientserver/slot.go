package clientserver

import (
	"maps"
	"slices"
	"sync/atomic"

	"lashd/engine/tool"
)

// Slot has the set of a session. The zero value has none. Any goroutine may read it. Replacing is for the session's actor.
type Slot struct{ current atomic.Pointer[Set] }

// Load returns the set; nil: none.
func (s *Slot) Load() *Set { return s.current.Load() }

// Replace puts g in place of the current set, which it disconnects. A nil g leaves none.
func (s *Slot) Replace(g *Set) { s.current.Swap(g).Disconnect() }

// Providers returns the servers of the set, sorted by name.
func (s *Slot) Providers() (all []tool.Provider) {
	g := s.Load()
	if g == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(g.servers)) {
		all = append(all, g.servers[name])
	}
	return all
}
