package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"lashd/engine/plugin"
	"lashd/pluginloader/child"
)

// stateful is the instance of a plugin that has state for each session. It implements
// plugin.Stateful: the engine asks for a snapshot before a commit and stores it there. A plugin
// that changes its state sends snapshot/changed with a new revision. Without a new revision the
// engine does not ask.
type stateful struct{ *instance }

// saved is a state that the plugin wrote or that was restored. It never changes.
type saved struct {
	state          json.RawMessage
	artifacts      []plugin.Artifact
	version        string
	revision       uint64 // of the instance for this state
	pluginRevision uint64 // of the plugin for this state
	blank          bool   // there is no state to restore
}

// at returns the instance's revision of the state; 0: none.
func (s *saved) at() uint64 {
	if s == nil {
		return 0
	}
	return s.revision
}

// empty reports whether there is nothing to restore.
func (s *saved) empty() bool { return s == nil || s.blank }

// Version implements plugin.Versioned.
func (i *stateful) Version() string { return i.factory.config.Contributes.State }

// Revision implements plugin.Stateful. It counts for the instance, because the plugin's own numbers
// may start again with each process.
func (i *stateful) Revision() uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.revision
}

// changed handles the plugin's notice that its state has another revision.
func (i *instance) changed(l *life, revision uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if s := i.place; s != nil && s.life == l && s.said != revision {
		s.said = revision
		i.newest++
		i.revision = i.newest
	}
}

// snapshotWritten is the answer to snapshot/write. Artifacts without data were sent before, with
// host/artifactWrite.
type snapshotWritten struct {
	Revision  uint64            `json:"revision"`
	State     json.RawMessage   `json:"state,omitempty"`
	Artifacts []plugin.Artifact `json:"artifacts,omitempty"`
}

// Snapshot implements plugin.Stateful. It asks the process only if the session is open there.
// Otherwise the last saved state is the current one.
func (i *stateful) Snapshot(ctx context.Context, w *plugin.ArtifactWriter) (json.RawMessage, error) {
	kept, s, err := i.current(ctx)
	if err == nil && s != nil {
		kept, err = i.write(ctx, s)
	}
	if err != nil || kept.empty() {
		return nil, err
	}
	for _, a := range kept.artifacts {
		w.Write(a.Name, a.Data)
	}
	return kept.state, nil
}

// current returns the saved state, and the seat if the process may have a newer state.
func (i *stateful) current(ctx context.Context) (*saved, *seat, error) {
	i.mu.Lock()
	kept, s := i.kept, i.place
	i.mu.Unlock()
	if s == nil || !s.life.alive() {
		return kept, nil, nil
	}
	select {
	case <-s.ready:
		return kept, s, s.err
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
}

// write asks the process for its state and saves it. The revision is read before the call, so a
// change during the call leads to another snapshot.
func (i *stateful) write(ctx context.Context, s *seat) (*saved, error) {
	limit := i.factory.config.Deadlines.State
	before, g := i.Revision(), &grant{state: &artifacts{writing: true}}
	answer, err := put[snapshotWritten](ctx, s, "snapshot/write", limit, 0, g, func(s *seat, u until) any {
		return struct {
			of
			until
		}{i.of(s), u}
	})
	if err != nil {
		return nil, err
	}
	for _, a := range answer.Artifacts {
		if err := g.state.write(a.Name, 0, a.Data); err != nil {
			return nil, s.life.fail(Protocol, fmt.Errorf("snapshot/write: %w", err))
		}
	}
	kept := &saved{
		state: answer.State, artifacts: g.state.list, version: i.Version(), revision: before, pluginRevision: answer.Revision,
		blank: answer.State == nil && len(g.state.list) == 0,
	}
	i.changed(s.life, answer.Revision)
	return kept, i.keep(s, kept)
}

// errGone means that the session left the process while it wrote the state.
var errGone = errors.New("the session left the process while it wrote its state")

// keep saves a state, unless the session has left the process.
func (i *stateful) keep(s *seat, kept *saved) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.place != s {
		return s.life.fail(Crashed, errGone)
	}
	i.kept = kept
	return nil
}

// Restore implements plugin.Stateful. A running process gets the state at once and may reject it.
// Otherwise the next process gets it on first use. An empty state closes the session in the
// process, so that it is opened again without state.
func (i *stateful) Restore(ctx context.Context, m plugin.Meta, r *plugin.ArtifactReader) error {
	next := &saved{state: m.State, artifacts: r.All(), version: m.Version, revision: m.Revision}
	next.blank = m.State == nil && len(next.artifacts) == 0
	_, s, err := i.current(ctx)
	if err == nil && s != nil && !next.blank {
		err = i.giveBack(ctx, s, next)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if err != nil || next.blank {
		i.leaveLocked() // the state in the process is unknown
	}
	if code := child.CodeOf(err); err != nil && (code == Failed || code == Protocol) {
		return err
	}
	if next.blank {
		next.revision = i.newest + 1
	}
	i.kept, i.revision, i.newest, i.omission = next, next.revision, max(i.newest, next.revision), nil
	return nil
}

// restoring holds the parameters of snapshot/restore. The plugin reads artifacts that are too large
// for the message with host/artifactRead.
type restoring struct {
	of
	until
	Meta      plugin.Meta `json:"meta"`
	Artifacts []piece     `json:"artifacts"`
}

// piece is an artifact of a restored state. Data is absent if it did not fit.
type piece struct {
	Name string `json:"name"`
	Size int    `json:"size"`
	Data []byte `json:"data,omitempty"`
}

// giveBack sends a saved state to a process. Small artifacts go with the message; the plugin reads
// the others.
func (i *instance) giveBack(ctx context.Context, s *seat, kept *saved) error {
	if kept.empty() {
		return nil
	}
	pieces, size := []piece{}, 0
	for _, a := range kept.artifacts {
		p := piece{Name: a.Name, Size: len(a.Data)}
		if size += p.Size; size <= chunk {
			p.Data = a.Data
		}
		pieces = append(pieces, p)
	}
	meta := plugin.Meta{PluginID: i.factory.ID(), Version: kept.version, Revision: kept.pluginRevision, State: kept.state}
	g := &grant{state: &artifacts{list: kept.artifacts}}
	_, err := put[struct{}](ctx, s, "snapshot/restore", i.factory.config.Deadlines.State, 0, g, func(s *seat, u until) any {
		return restoring{i.of(s), u, meta, pieces}
	})
	i.mu.Lock()
	defer i.mu.Unlock()
	s.said = kept.pluginRevision
	return err
}
