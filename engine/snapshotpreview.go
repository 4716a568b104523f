package engine

import (
	"context"

	"lashd/engine/graph"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// previewNodes is how many nodes a preview tells of on each side.
const previewNodes = 100

// Preview tells what a restore would change. It refuses what a restore would refuse, and changes nothing.
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

// sideNow is what plugins, tools and monitors of the session are like, with what was captured of plugins; nil: what is stored counts.
func currentSide(ctx context.Context, st *state, k *captured) (side protocol.SnapshotSide, err error) {
	plugins, tools := st.stored.pluginState(), st.stored.toolState()
	if tools.Tools == nil {
		tools.Tools = map[string]protocol.ToolSetting{}
	}
	if k != nil && k.state != nil {
		plugins = k.state
	}
	execution, err := st.stored.execution(ctx, "")
	if k != nil && k.execution != nil {
		execution = k.execution.State
	}
	side = protocol.SnapshotSide{NodeID: st.row.Head.Leaf, Plugins: plugins.public(), Tools: tools, Monitors: st.monitors.List(), Execution: digestOf(execution)}
	return side, err
}

// side returns what plugins, tools and monitors of the session would be like after a restore.
func (s *snapshot) restoredSide(ctx context.Context, st *state) (protocol.SnapshotSide, error) {
	execution, err := st.stored.execution(ctx, s.Name)
	side := protocol.SnapshotSide{NodeID: s.Node, Plugins: s.plugins.public(), Tools: s.newestTools(st), Monitors: s.monitors.Restored(), Execution: digestOf(execution)}
	return side, err
}

func digestOf(state []byte) protocol.Digest {
	if len(state) == 0 {
		return ""
	}
	return protocol.DigestOf(state)
}

// addHistory adds to each side the history that the other has not.
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

// addNodes adds to a side the nodes of a path that are newer than a generation.
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
