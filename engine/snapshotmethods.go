package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"lashd/engine/plugin"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// inSnapshots are the components that named snapshots hold: what a client adds to a session, what a person allowed and what
// the protocol has recorded is not of the past.
var inSnapshots = []string{componentPlugins, componentTools, componentExecution, componentMonitors}

// CreateSnapshot gives the session's state a name: its leaf, and what plugins and tools are like. Beside a turn or a command,
// that is the state before it.
func (e *Engine) CreateSnapshot(ctx context.Context, p *protocol.SnapshotMutationParams) (*protocol.SnapshotResult, error) {
	if err := checkSnapshotName(p.Name); err != nil {
		return nil, err
	}
	return mutate(ctx, e, p.SessionID, "snapshot/create", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.SnapshotResult, error) {
		k, err := st.captureIdle()
		if err != nil {
			return nil, err
		}
		c := st.change(persistence.Commit{Save: p.Name, Keep: inSnapshots})
		st.keep(c, k)
		c.TellOf(protocol.Event{Type: protocol.EventSnapshotCreated, Name: p.Name})
		head := st.row.Head
		result := &protocol.SnapshotResult{
			Snapshot: protocol.SnapshotInfo{Name: p.Name, NodeID: head.Leaf, AtMs: now(), Nodes: head.Generation}, Seq: c.Seq(),
		}
		c.Receipt = rc.with(result)
		return result, st.commit(ctx, c)
	})
}

func checkSnapshotName(name string) error {
	if name == "" {
		return bad("/name", "must not be empty")
	}
	return checkName("/name", name)
}

