// Package pluginstate converts the state of a session's plugins to the components that the store keeps of a session, and
// back. The engine calls it from any goroutine; it calls no plugin.
package pluginstate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"lashd/engine/plugin"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Component is the component that stores plugin state. Large artifacts are components of their own, named
// after their digests, so that unchanged ones are not written again.
const Component = "plugins"

const (
	smallArtifact = 4 << 10 // bytes; artifacts up to this size are stored inside the component
	maxChange     = 4 << 20 // bytes that one capture may write: they share the size limit of a turn's commit
)

// State is the stored state of a session's plugins. It is immutable, so it may be read on any goroutine;
// each capture creates a new one.
type State struct {
	Fingerprint uint64           `json:"fingerprint,string"` // of the plugins when captured; equal: nothing to capture
	Entries     map[string]Entry `json:"entries"`
}

// Entry is the stored state of one plugin. Artifacts above smallArtifact have a digest and size but no data.
type Entry struct {
	Meta      plugin.Meta               `json:"meta"`
	Artifacts []protocol.PluginArtifact `json:"artifacts,omitempty"`
}

// freeze converts a snapshot to its stored form. It also returns the data of the large artifacts by digest, which
// are stored as components of their own.
func freeze(snap plugin.Snapshot) (*State, map[protocol.Digest][]byte) {
	state := &State{Fingerprint: snap.Fingerprint, Entries: map[string]Entry{}}
	bulk := map[protocol.Digest][]byte{}
	for id, entry := range snap.Entries {
		e := Entry{Meta: entry.Meta}
		for _, a := range entry.Artifacts {
			part := protocol.PluginArtifact{Name: a.Name, Digest: protocol.DigestOf(a.Data), Size: int64(len(a.Data))}
			if len(a.Data) <= smallArtifact {
				part.Data = a.Data
			} else {
				bulk[part.Digest] = a.Data
			}
			e.Artifacts = append(e.Artifacts, part)
		}
		state.Entries[id] = e
	}
	return state, bulk
}

// bulk returns the digests of the large artifacts. s may be nil.
func (s *State) bulk() map[protocol.Digest]bool {
	all := map[protocol.Digest]bool{}
	if s == nil {
		return all
	}
	for _, e := range s.Entries {
		for _, a := range e.Artifacts {
			if a.Size > smallArtifact {
				all[a.Digest] = true
			}
		}
	}
	return all
}

// changes returns the component changes that turn the stored state into next: the entries, new large
// artifacts, and deletions of those that are no longer used. They are sorted, so equal captures give equal
// commits. stored may be nil.
func changes(stored, next *State, bulk map[protocol.Digest][]byte) []persistence.Component {
	all := []persistence.Component{{Name: Component, Body: encoded(next)}}
	old, now := stored.bulk(), next.bulk()
	for _, d := range slices.Sorted(maps.Keys(now)) {
		if !old[d] {
			all = append(all, persistence.Component{Name: partName(d), Body: bulk[d]})
		}
	}
	for _, d := range slices.Sorted(maps.Keys(old)) {
		if !now[d] {
			all = append(all, persistence.Component{Name: partName(d)})
		}
	}
	return all
}

func partName(d protocol.Digest) string { return Component + "/" + string(d) }

// encoded returns the JSON of a state. Plugins' parts of it are valid JSON, so it cannot fail.
func encoded(s *State) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return b
}

// Snapshot returns the state in the form that plugins are opened with. It calls parts for the components of large
// artifacts, if there are any. A missing artifact is persistence.ErrCorrupt. It returns nil for nil.
func (s *State) Snapshot(parts func() (map[string][]byte, error)) (*plugin.Snapshot, error) {
	if s == nil {
		return nil, nil
	}
	snap := &plugin.Snapshot{Entries: map[string]plugin.Entry{}, Fingerprint: s.Fingerprint}
	var bulk map[string][]byte
	if len(s.bulk()) > 0 {
		var err error
		if bulk, err = parts(); err != nil {
			return snap, err
		}
	}
	for id, e := range s.Entries {
		entry := plugin.Entry{Meta: e.Meta}
		for _, a := range e.Artifacts {
			data, ok := a.Data, true
			if a.Size > smallArtifact {
				data, ok = bulk[partName(a.Digest)]
			}
			if !ok {
				return snap, fmt.Errorf("artifact %s of plugin %s is missing: %w", a.Name, id, persistence.ErrCorrupt)
			}
			entry.Artifacts = append(entry.Artifacts, plugin.Artifact{Name: a.Name, Data: data})
		}
		snap.Entries[id] = entry
	}
	return snap, nil
}

// Public returns the state of plugins as clients see it, ordered by plugin id. It never returns
// nil. s may be nil: nothing is stored.
func (s *State) Public() []protocol.PluginState {
	all := []protocol.PluginState{}
	if s == nil {
		return all
	}
	for _, id := range slices.Sorted(maps.Keys(s.Entries)) {
		entry := s.Entries[id]
		all = append(all, protocol.PluginState{
			Plugin: id, Version: entry.Meta.Version, Revision: entry.Meta.Revision, State: entry.Meta.State, Artifacts: entry.Artifacts,
		})
	}
	return all
}
