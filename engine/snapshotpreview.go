package engine

import (
	"context"
	"lashd/engine/pluginstate"

	"lashd/engine/graph"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// previewNodes limits the nodes that a preview shows on each side, newest first. The counts are
// always complete.
const previewNodes = 100

// Preview shows both sides of a restore, the session now and after it, without changing anything.
// It fails whenever the restore would fail, because it opens the plugins with the snapshot's state
// as Restore does. It also captures the plugins, so that the present side is current and not only
// as of the last commit.
func (sn *Snapshots) Preview(ctx context.Context, p *protocol.SnapshotParams) (*protocol.SnapshotPreviewResult, error) {
	return lockedPlugins(ctx, sn.eng, p.SessionID, func(k *pluginLock) (*protocol.SnapshotPreviewResult, error) {
		s, err := k.restorable(p.Name)
		if err != nil {
			return nil, err
		}
		kept, err := k.captureIdle()
		if err != nil {
			return nil, err
		}
		return onState(k.owner, func(ctx context.Context, st *state) (*protocol.SnapshotPreviewResult, error) {
			r := &protocol.SnapshotPreviewResult{Snapshot: infoOf(s.Snapshot)}
			if r.Now, err = currentSide(ctx, st, kept.captured); err != nil {
				return nil, err
			}
			if r.Then, err = s.restoredSide(ctx, st); err != nil {
				return nil, err
			}
			return r, addHistory(ctx, st, &r.Now, &r.Then)
		})
	})
}

// currentSide describes the session as it is now. Plugin state that was just captured (k) replaces
// the stored one; nil means the stored state is current. It runs on the actor.
func currentSide(ctx context.Context, st *state, k *pluginstate.Captured) (side protocol.SnapshotSide, err error) {
	plugins, tools := st.stored.pluginState(), st.stored.toolState()
	if tools.Tools == nil {
		tools.Tools = map[string]protocol.ToolSetting{}
	}
	if k != nil && k.State != nil {
		plugins = k.State
	}
	execution, err := st.stored.execution(ctx, "")
	if k != nil && k.Execution != nil {
		execution = k.Execution.AppliedTo(execution)
	}
	side = protocol.SnapshotSide{NodeID: st.row.Head.Leaf, Plugins: plugins.Public(), Tools: tools, Monitors: st.monitors.List(), Execution: digestOf(execution)}
	return side, err
}

// restoredSide describes the session as it would be after a restore, from the snapshot's components
// alone.
func (s *snapshot) restoredSide(ctx context.Context, st *state) (protocol.SnapshotSide, error) {
	execution, err := st.stored.execution(ctx, s.Name)
	side := protocol.SnapshotSide{NodeID: s.Node, Plugins: s.plugins.Public(), Tools: s.newestTools(st), Monitors: s.monitors.Restored(), Execution: digestOf(execution)}
	return side, err
}

// digestOf returns the digest of an executor's values, or an empty digest if there are none.
func digestOf(values map[string][]byte) protocol.Digest {
	if len(values) == 0 {
		return ""
	}
	return protocol.DigestOf(encode(values)) // JSON has maps in the order of their keys
}

// addHistory adds to each side the part of history that the other side lacks. Both sides share the
// path up to their common ancestor. It runs on the actor, so the leaf does not move under it.
func addHistory(ctx context.Context, st *state, now, then *protocol.SnapshotSide) error {
	a := st.history.leaf()
	b, err := st.eng.store.Place(ctx, then.NodeID)
	if err != nil {
		return err
	}
	common, err := st.eng.store.Common(ctx, a, b)
	if err != nil {
		return err
	}
	if err := addNodes(ctx, st.eng.store, now, a, common.Generation); err != nil {
		return err
	}
	return addNodes(ctx, st.eng.store, then, b, common.Generation)
}

// addNodes adds the nodes of a path that are newer than generation after to a side: the count of
// all of them, and the items of the newest previewNodes.
func addNodes(ctx context.Context, store *persistence.Store, side *protocol.SnapshotSide, leaf persistence.Cursor, after int64) error {
	side.Nodes, side.Items = leaf.Generation-after, []protocol.Item{}
	n := min(side.Nodes, previewNodes)
	if n == 0 {
		return nil
	}
	nodes, _, err := store.Path(ctx, leaf, int(n))
	side.Items = list(graph.Items(persistence.Reversed(nodes)))
	return err
}
