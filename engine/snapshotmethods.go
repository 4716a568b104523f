package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"lashd/engine/monitor"
	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/pluginstate"
	"lashd/engine/receipt"
	"lashd/engine/workgroup"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// inSnapshots lists the components that a named snapshot stores. Overlays of clients, standing
// approvals and recorded turn options are left out: they belong to the present session, not to a
// past state of it.
var inSnapshots = []string{pluginstate.Component, componentTools, pluginstate.Execution, monitor.Component}

// Snapshots is the API of snapshots, for clients and for plugins. A snapshot refers to a node of
// history and has copies of the components of the session, so it costs little and changes nothing
// when it is made.
type Snapshots struct{ eng *Engine }

// Create stores the session's state under a name: its leaf, its monitors, and the state of plugins
// and tools. It holds the lock of the plugins and captures them first.
//
// While a turn or a command runs, the snapshot has the state from before it, because plugins that
// are in use cannot be captured. The name of an existing snapshot is rejected by the store.
func (sn *Snapshots) Create(ctx context.Context, p *protocol.SnapshotMutationParams) (*protocol.SnapshotResult, error) {
	if err := param.CheckSnapshotName(p.Name); err != nil {
		return nil, err
	}
	return mutatePlugins(ctx, sn.eng, p.SessionID, "snapshot/create", p.Key(), p, func(k *pluginLock, rc receipt.Request) (*protocol.SnapshotResult, error) {
		kept, err := k.captureIdle()
		if err != nil {
			return nil, err
		}
		return onState(k.owner, func(ctx context.Context, st *state) (*protocol.SnapshotResult, error) {
			return storeSnapshot(ctx, st, p.Name, kept, rc)
		})
	})
}

// storeSnapshot commits a snapshot together with the plugin state that was captured for it. It runs
// on the actor.
func storeSnapshot(ctx context.Context, st *state, name string, kept idleCapture, rc receipt.Request) (*protocol.SnapshotResult, error) {
	c := st.change(persistence.Commit{Save: name, Keep: inSnapshots})
	kept.addTo(c, st)
	c.TellOf(protocol.Event{Type: protocol.EventSnapshotCreated, Name: name})
	head := st.row.Head
	result := &protocol.SnapshotResult{
		Snapshot: protocol.SnapshotInfo{Name: name, NodeID: head.Leaf, AtMs: now(), Nodes: head.Generation}, Seq: c.Seq(),
	}
	c.Receipt = rc.With(result)
	return result, st.commit(ctx, c)
}

