package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lashd/engine/change"
	"lashd/engine/graph"
	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/receipt"
	"lashd/engine/workgroup"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Compact asks the plugins to summarise a session's history. The summary opens a new frame: the
// model no longer sees what came before it, while people still do. Compact waits for the running
// turn to end, and no turn starts until it is done. If no plugin summarises, nothing changes.
func (ss *Sessions) Compact(ctx context.Context, p *protocol.SessionCompactParams) (*protocol.SessionCompactResult, error) {
	return receipt.Once(ctx, ss.eng.receipts, "session/compact", p.Key(), p, func(rc receipt.Request) (*protocol.SessionCompactResult, error) {
		w, err := ss.eng.hold(ctx, p.SessionID, noCheck, nil)
		if err != nil {
			return nil, err
		}
		return ss.compact(w, p, rc)
	})
}

// compact compacts the history of a session that w holds. It releases w in any case.
func (ss *Sessions) compact(w *sessionHold, p *protocol.SessionCompactParams, rc receipt.Request) (result *protocol.SessionCompactResult, err error) {
	stored := func(bool) {}
	defer func() { stored(err == nil) }()
	summarise := func(ctx context.Context, l *lease) (*summary, error) {
		s, err := workgroup.CallPluginUntilDone(ctx, ss.eng.group, func(ctx context.Context) (*summary, error) { return ss.summarise(ctx, l.plugins, p, w.after != "") })
		if err != nil {
			return nil, err
		}
		told, err := l.announce(ctx, s.nodes)
		if err == nil {
			stored = told
		}
		return s, err
	}
	return withHeld(w, summarise, func(ctx context.Context, st *state, done heldResult[*summary]) (*protocol.SessionCompactResult, error) {
		if err := st.history.checkSummary(done.result); err != nil {
			return nil, err
		}
		return st.history.openFrame(ctx, done, rc)
	})
}

// compactTimeout limits a compaction that a plugin requested. It includes a model call, and the
// next turn waits for it.
const compactTimeout = 10 * time.Minute

// compactNext compacts history before the next turn, because a plugin asked for it at the end of
// turn after. It runs on the actor and returns at once. Interrupting that turn cancels the
// compaction. If the daemon stops first, the compaction is lost, and the plugin can ask again.
func (h *sessionHistory) compactNext(after protocol.TurnID) {
	st := h.st
	ctx, stop := context.WithCancelCause(st.ctx)
	w := st.holds.request(ctx, st)
	w.after, w.stop = after, stop
	st.eng.group.GoActor(func() {
		defer stop(nil)
		if err := st.eng.Sessions.compactForPlugin(w); err != nil && st.ctx.Err() == nil {
			st.eng.Sessions.reportCompactionFailure(st.ctx, st.session, err)
		}
	})
}

// compactForPlugin waits until w holds the session and compacts its history. A panic is its error.
func (ss *Sessions) compactForPlugin(w *sessionHold) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = ss.eng.group.Recovered("session", w.owner.session.id, p)
		}
	}()
	if err := w.acquire(); err != nil {
		return err
	}
	var cancel context.CancelFunc
	w.lease.ctx, cancel = context.WithTimeoutCause(w.lease.ctx, compactTimeout, workgroup.ErrSlowPlugin)
	defer cancel()
	_, err = ss.compact(w, &protocol.SessionCompactParams{SessionID: w.owner.session.id}, receipt.Request{})
	return err
}

// reportCompactionFailure logs a failed automatic compaction and publishes it as an issue.
func (ss *Sessions) reportCompactionFailure(ctx context.Context, s *session, cause error) {
	ss.eng.Log.Error("automatic compaction failed", "session", s.id, "error", cause)
	event := issueEvent("", protocol.Issue{Kind: "plugin", Code: "compaction_failed", Message: cause.Error()})
	_, err := do(ctx, ss.eng, s.id, func(ctx context.Context, st *state) (struct{}, error) {
		return struct{}{}, st.commitEvents(ctx, event)
	})
	if err != nil && ctx.Err() == nil {
		ss.eng.Log.Error("could not publish that automatic compaction failed", "session", s.id, "error", err)
	}
}

// contextTokens returns how many tokens the conversation takes at the end of the turn. It uses the
// last usage that the model reported, and otherwise an estimate. It returns 0 if the model's
// context window is not configured, because then nothing depends on it.
func (p *prompt) contextTokens() int64 {
	if p.seams.journal.begin.Config.Model.ContextWindow <= 0 {
		return 0
	}
	return p.usedTokens()
}

