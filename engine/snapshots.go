package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"lashd/engine/plugin"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// componentPlugins is what plugins keep. Their bulk stands beside it in parts, so that what did not change is not written
// again.
const componentPlugins = "plugins"

const (
	smallArtifact  = 4 << 10 // bytes that stand with the rest
	maxPluginState = 4 << 20 // bytes that change at once: a turn's commit must hold them too
	pluginPatience = 10 * time.Second
)

// pluginState is the state of a session's plugins as it is stored. It never changes: another one takes its place.
type pluginState struct {
	Fingerprint uint64                 `json:"fingerprint,string"` // of what was captured
	Entries     map[string]pluginEntry `json:"entries"`
}

type pluginEntry struct {
	Meta      plugin.Meta               `json:"meta"`
	Artifacts []protocol.PluginArtifact `json:"artifacts,omitempty"`
}

// captured is what plugins keep, on its way into the store.
type captured struct {
	state      *pluginState
	components []persistence.Component
}

// capture asks plugins what they keep, unless that is what is stored: then there is nothing to keep. What is stored of
// plugins that are not there now stays.
func capture(ctx context.Context, plugins *plugin.Session, stored *pluginState) (*captured, error) {
	if stored != nil && stored.Fingerprint == plugins.Fingerprint() {
		return nil, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, pluginPatience, ErrSlowPlugin)
	defer cancel()
	snap, err := plugins.Capture(ctx)
	if err != nil {
		return nil, err
	}
	next, bulk := frozen(snap)
	k := &captured{state: next}
	if stored != nil {
		for id, entry := range stored.Entries {
			if _, ok := next.Entries[id]; !ok {
				next.Entries[id] = entry
			}
		}
	}
	if stored != nil || len(next.Entries) > 0 {
		k.components = changedParts(stored, next, bulk)
	}
	return k, k.check()
}

// frozen is a snapshot as it is stored, and the artifacts that stand beside it.
func frozen(snap plugin.Snapshot) (*pluginState, map[protocol.Digest][]byte) {
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

func (k *captured) check() error {
	size := 0
	for _, c := range k.components {
		size += len(c.Body)
	}
	if size > maxPluginState {
		return fmt.Errorf("what the plugins keep has %d bytes that changed, at most %d", size, maxPluginState)
	}
	return nil
}

// keep adds what was captured to a commit. What it gives is called once the commit is durable.
func (st *state) keep(c *persistence.Commit, k *captured) (kept func()) {
	if k == nil {
		return func() {}
	}
	c.Component = append(c.Component, k.components...)
	return func() { st.plugged = k.state }
}

// captureIdle captures what plugins keep while nothing works with them; otherwise what is stored is what counts.
func (st *state) captureIdle(ctx context.Context) (*captured, error) {
	if st.tools == nil || st.idle() != nil {
		return nil, nil
	}
	return capture(ctx, st.tools.plugins, st.plugged)
}

// capture captures what plugins keep for the commit of the turn. If that fails what was stored stays, and is tried again.
func (r *run) capture() {
	k, err := capture(r.life, r.plugins, r.owner.plugged)
	if err != nil {
		r.issues = append(r.issues, uncaptured(r.eng, r.session.id, err))
		return
	}
	r.captured = k
}

// uncaptured logs a failed capture, and makes it an issue.
func uncaptured(e *Engine, id protocol.SessionID, err error) protocol.Issue {
	e.Log.Error("the state of plugins is not captured", "session", id, "error", err)
	return protocol.Issue{Kind: "plugin", Code: "plugin_snapshot", Message: err.Error()}
}

// openPlugins builds the session's plugins with what it was granted, and gives them back what is stored of them.
func (st *state) openPlugins(cfg protocol.Config) (*plugin.Session, error) {
	if st.plugged == nil {
		return st.eng.Host.Open(cfg.Driver, cfg.Options, st.buildContext())
	}
	plugins, unknown, err := st.restored(st.eng.Host, cfg, st.plugged, "")
	if len(unknown) > 0 {
		st.eng.Log.Warn("state is kept of plugins that are not there", "session", st.id, "plugins", unknown)
	}
	return plugins, err
}

func (st *state) buildContext() plugin.BuildContext {
	return plugin.BuildContext{
		SessionID: st.id, Parent: st.row.Relation.Parent, Authority: st.row.Authority, Cwd: st.row.Cwd, StateDir: st.eng.StateDir,
	}
}

// restored opens plugins with a stored state: the present one, or that of a snapshot.
func (st *state) restored(host *plugin.Host, cfg protocol.Config, from *pluginState, snapshot string) (*plugin.Session, []string, error) {
	snap, err := st.thaw(from, snapshot)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeoutCause(st.ctx, pluginPatience, ErrSlowPlugin)
	defer cancel()
	return host.OpenFrom(ctx, snap, cfg.Driver, cfg.Options, st.buildContext())
}

// thaw is a stored state as plugins get it.
func (st *state) thaw(from *pluginState, snapshot string) (plugin.Snapshot, error) {
	snap := plugin.Snapshot{Entries: map[string]plugin.Entry{}, Fingerprint: from.Fingerprint}
	var bulk map[string][]byte
	if len(from.bulk()) > 0 {
		var err error
		if bulk, err = st.eng.store.Parts(st.ctx, st.key, snapshot, componentPlugins); err != nil {
			return snap, err
		}
	}
	for id, e := range from.Entries {
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
