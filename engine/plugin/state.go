package plugin

import (
	"context"
	"encoding/json"
)

// Stateful is a Plugin that keeps state with the session. lashd stores the state when Revision has changed since the
// last time, so every change must increase it. Revision may be called while an operation, a task or a tool call of the
// plugin runs: guard what it reads.
type Stateful interface {
	Revision() uint64
	// Snapshot returns the state as JSON, and writes large data as artifacts.
	Snapshot(context.Context, *ArtifactWriter) (json.RawMessage, error)
	// Restore replaces the state. It may be called repeatedly and must have the same result each time. Without a state
	// in Meta it resets the plugin to its initial state.
	Restore(context.Context, Meta, *ArtifactReader) error
}

// Versioned is a Plugin whose state has a version other than "1". Restore receives state of another version unchanged:
// the plugin can migrate it, reset itself, or return an error.
type Versioned interface{ Version() string }

// Meta identifies the state of a plugin, and holds the state itself. Keep State small; put large data into artifacts.
type Meta struct {
	PluginID string          `json:"plugin_id"`
	Version  string          `json:"plugin_version"`
	Revision uint64          `json:"revision,string"`
	State    json.RawMessage `json:"state,omitempty"`
}

// Artifact is a named piece of large state.
type Artifact struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}

// Entry is the stored state of one plugin.
type Entry struct {
	Meta      Meta       `json:"meta"`
	Artifacts []Artifact `json:"artifacts,omitempty"`
}

// Snapshot is the state of all plugins of a session, by plugin id. Fingerprint identifies the revisions that were
// captured.
type Snapshot struct {
	Entries     map[string]Entry `json:"entries"`
	Fingerprint uint64           `json:"fingerprint,string"`
}

// ArtifactWriter collects artifacts in memory. If a name is used twice, a reader finds the first. Not safe for
// concurrent use.
type ArtifactWriter struct{ artifacts []Artifact }

// Write stores a copy of data under a name.
func (w *ArtifactWriter) Write(name string, data []byte) {
	w.artifacts = append(w.artifacts, Artifact{name, append([]byte(nil), data...)})
}

// ArtifactReader reads the artifacts of one plugin's entry.
type ArtifactReader struct{ artifacts []Artifact }

// All returns the artifacts in the order in which they were written. They are shared and must not be modified.
func (r *ArtifactReader) All() []Artifact { return r.artifacts }

// Read returns a copy of the first artifact with this name.
func (r *ArtifactReader) Read(name string) ([]byte, bool) {
	for _, a := range r.artifacts {
		if a.Name == name {
			return append([]byte(nil), a.Data...), true
		}
	}
	return nil, false
}
