package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
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

// Compact has a plugin summarise a session's history. A new frame opens with the summary: the model sees nothing of what lies
// before it, while people still do. It waits for the running turn to end, and no turn starts meanwhile. Without a plugin that
// summarises, nothing changes.
func (ss *Sessions) Compact(ctx context.Context, p *protocol.SessionCompactParams) (*protocol.SessionCompactResult, error) {
	return receipt.Once(ctx, ss.eng.receipts, "session/compact", p.Key(), p, func(rc receipt.Request) (*protocol.SessionCompactResult, error) {
		w, err := ss.eng.hold(ctx, p.SessionID, noCheck)
		if err != nil {
			return nil, err
		}
		return ss.compact(w, p, rc)
	})
}

// compact compacts the history of a session that is held.
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

// compactTimeout is how long the next turn waits for a compaction that nobody has asked for: it takes a model call.
const compactTimeout = 10 * time.Minute

// compactNext has history compacted before the next turn begins, because a plugin wants it after a turn: who interrupts that
// turn ends it. If the daemon dies before, it is left to the plugin to want it again.
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

// reportCompactionFailure tells why history that was to be compacted was not.
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

const (
	bytesPerToken    = 4
	attachmentTokens = 1200
)

// contextTokens is how many tokens of the context the conversation takes at the end of the turn: what the model has told, or a guess.
func (p *prompt) contextTokens() int64 {
	if p.seams.journal.begin.Config.Model.ContextWindow <= 0 {
		return 0
	}
	if calls := p.seams.journal.result().Calls; len(calls) > 0 && calls[len(calls)-1].Usage != nil {
		return calls[len(calls)-1].Usage.Total()
	}
	var n int64
	for _, m := range slices.Concat(p.visibleHistory(), messagesOf(p.seams.journal.nodes)) {
		for i := range m.Parts {
			n += estimateTokens(&m.Parts[i])
		}
	}
	return n
}

func estimateTokens(p *protocol.Part) int64 {
	n := len(p.Text)
	switch {
	case p.Attachment != nil:
		return attachmentTokens
	case p.Call != nil:
		n += len(p.Call.Args)
	case p.Result != nil:
		n += max(len(p.Result.Output.Text), len(p.Result.Output.Value))
	}
	return int64(n / bytesPerToken)
}

// summary is what a compactor made of the first messages of a history.
type summary struct {
	nodes    []protocol.NodeBody
	by       string
	messages int
}

// summarise asks the compactors. What they give must be fit to begin a conversation with.
func (ss *Sessions) summarise(ctx context.Context, plugins *plugin.Session, p *protocol.SessionCompactParams, unasked bool) (*summary, error) {
	host := ss.eng.hostFor(p.SessionID)
	view, err := host.State.View(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	s := &summary{messages: len(view.Messages())}
	s.nodes, s.by, err = plugins.Compact(ctx, &plugin.CompactRequest{View: view, Instructions: p.Instructions, Unasked: unasked, Host: host})
	if err == nil && len(s.nodes) > 0 {
		err = checkFrame(s.nodes, view.Messages())
	}
	if err != nil {
		return nil, &plugin.OperationError{Code: plugin.OperationFailed, Name: "session/compact", Message: fmt.Sprintf("plugin %s: %v", s.by, err)}
	}
	return s, nil
}

// checkSummary refuses a summary that lacks messages that were appended meanwhile: the model would never see them.
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

// openFrame opens a frame that begins with a summary. An empty summary changes nothing.
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

// frame returns the nodes of a frame that begins with the summary, and their events.
func (s *summary) frame(session *protocol.Session) ([]protocol.Node, []change.Event) {
	operation := fmt.Sprintf("compact:%d", session.Head.Revision) // unlike the generation, it never comes again
	open := protocol.FrameOpen{Key: operation, Reason: "compaction", Config: session.Config}
	nodes := []protocol.Node{{ID: protocol.DeriveNodeID(session.ID, operation, 0), AtMs: now(), FrameOpen: &open}}
	events := []change.Event{{Event: protocol.Event{
		Type: protocol.EventSessionCompacted, Plugin: s.by, Frame: &open, FrameID: protocol.FrameID(nodes[0].ID), ItemID: graph.ItemIDOf(nodes[0].ID, 0),
	}}}
	for i, b := range s.nodes {
		nodes = append(nodes, b.Node(protocol.DeriveNodeID(session.ID, operation, i+1), now()))
	}
	return nodes, append(events, appendedEvents(nodes[1:]...)...)
}

// checkFrame lets a conversation begin only with what it can go on from: every call with its result. Messages may keep the origins that
// the history before it has.
func checkFrame(nodes []protocol.NodeBody, past []protocol.Message) error {
	var msgs []*protocol.Message
	plain := slices.Clone(nodes)
	for i, n := range nodes {
		if n.Message != nil {
			msgs = append(msgs, n.Message)
			plain[i].Message = withoutCalls(n.Message)
			if slices.ContainsFunc(past, func(m protocol.Message) bool { return m.Origin != nil && reflect.DeepEqual(m.Origin, n.Message.Origin) }) {
				plain[i].Message.Origin = nil
			}
		}
	}
	return cmp.Or(param.CheckAppend(plain), graph.ResumeSafe(msgs))
}

// withoutCalls is a message with a text in place of each call, each result and each code cell.
func withoutCalls(m *protocol.Message) *protocol.Message {
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