// List lists all snapshots of a session.
func (sn *Snapshots) List(ctx context.Context, p *protocol.SessionParams) (*protocol.SnapshotListResult, error) {
	row, err := sn.eng.store.Session(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	all, err := sn.eng.store.Snapshots(ctx, row.Key)
	result := &protocol.SnapshotListResult{Data: []protocol.SnapshotInfo{}}
	for _, s := range all {
		result.Data = append(result.Data, infoOf(s))
	}
	return result, err
}

// infoOf returns the description of a snapshot as clients see it.
func infoOf(s persistence.Snapshot) protocol.SnapshotInfo {
	return protocol.SnapshotInfo{Name: s.Name, NodeID: s.Node, AtMs: s.AtMs, Nodes: s.Generation, Bytes: s.Bytes}
}

// Read returns the contents of a snapshot: tool settings and the state of each plugin. It reads
// only the store and opens no plugins.
func (sn *Snapshots) Read(ctx context.Context, p *protocol.SnapshotParams) (*protocol.SnapshotReadResult, error) {
	row, err := sn.eng.store.Session(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	s, err := sn.eng.readSnapshot(ctx, row.Key, p.Name)
	if err != nil {
		return nil, err
	}
	result := &protocol.SnapshotReadResult{Snapshot: infoOf(s.Snapshot), Tools: s.tools, Plugins: s.plugins.Public()}
	if s.plugins != nil {
		result.Fingerprint = s.plugins.Fingerprint
	}
	return result, nil
}

// snapshot is a named snapshot with its decoded components. A component is nil if the session had
// none when it was made. The executor's state is not part of it: it can be large and is read when
// the executor is opened.
type snapshot struct {
	persistence.Snapshot
	plugins  *pluginstate.State
	tools    *protocol.ToolState
	monitors *monitor.Monitors
}

// readSnapshot reads and decodes a snapshot of a session, which is given by its key in the store.
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
	for component, into := range map[string]any{pluginstate.Component: &s.plugins, componentTools: &s.tools, monitor.Component: &s.monitors} {
		if body, ok := parts[component]; ok {
			if err := json.Unmarshal(body, into); err != nil {
				return nil, fmt.Errorf("snapshot %s: component %s: %w", name, component, err)
			}
		}
	}
	return s, nil
}

// Restore sets the session back to a snapshot: a new head starts at the snapshot's leaf, and
// plugins, tools and monitors get their state back. Nodes after that leaf stay in the store,
// pinned, so that the restore can be reverted with another one or a fork.
//
// The session must be idle; otherwise it fails with *TurnActiveError or ErrSessionInUse. Before
// anything is stored, the plugins are opened with the old state as a trial: if one rejects it,
// nothing changes. The session's open plugins are closed after the commit, and the next use opens
// them with the restored state.
func (sn *Snapshots) Restore(ctx context.Context, p *protocol.SnapshotMutationParams) (*protocol.SnapshotRestoreResult, error) {
	return mutatePlugins(ctx, sn.eng, p.SessionID, "snapshot/restore", p.Key(), p, func(k *pluginLock, rc receipt.Request) (*protocol.SnapshotRestoreResult, error) {
		s, err := k.restorable(p.Name)
		if err != nil {
			return nil, err
		}
		before := k.owner.plugins.opened()
		result, err := onState(k.owner, func(ctx context.Context, st *state) (*protocol.SnapshotRestoreResult, error) {
			if err := checkUnused(st); err != nil {
				return nil, err
			}
			return s.restore(ctx, st, rc)
		})
		if err == nil {
			k.close(before)
		}
		return result, err
	})
}

// checkUnused fails unless the session is idle and no turn or call uses its plugins. It runs on the
// actor.
func checkUnused(st *state) error {
	err := st.idle()
	if err == nil && st.plugins.inUse() {
		err = ErrSessionInUse
	}
	return err
}

// restorable reads a snapshot and checks that the session can be restored to it now. It opens a
// second, isolated set of plugins with the snapshot's state and closes it again. The caller holds
// the lock until the restore is committed, so the answer stays valid.
func (k *pluginLock) restorable(name string) (*snapshot, error) {
	var stored plugin.Stored
	s, err := onState(k.owner, func(ctx context.Context, st *state) (s *snapshot, err error) {
		if err := checkUnused(st); err != nil {
			return nil, err
		}
		if s, err = st.eng.readSnapshot(ctx, st.key, name); err == nil {
			stored, err = s.pluginStored(ctx, st)
		}
		return s, err
	})
	if err != nil {
		return nil, err
	}
	row := k.row()
	_, err = workgroup.CallPlugin(k.ctx, k.eng.group, func(ctx context.Context) (struct{}, error) {
		plugins, err := k.eng.rehearse(ctx, row.Config, buildContextOf(k.eng, row, row.Config), stored)
		if err == nil {
			err = plugins.Close()
		}
		return struct{}{}, err
	})
	return s, err
}

// pluginStored returns the stored state that plugins are opened with after a restore: of plugins,
// of the executor, and the history that they see. It runs on the actor.
func (s *snapshot) pluginStored(ctx context.Context, st *state) (stored plugin.Stored, err error) {
	stored.Plugins, err = st.stored.pluginSnapshot(ctx, s.plugins, s.Name)
	if err == nil {
		stored.Execution, err = st.stored.execution(ctx, s.Name)
	}
	if err == nil {
		stored.View, err = viewAt(st, s.Node)
	}
	if err == nil {
		stored.Recorded = stored.View.TurnOptions
	}
	return stored, err
}

// restore commits the restored state on the actor. Once that is stored, components and history are
// read again and the open plugins are removed from the session; the holder of the lock closes them.
func (s *snapshot) restore(ctx context.Context, st *state, rc receipt.Request) (*protocol.SnapshotRestoreResult, error) {
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
	tools := s.newestTools(st)
	c.TellOf(protocol.Event{Type: protocol.EventSessionRewound, Head: &head, Name: s.Name})
	st.stored.setTools(c, tools)
	st.monitors.In(c).Restore(s.monitors)
	if err := c.Finish(); err != nil {
		return nil, err
	}
	result.Seq = c.Seq()
	c.Receipt = rc.With(result)
	c.Then(st.reloadRestored)
	return result, st.commit(ctx, c)
}

// newestTools returns the tool state of the snapshot with a generation above every generation that
// the session has had, so that clients and the catalog see it as new.
func (s *snapshot) newestTools(st *state) protocol.ToolState {
	tools := protocol.ToolState{Tools: map[string]protocol.ToolSetting{}}
	if s.tools != nil {
		tools = *s.tools
	}
	tools.Generation = max(tools.Generation, st.stored.toolState().Generation)
	if t := st.plugins.opened(); t != nil {
		tools.Generation = max(tools.Generation, t.composer.Base().Generation())
	}
	tools.Generation++
	return tools
}

// Delete deletes a snapshot. Nodes that only the snapshot kept can be pruned afterwards.
func (sn *Snapshots) Delete(ctx context.Context, p *protocol.SnapshotMutationParams) (*protocol.SeqResult, error) {
	return mutate(ctx, sn.eng, p.SessionID, "snapshot/delete", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.SeqResult, error) {
		c := st.change(persistence.Commit{Drop: p.Name})
		c.TellOf(protocol.Event{Type: protocol.EventSnapshotDeleted, Name: p.Name})
		result := &protocol.SeqResult{Seq: c.Seq()}
		c.Receipt = rc.With(result)
		return result, st.commit(ctx, c)
	})
}
