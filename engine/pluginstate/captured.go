package pluginstate

import (
	"fmt"

	"lashd/engine/plugin"
	"lashd/persistence"
)

// Captured is the state of plugins and of the code executor as of one moment, ready to be stored
// with a commit. A nil Captured means that the stored state is current.
type Captured struct {
	State     *State                  // nil: unchanged since it was stored
	Execution *plugin.Execution       // nil: unchanged, or there is no executor
	changed   []persistence.Component // the rows of State that changed
}

// Capture returns the state of a snapshot of the plugins. State that is stored for plugins that are not open now is
// kept. It fails if more changed than one commit can store. stored may be nil.
func Capture(snap plugin.Snapshot, stored *State) (*Captured, error) {
	next, bulk := freeze(snap)
	k := &Captured{State: next}
	if stored != nil {
		for id, entry := range stored.Entries {
			if _, ok := next.Entries[id]; !ok {
				next.Entries[id] = entry
			}
		}
	}
	if stored != nil || len(next.Entries) > 0 {
		k.changed = changes(stored, next, bulk)
	}
	size := 0
	for _, c := range k.changed {
		size += len(c.Body)
	}
	if size > maxChange {
		return k, fmt.Errorf("%d bytes of plugin state changed, at most %d can be stored at once", size, maxChange)
	}
	return k, nil
}

// With returns k with the state of the code executor; k may be nil. If more changed than one commit can store, it fails
// and returns k as it was.
func (k *Captured) With(x *plugin.Execution) (*Captured, error) {
	size := 0
	for _, body := range x.Changed {
		size += len(body)
	}
	if size > maxChange {
		return k, fmt.Errorf("%d bytes of globals changed, at most %d can be stored at once", size, maxChange)
	}
	if k == nil {
		k = &Captured{}
	}
	k.Execution = x
	return k, nil
}

// Components returns the components that changed.
func (k *Captured) Components() []persistence.Component {
	if k.Execution == nil {
		return k.changed
	}
	return append(k.changed, globalChanges(k.Execution.ExecutionChange)...)
}