// Snapshots lists the snapshots of a session.
func (e *Engine) Snapshots(ctx context.Context, p *protocol.SessionParams) (*protocol.SnapshotListResult, error) {
	row, err := e.store.Session(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	all, err := e.store.Snapshots(ctx, row.Key)
	result := &protocol.SnapshotListResult{Data: []protocol.SnapshotInfo{}}
	for _, s := range all {
		result.Data = append(result.Data, infoOf(s))
	}
	return result, err
}

func infoOf(s persistence.Snapshot) protocol.SnapshotInfo {
	return protocol.SnapshotInfo{Name: s.Name, NodeID: s.Node, AtMs: s.AtMs, Nodes: s.Generation, Bytes: s.Bytes}
}

// ReadSnapshot reads what a snapshot holds.
func (e *Engine) ReadSnapshot(ctx context.Context, p *protocol.SnapshotParams) (*protocol.SnapshotReadResult, error) {
	row, err := e.store.Session(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	s, err := e.readSnapshot(ctx, row.Key, p.Name)
	if err != nil {
		return nil, err
	}
	result := &protocol.SnapshotReadResult{Snapshot: infoOf(s.Snapshot), Tools: s.tools, Plugins: s.plugins.public()}
	if s.plugins != nil {
		result.Fingerprint = s.plugins.Fingerprint
	}
	return result, nil
}

// public is what plugins keep as clients see it, in order of plugin.
func (s *pluginState) public() []protocol.PluginState {
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

// snapshot is a named snapshot with its components.
type snapshot struct {
	persistence.Snapshot
	plugins  *pluginState
	tools    *protocol.ToolState
	monitors *monitors
}

func (e *Engine) readSnapshot(ctx context.Context, session int64, name string) (*snapshot, error) {
	row, err := e.store.Snapshot(ctx, session, name)
	if err != nil {
		return nil, err
	}
	parts, err := e.store.Components(ctx, session, name)
	if err != nil {
		return nil, err
	}
	s := &snapshot{Snapshot: row}
	for component, into := range map[string]any{componentPlugins: &s.plugins, componentTools: &s.tools, componentMonitors: &s.monitors} {
		if body, ok := parts[component]; ok {
			if err := json.Unmarshal(body, into); err != nil {
				return nil, fmt.Errorf("snapshot %s: component %s: %w", name, component, err)
			}
		}
	}
	return s, nil
}

// RestoreSnapshot makes the session what it was: a new head begins at the snapshot's leaf, and plugins and tools get their
// state back. History stays; the leaf that is left is pinned. If a plugin cannot take its state, nothing is changed.
func (e *Engine) RestoreSnapshot(ctx context.Context, p *protocol.SnapshotMutationParams) (*protocol.SnapshotRestoreResult, error) {
	return mutate(ctx, e, p.SessionID, "snapshot/restore", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.SnapshotRestoreResult, error) {
		s, err := st.restorable(ctx, p.Name)
		if err != nil {
			return nil, err
		}
		return st.restore(ctx, s, rc)
	})
}

// restorable is a snapshot that the session can be restored to now.
func (st *state) restorable(ctx context.Context, name string) (*snapshot, error) {
	if err := st.idle(); err != nil {
		return nil, err
	}
	if st.inUse() {
		return nil, ErrSessionInUse
	}
	s, err := st.eng.readSnapshot(ctx, st.key, name)
	if err != nil {
		return nil, err
	}
	return s, st.tryOut(s)
}

// keptIn is what plugins get that are opened with the state of a snapshot.
func (st *state) keptIn(s *snapshot) (stored plugin.Stored, err error) {
	if s.plugins != nil {
		stored.Plugins, err = st.thaw(s.plugins, s.Name)
	}
	if err == nil {
		stored.Execution, err = st.executed(s.Name)
	}
	if err == nil {
		stored.View, err = st.viewAt(s.Node)
	}
	if err == nil {
		stored.Recorded = stored.View.TurnOptions
	}
	return stored, err
}

// tryOut opens plugins that nobody else knows of as they will be with the state of a snapshot.
func (st *state) tryOut(s *snapshot) error {
	stored, err := st.keptIn(s)
	if err != nil {
		return err
	}
	cfg, bc := st.row.Config, st.buildContext()
	_, err = callPluginOnActor(st, func(ctx context.Context) (struct{}, error) {
		plugins, err := st.eng.rehearse(ctx, cfg, bc, stored)
		if err == nil {
			err = plugins.Close()
		}
		return struct{}{}, err
	})
	return err
}

func (st *state) restore(ctx context.Context, s *snapshot, rc receipt) (*protocol.SnapshotRestoreResult, error) {
	node, err := st.eng.node(ctx, s.Node)
	if err != nil {
		return nil, err
	}
	head := protocol.Head{Revision: st.row.Head.Revision + 1, Leaf: node.ID, Generation: node.Generation, Frame: node.Frame}
	result := &protocol.SnapshotRestoreResult{Head: head}
	c := st.change(persistence.Commit{Restore: s.Name, Keep: inSnapshots})
	if left := st.row.Head.Leaf; left != node.ID {
		result.Pinned = left
		c.Pins = []persistence.Pin{{Node: left, Reason: "restored from", AtMs: now()}}
	}
	tools := st.toolsAgain(s)
	c.TellOf(protocol.Event{Type: protocol.EventSessionRewound, Head: &head, Name: s.Name})
	st.setTools(c, tools)
	st.tasksIn(c).restoreMonitors(s.monitors)
	if err := c.Finish(); err != nil {
		return nil, err
	}
	result.Seq = c.Seq()
	c.Receipt = rc.with(result)
	c.Then(st.startOver)
	return result, st.commit(ctx, c)
}

// toolsAgain is the tool state of a snapshot, as the newest of the session: no generation comes twice.
func (st *state) toolsAgain(s *snapshot) protocol.ToolState {
	tools := protocol.ToolState{Tools: map[string]protocol.ToolSetting{}}
	if s.tools != nil {
		tools = *s.tools
	}
	tools.Generation = max(tools.Generation, st.storedTools.Generation)
	if st.plugins != nil {
		tools.Generation = max(tools.Generation, st.plugins.composer.Base().Generation())
	}
	tools.Generation++
	return tools
}

// startOver forgets what was loaded of the session's components, history and place.
func (st *state) startOver() {
	st.dropTools()
	st.history, st.storedTools, st.storedPlugins, st.monitors = nil, protocol.ToolState{}, nil, nil
	row, err := st.eng.store.Session(st.ctx, st.id)
	if err == nil {
		err = st.loadComponents(st.key)
	}
	if err != nil {
		st.broken = err // load the session again
		return
	}
	st.branch = row.Branch
}

// DeleteSnapshot lets a snapshot go.
func (e *Engine) DeleteSnapshot(ctx context.Context, p *protocol.SnapshotMutationParams) (*protocol.SeqResult, error) {
	return mutate(ctx, e, p.SessionID, "snapshot/delete", p.Key(), p, func(ctx context.Context, st *state, rc receipt) (*protocol.SeqResult, error) {
		c := st.change(persistence.Commit{Drop: p.Name})
		c.TellOf(protocol.Event{Type: protocol.EventSnapshotDeleted, Name: p.Name})
		result := &protocol.SeqResult{Seq: c.Seq()}
		c.Receipt = rc.with(result)
		return result, st.commit(ctx, c)
	})
}
