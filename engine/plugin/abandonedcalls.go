package plugin

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// abandonedCalls are the calls of a session's plugins that were left alone. Nobody knows what a plugin with such a call did to its state,
// or still does: it is not asked for that any more, and it is closed when the last of them has returned.
type abandonedCalls struct {
	any  atomic.Bool
	mu   sync.Mutex
	out  map[string]int    // calls that have not returned, by plugin; one that has none any more stays
	then map[string]func() // what waits for the last of them
}

// add notes a call that was left alone; returned waits for it.
func (a *abandonedCalls) add(plugin string, returned func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.out == nil {
		a.out, a.then = map[string]int{}, map[string]func(){}
	}
	a.out[plugin]++
	a.any.Store(true)
	go func() {
		returned()
		if then := a.back(plugin); then != nil {
			then()
		}
	}()
}

func (a *abandonedCalls) back(plugin string) (then func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.out[plugin]--
	if a.out[plugin] > 0 {
		return nil
	}
	then = a.then[plugin]
	delete(a.then, plugin)
	return then
}

// has tells whether a call of a plugin was left alone.
func (a *abandonedCalls) has(plugin string) bool {
	if !a.any.Load() {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.out[plugin]
	return ok
}

// whenReturned puts something off until a plugin has no call out, unless it has none now.
func (a *abandonedCalls) whenReturned(plugin string, f func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.out[plugin] == 0 {
		return false
	}
	a.then[plugin] = f
	return true
}

// Left are the plugins of which a call was left alone, by id. They are not asked for their state any more: whoever has the
// session closes it and opens it anew, with what is stored.
func (r *roster) Left() []string {
	if !r.abandoned.any.Load() {
		return nil
	}
	r.abandoned.mu.Lock()
	defer r.abandoned.mu.Unlock()
	return slices.Sorted(maps.Keys(r.abandoned.out))
}
