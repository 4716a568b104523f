package engine

import (
	"maps"
	"slices"

	"lashd/engine/plugin"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// componentPlugins is what plugins keep. Their bulk stands beside it in parts, so that what did not change is not written
// again.
const componentPlugins = "plugins"

const (
	smallArtifact  = 4 << 10 // bytes; artifacts up to this size are stored inside the component
	maxPluginState = 4 << 20 // bytes that one capture may write: they share the size limit of a turn's commit
)

// pluginState is the state of a session's plugins as it is stored. It never changes: another one takes its place.
type pluginState struct {
	Fingerprint uint64                 `json:"fingerprint,string"` // of the plugins when captured; equal: nothing to capture
	Entries     map[string]pluginEntry `json:"entries"`
}

type pluginEntry struct {
	Meta      plugin.Meta               `json:"meta"`
	Artifacts []protocol.PluginArtifact `json:"artifacts,omitempty"`
}

// freeze is a snapshot as it is stored, and the artifacts that stand beside it.
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

// bulk are the digests of the artifacts that stand beside a state.
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

// changedParts are the components that make a stored state the next one.
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
