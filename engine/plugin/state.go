package plugin

import (
	"context"
	"encoding/json"
)

// Stateful is a Plugin that keeps state. Revision grows with every change of it: state that changed under an unchanged
// revision is not stored. Revision may be called while an operation, a task or a call of the plugin runs: guard what it reads.
type Stateful interface {
	Revision() uint64
	// Snapshot gives the state, and writes bulk bytes as artifacts.
	Snapshot(context.Context, *ArtifactWriter) (json.RawMessage, error)
	// Restore takes state back. It may be called more than once, and must then come to the same. Meta without a state means:
	// be as if new.
	Restore(context.Context, Meta, *ArtifactReader) error
}

// Versioned is a Plugin whose state has a version other than "1". A state of another version is handed to Restore as it
// is: the plugin migrates it, begins anew, or fails.
type Versioned interface{ Version() string }

// Meta says whose state it is, and which. State is small; bulk goes into artifacts.
type Meta struct {
	PluginID string          `json:"plugin_id"`
	Version  string          `json:"plugin_version"`
	Revision uint64          `json:"revision,string"`
	State    json.RawMessage `json:"state,omitempty"`
}

// Artifact is a named piece of bulk state.
type Artifact struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}

// Entry is the state of one plugin.
type Entry struct {
	Meta      Meta       `json:"meta"`
	Artifacts []Artifact `json:"artifacts,omitempty"`
}

// Snapshot is the state of all plugins of a session, by plugin id, and the fingerprint of what was captured.
type Snapshot struct {
	Entries     map[string]Entry `json:"entries"`
	Fingerprint uint64           `json:"fingerprint,string"`
}

// ArtifactWriter collects artifacts. Names may be used twice; a reader finds the first.
type ArtifactWriter struct{ artifacts []Artifact }

// Write keeps a copy of data under a name.
func (w *ArtifactWriter) Write(name string, data []byte) {
	w.artifacts = append(w.artifacts, Artifact{name, append([]byte(nil), data...)})
}

// ArtifactReader finds artifacts.
type ArtifactReader struct{ artifacts []Artifact }

// All are the artifacts, in the order in which they were written. They are shared: nobody changes them.
func (r *ArtifactReader) All() []Artifact { return r.artifacts }

// Read gives the first artifact of a name.
func (r *ArtifactReader) Read(name string) ([]byte, bool) {
	for _, a := range r.artifacts {
		if a.Name == name {
			return append([]byte(nil), a.Data...), true
		}
	}
	return nil, false
}
