package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"lashd/engine/graph"
	"lashd/engine/plugin"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Compact has a plugin summarise a session's history. A new frame opens with the summary: the model sees nothing of what lies
// before it, while people still do. It waits for the running turn to end, and no turn starts meanwhile. Without a plugin that
// summarises, nothing changes.
func (e *Engine) Compact(ctx context.Context, p *protocol.SessionCompactParams) (*protocol.SessionCompactResult, error) {
	return single(ctx, e, "session/compact", p.Key(), p, func(rc receipt) (*protocol.SessionCompactResult, error) {
		w, err := e.hold(ctx, p.SessionID, func(*toolbox) error { return nil })
		if err != nil {
			return nil, err
		}
		nodes, by, err := e.summarise(w, p)
		close(w.over)
		if err != nil {
			w.leave(ctx)
			return nil, cancelledOr(ctx, err)
		}
		return release(ctx, w, func(ctx context.Context, st *state) (*protocol.SessionCompactResult, error) {
			return st.openFrame(ctx, nodes, by, rc)
		})
	})
}

// summarise asks the compactors. What they give must be fit to begin a conversation with.
func (e *Engine) summarise(w *writer, p *protocol.SessionCompactParams) ([]protocol.NodeBody, string, error) {
	host := e.hostFor(p.SessionID)
	view, err := host.State.View(w.ctx, p.SessionID)
	if err != nil {
		return nil, "", err
	}
	nodes, by, err := w.tools.plugins.Compact(w.ctx, &plugin.CompactRequest{View: view, Instructions: p.Instructions, Host: host})
	if err == nil && len(nodes) > 0 {
		err = checkFrame(nodes)
	}
	if err != nil {
		return nil, by, &plugin.OperationError{Code: plugin.OperationFailed, Name: "session/compact", Message: fmt.Sprintf("plugin %s: %v", by, err)}
	}
	return nodes, by, nil
}

func (st *state) openFrame(ctx context.Context, nodes []protocol.NodeBody, by string, rc receipt) (*protocol.SessionCompactResult, error) {
	result := &protocol.SessionCompactResult{Plugin: by, Head: st.row.Head, Seq: st.row.Seq}
	c := &persistence.Commit{}
	var events []logEvent
	if len(nodes) > 0 {
		c.Nodes, events = st.frame(nodes, by)
		last := c.Nodes[len(c.Nodes)-1]
		result.Compacted, result.Seq = true, result.Seq+protocol.Seq(len(events))
		result.Head = protocol.Head{
			Revision: st.row.Head.Revision + 1, Leaf: last.ID, Generation: st.row.Head.Generation + int64(len(c.Nodes)), Frame: protocol.FrameID(c.Nodes[0].ID),
		}
	}
	c.Receipt = rc.with(result)
	if len(nodes) == 0 && c.Receipt == nil {
		return result, nil
	}
	_, err := st.commit(ctx, c, events...)
	if err != nil {
		return nil, err
	}
	st.history = nil
	return result, nil
}

// frame are the nodes of a frame that begins with a summary, and what is told of them.
func (st *state) frame(bodies []protocol.NodeBody, by string) ([]protocol.Node, []logEvent) {
	operation := fmt.Sprintf("compact:%d", st.row.Head.Generation)
	open := protocol.FrameOpen{Key: operation, Reason: "compaction", Config: st.row.Config}
	nodes := []protocol.Node{{ID: protocol.DeriveNodeID(st.id, operation, 0), AtMs: now(), FrameOpen: &open}}
	events := []logEvent{{Event: protocol.Event{
		Type: protocol.EventSessionCompacted, Plugin: by, Frame: &open, FrameID: protocol.FrameID(nodes[0].ID), ItemID: graph.ItemIDOf(nodes[0].ID, 0),
	}}}
	for i, b := range bodies {
		n := protocol.Node{ID: protocol.DeriveNodeID(st.id, operation, i+1), AtMs: now(), Message: b.Message, Plugin: b.Plugin}
		nodes = append(nodes, n)
	}
	return nodes, append(events, appendedEvents(nodes[1:]...)...)
}

// checkFrame lets a conversation begin only with what it can go on from: every call with its result.
func checkFrame(nodes []protocol.NodeBody) error {
	var msgs []*protocol.Message
	plain := slices.Clone(nodes)
	for i, n := range nodes {
		if n.Message != nil {
			msgs = append(msgs, n.Message)
			plain[i].Message = withoutWork(n.Message)
		}
	}
	return cmp.Or(checkAppend(plain), graph.ResumeSafe(msgs))
}

// withoutWork is a message with a text in place of each call, each result and each code cell.
func withoutWork(m *protocol.Message) *protocol.Message {
	short := *m
	short.Parts = slices.Clone(m.Parts)
	for i := range short.Parts {
		p := &short.Parts[i]
		switch p.Kind {
		case protocol.PartToolCall, protocol.PartToolResult, protocol.PartCode, protocol.PartOutput:
			if _, err := json.Marshal(p); err == nil && p.Attachment == nil && (p.Call == nil || p.Result == nil) {
				*p = protocol.Part{Kind: protocol.PartText}
			}
		}
	}
	return &short
}
