package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"lashd/engine/graph"
	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Names of the state components that the engine itself keeps.
const (
	componentTools     = "tools"
	componentOverlay   = "overlay"
	componentApprovals = "approvals"
)

// state is everything about a session that changes. It belongs to the session's actor.
type state struct {
	*session
	ctx       context.Context
	row       protocol.Session
	branch    int64
	broken    error                    // memory and store may differ: the actor ends and the session is loaded again
	turns     []persistence.StoredTurn // not ended, in order of acceptance
	inputs    []protocol.QueuedInput   // not consumed by a committed turn, in order of arrival
	decisions map[protocol.DecisionID]*openDecision
	approved  []protocol.ApprovalRule // for this session, by a person
	overlay   overlay
	history   *history
	tools     *toolbox
	calls     map[protocol.CallID]*clientCall
	current   *run
}

// history is what the model sees of the session's past, read once and then grown with each commit.
type history struct {
	leaf     protocol.NodeID
	messages []*protocol.Message
}

// toolbox is what plugins contribute to the session, built once it is needed.
type toolbox struct {
	plugins  *plugin.Session
	registry *tool.Registry
	catalog  *tool.Catalog
	system   string
	client   *clientTools
}

func (s *session) load(ctx context.Context) (*state, error) {
	row, err := s.eng.store.Session(ctx, s.id)
	if err != nil {
		return nil, err
	}
	st := &state{
		session: s, ctx: ctx, row: row.Session, branch: row.Branch,
		decisions: map[protocol.DecisionID]*openDecision{}, calls: map[protocol.CallID]*clientCall{},
	}
	s.key, s.feed = row.Key, newFeed(s.id, row.Seq)
	if st.turns, err = s.eng.store.OpenTurns(ctx, row.Key); err != nil {
		return nil, err
	}
	if st.inputs, err = s.eng.store.PendingInputs(ctx, row.Key); err != nil {
		return nil, err
	}
	if err := st.loadComponents(); err != nil {
		return nil, err
	}
	if err := st.loadDecisions(); err != nil {
		return nil, err
	}
	return st, st.startNext()
}

func (st *state) loadComponents() error {
	parts, err := st.eng.store.Components(st.ctx, st.key)
	if err != nil {
		return err
	}
	for name, into := range map[string]any{componentApprovals: &st.approved, componentOverlay: &st.overlay} {
		if body, ok := parts[name]; ok {
			if err := json.Unmarshal(body, into); err != nil {
				return fmt.Errorf("component %s: %w", name, err)
			}
		}
	}
	return nil
}

func (st *state) unload() {
	for _, d := range st.decisions {
		d.stop()
	}
	if st.tools != nil {
		if err := st.tools.plugins.Close(); err != nil {
			st.eng.Log.Warn("plugins did not close", "session", st.id, "error", err)
		}
	}
}

// unused tells whether nothing would be lost if the session left memory.
func (st *state) unused() bool {
	return st.current == nil && len(st.turns) == 0 && len(st.calls) == 0 && len(st.decisions) == 0 && !st.feed.watched()
}

// public is the session as clients see it.
func (st *state) public() protocol.Session {
	s := st.row
	switch {
	case len(st.decisions) > 0:
		s.State = protocol.SessionRequiresAction
	case st.current != nil || len(st.turns) > 0:
		s.State = protocol.SessionRunning
	default:
		s.State = protocol.SessionIdle
	}
	return s
}

// openTools builds what plugins contribute, on first use.
func (st *state) openTools() (*toolbox, error) {
	if st.tools != nil {
		return st.tools, nil
	}
	saved, err := st.savedTools()
	if err != nil {
		return nil, err
	}
	plugins, err := st.eng.Host.Open(st.row.Config.Driver, st.row.Config.Options, plugin.BuildContext{
		SessionID: st.id, Parent: st.row.Relation.Parent, Cwd: st.row.Cwd, StateDir: st.eng.StateDir,
	})
	if err != nil {
		return nil, err
	}
	t := &toolbox{plugins: plugins, client: &clientTools{session: st.session}}
	t.client.tools.Store(&st.overlay.Tools)
	t.registry = tool.NewRegistry(st.sources(t), saved)
	st.tools = t
	st.rebuildCatalog()
	return t, nil
}

func (st *state) savedTools() (protocol.ToolState, error) {
	var saved protocol.ToolState
	parts, err := st.eng.store.Components(st.ctx, st.key)
	if err != nil {
		return saved, err
	}
	if body, ok := parts[componentTools]; ok {
		err = json.Unmarshal(body, &saved)
	}
	return saved, err
}

// sources are the session's sources of tools: its client's own come first, so that they take precedence.
func (st *state) sources(t *toolbox) []tool.Source {
	var sources []tool.Source
	if len(st.overlay.Tools) > 0 {
		sources = append(sources, tool.Source{ID: "client:" + string(st.overlay.ClientID), Provider: t.client})
	}
	if !st.overlay.WithoutBase {
		sources = append(sources, t.plugins.Sources()...)
	}
	return sources
}

func (st *state) rebuildCatalog() {
	t := st.tools
	t.catalog = t.registry.Catalog()
	t.system = t.plugins.System(t.catalog,
		plugin.Prompt{Slot: plugin.SlotGuidance, Priority: 90, Content: st.row.Config.Prompt},
		plugin.Prompt{Slot: plugin.SlotRuntimeContext, Content: st.overlay.Prompt})
}

// closeTools drops what plugins contribute; it is built again on next use. Called when a setting changed that they see.
func (st *state) closeTools() {
	if st.tools == nil || st.current != nil {
		return
	}
	if err := st.tools.plugins.Close(); err != nil {
		st.eng.Log.Warn("plugins did not close", "session", st.id, "error", err)
	}
	st.tools = nil
}

// past is what the model sees before the next turn.
func (st *state) past() ([]*protocol.Message, error) {
	if st.history != nil && st.history.leaf == st.row.Head.Leaf {
		return st.history.messages, nil
	}
	nodes, err := st.frameNodes()
	if err != nil {
		return nil, err
	}
	msgs := graph.Messages(nodes)
	if err := graph.ResumeSafe(msgs); err != nil {
		return nil, err
	}
	st.history = &history{leaf: st.row.Head.Leaf, messages: slices.Clip(msgs)}
	return msgs, nil
}

// frameNodes reads the path from the leaf back to the node that opens its frame, in order.
func (st *state) frameNodes() ([]protocol.Node, error) {
	cursor := persistence.Cursor{Branch: st.branch, Generation: st.row.Head.Generation}
	var nodes []protocol.Node
	for !cursor.Done {
		page, next, err := st.eng.store.Path(st.ctx, cursor, 500)
		if err != nil {
			return nil, err
		}
		cursor = next
		for _, n := range page {
			nodes = append(nodes, n)
			if n.FrameOpen != nil {
				cursor.Done = true
				break
			}
		}
	}
	return persistence.Reversed(nodes), nil
}

// grow keeps the history that the model sees in step with nodes that were just committed.
func (st *state) grow(before protocol.NodeID, nodes []protocol.Node) {
	h := st.history
	if h == nil || h.leaf != before {
		st.history = nil
		return
	}
	for i := range nodes {
		if nodes[i].FrameOpen != nil {
			st.history = nil
			return
		}
		if nodes[i].Message != nil {
			h.messages = append(h.messages, nodes[i].Message)
		}
		h.leaf = nodes[i].ID
	}
}
