package plugin

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// abandonedCalls tracks the plugin calls of one session that lashd stopped waiting for. Such a call still runs in its
// goroutine, so the state of its plugin is unknown: lashd never asks that plugin for its state again, and closes it
// only after its last abandoned call has returned. Safe for concurrent use.
type abandonedCalls struct {
	// any is set by the first add and never cleared. While it is false, readers skip the mutex.
	any atomic.Bool
	mu  sync.Mutex
	// out counts the calls that have not returned, by plugin. A plugin stays in the map at zero: once abandoned, its
	// state is never trusted again.
	out  map[string]int
	then map[string]func() // by plugin: run when its last call returns
}

// add records an abandoned call of a plugin. The function returned must block until the call has returned; add runs it
// in a goroutine of its own.
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

// back records that one call has returned. It returns the function to run now, which is nil while other calls are still
// out.
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

// has reports whether a call of the plugin was ever abandoned in this session.
func (a *abandonedCalls) has(plugin string) bool {
	if !a.any.Load() {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.out[plugin]
	return ok
}

// whenReturned defers f until the last abandoned call of the plugin returns, and reports true. If no call is out it
// reports false and never runs f: the caller runs it.
func (a *abandonedCalls) whenReturned(plugin string, f func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.out[plugin] == 0 {
		return false
	}
	a.then[plugin] = f
	return true
}

// Abandoned returns the ids of plugins with an abandoned call, sorted. Snapshots no longer include the state of these
// plugins. The owner of the session should close it and reopen it from its stored state.
func (r *roster) Abandoned() []string {
	if !r.abandoned.any.Load() {
		return nil
	}
	r.abandoned.mu.Lock()
	defer r.abandoned.mu.Unlock()
	return slices.Sorted(maps.Keys(r.abandoned.out))
}