// usedTokens is contextTokens for a model of any context window.
func (p *prompt) usedTokens() int64 {
	if calls := p.seams.journal.result().Calls; len(calls) > 0 && calls[len(calls)-1].Usage != nil {
		return calls[len(calls)-1].Usage.Total()
	}
	var n int64
	for _, m := range slices.Concat(p.visibleHistory(), messagesOf(p.seams.journal.nodes)) {
		for i := range m.Parts {
			n += m.Parts[i].EstimatedTokens()
		}
	}
	return n
}

// summary is what the compactors made of a history.
type summary struct {
	// nodes are the first nodes of the new frame; empty if no plugin summarised.
	nodes []protocol.NodeBody
	// kept says for each node whether it repeats a message of the history.
	kept []bool
	// by is the plugin that summarised.
	by string
	// messages is how many messages the history had when it was summarised.
	messages int
}

// summarise asks the plugins for a summary and checks that a conversation can start with it.
// unasked is set if a plugin, not a client, requested the compaction. It runs off the actor.
func (ss *Sessions) summarise(ctx context.Context, plugins *plugin.Session, p *protocol.SessionCompactParams, unasked bool) (*summary, error) {
	host := ss.eng.hostFor(p.SessionID)
	view, err := host.State.View(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	s := &summary{messages: len(view.Messages())}
	s.nodes, s.by, err = plugins.Compact(ctx, &plugin.CompactRequest{View: view, Instructions: p.Instructions, Unasked: unasked, Host: host})
	if err == nil && len(s.nodes) > 0 {
		s.kept, err = graph.Repeated(s.nodes, view.Messages()), param.CheckFrame(s.nodes, view.Messages())
	}
	if err != nil {
		return nil, &plugin.OperationError{Code: plugin.OperationFailed, Name: "session/compact", Message: fmt.Sprintf("plugin %s: %v", s.by, err)}
	}
	return s, nil
}

// checkSummary returns ErrHistoryMoved if messages were appended while the plugins summarised. The
// summary lacks them, so the model would never see them.
func (h *sessionHistory) checkSummary(s *summary) error {
	if len(s.nodes) == 0 {
		return nil
	}
	past, err := h.messages()
	if err == nil && len(past) != s.messages {
		err = ErrHistoryMoved
	}
	return err
}

// openFrame commits a frame that begins with the summary, together with the plugins' state. An
// empty summary opens none.
func (h *sessionHistory) openFrame(ctx context.Context, done heldResult[*summary], rc receipt.Request) (*protocol.SessionCompactResult, error) {
	st, nodes, by := h.st, done.result.nodes, done.result.by
	c := st.change(persistence.Commit{})
	st.stored.keep(c, done.captured)
	result := &protocol.SessionCompactResult{Plugin: by, Head: st.row.Head}
	if len(nodes) > 0 {
		opened, events := done.result.frame(&st.row)
		c.Nodes = opened
		c.Tell(events...)
		last := c.Nodes[len(c.Nodes)-1]
		result.Compacted = true
		result.Head = protocol.Head{
			Revision: st.row.Head.Revision + 1, Leaf: last.ID, Generation: st.row.Head.Generation + int64(len(c.Nodes)), Frame: protocol.FrameID(c.Nodes[0].ID),
		}
	}
	result.Seq = c.Seq()
	c.Receipt = rc.With(result)
	if len(nodes)+len(c.Component) == 0 && c.Receipt == nil {
		return result, nil
	}
	return result, st.commit(ctx, c)
}

// frame returns the nodes of a frame that begins with the summary, and their events. Node ids
// derive from the session's revision, so they are unique even after a rewind.
func (s *summary) frame(session *protocol.Session) ([]protocol.Node, []change.Event) {
	operation := fmt.Sprintf("compact:%d", session.Head.Revision) // unlike a generation, a revision never repeats
	open := protocol.FrameOpen{Key: operation, Reason: "compaction", Config: session.Config}
	nodes := []protocol.Node{{ID: protocol.DeriveNodeID(session.ID, operation, 0), AtMs: now(), FrameOpen: &open}}
	events := []change.Event{{Event: protocol.Event{
		Type: protocol.EventSessionCompacted, Plugin: s.by, Frame: &open, FrameID: protocol.FrameID(nodes[0].ID), ItemID: graph.ItemIDOf(nodes[0].ID, 0),
	}}}
	for i, b := range s.nodes {
		nodes = append(nodes, b.Node(protocol.DeriveNodeID(session.ID, operation, i+1), now()))
		nodes[i+1].Kept = s.kept[i]
	}
	return nodes, append(events, appendedEvents(nodes[1:]...)...)
}
