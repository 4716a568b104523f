package engine

import (
	"maps"
	"slices"

	"lashd/engine/plugin"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// componentPlugins is the component that stores plugin state. Large artifacts are components of their own, named
// after their digests, so that unchanged ones are not written again.
const componentPlugins = "plugins"

const (
	smallArtifact  = 4 << 10 // bytes; artifacts up to this size are stored inside the component
	maxPluginState = 4 << 20 // bytes that one capture may write: they share the size limit of a turn's commit
)

// pluginState is the stored state of a session's plugins. It is immutable, so it may be read on any goroutine;
// each capture creates a new one.
type pluginState struct {
	Fingerprint uint64                 `json:"fingerprint,string"` // of the plugins when captured; equal: nothing to capture
	Entries     map[string]pluginEntry `json:"entries"`
}

// pluginEntry is the stored state of one plugin. Artifacts above smallArtifact have a digest and size but no data.
type pluginEntry struct {
	Meta      plugin.Meta               `json:"meta"`
	Artifacts []protocol.PluginArtifact `json:"artifacts,omitempty"`
}

// freeze converts a snapshot to its stored form. It also returns the data of the large artifacts by digest, which
// are stored as components of their own.
func freeze(snap plugin.Snapshot) (*pluginState, map[protocol.Digest][]byte) {
	state := &pluginState{Fingerprint: snap.Fingerprint, Entries: map[string]pluginEntry{}}
	bulk := map[protocol.Digest][]byte{}
	for id, entry := range snap.Entries {
		e := pluginEntry{Meta: entry.Meta}
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
func (s *pluginState) bulk() map[protocol.Digest]bool {
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

// changedParts returns the component changes that turn the stored state into next: the entries, new large
// artifacts, and deletions of those that are no longer used. They are sorted, so equal captures give equal
// commits. stored may be nil.
func changedParts(stored, next *pluginState, bulk map[protocol.Digest][]byte) []persistence.Component {
	changes := []persistence.Component{{Name: componentPlugins, Body: encode(next)}}
	old, now := stored.bulk(), next.bulk()
	for _, d := range slices.Sorted(maps.Keys(now)) {
		if !old[d] {
			changes = append(changes, persistence.Component{Name: partName(d), Body: bulk[d]})
		}
	}
	for _, d := range slices.Sorted(maps.Keys(old)) {
		if !now[d] {
			changes = append(changes, persistence.Component{Name: partName(d)})
		}
	}
	return changes
}

func partName(d protocol.Digest) string { return componentPlugins + "/" + string(d) }
