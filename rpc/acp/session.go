package acp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/client"
	"lashd/rpc/protocol"
)

// ref names one of the daemon's sessions and gives its parts access to both
// connections.
type ref struct {
	*agent
	id   protocol.SessionID
	work *sync.WaitGroup // helper goroutines of the session; they end before done is closed
}

// session is a session that an editor has open. Its goroutine, follow, reads the
// session's events, sends updates to the editor in the same order, and owns the
// fields above end. The parts below done have their own locks and are also used by
// handlers of the editor's requests.
//
// The session survives a restart of the daemon: follow attaches again after the
// last event that was handled. So every durable event is handled once. If the
// daemon no longer has the events, a notice asks the user to load the session again.
type session struct {
	ref
	link  *link         // connection on which it is attached
	news  *client.Inbox // of that connection
	seen  protocol.Seq  // newest durable event that was handled
	known protocol.Seq  // newest durable event at the time of attaching; decisions opened before it may be resolved
	epoch int64         // epoch of seen
	view  *view
	open  *protocol.SessionAttachResult // state at the last reattachment, shown once seen has reached it; nil afterwards

	end  context.CancelFunc // ends follow and withdraws open questions in the editor
	done chan struct{}      // closed when follow has ended

	prompts   prompts
	questions questions
	retries   retries
	overlay   overlay
	config    configuration
	calls     editorCalls
	commands  commandList
}

// prepare creates a session that is not attached and not yet known to the agent.
// cwd is the workspace in the form that the daemon uses.
func (a *agent) prepare(id protocol.SessionID, cwd string, b additions) *session {
	r, v, done := ref{a, id, &sync.WaitGroup{}}, newView(cwd), make(chan struct{})
	s := &session{
		ref: r, view: v, done: done,
		prompts:  prompts{ref: r, done: done, wanted: make(chan struct{}, 1), relinked: make(chan struct{})},
		overlay:  overlay{ref: r, additions: b, kinds: v.kinds},
		config:   configuration{ref: r},
		commands: commandList{ref: r},
		calls: editorCalls{ref: r, view: v, cwd: cwd,
			running: map[sdk.ToolCallId]context.CancelFunc{}, terminals: map[sdk.ToolCallId]string{}},
	}
	s.config.overlay, v.image = &s.overlay, r.image
	s.retries = retries{ref: r, view: v, offered: map[string]bool{}}
	s.questions = questions{ref: r, view: v, prompts: &s.prompts, asked: map[protocol.DecisionID]context.CancelFunc{}}
	return s
}

// on switches the session to a connection. It must run before session/attach, so
// that the inbox exists when events arrive.
func (s *session) on(l *link) {
	s.link, s.news = l, l.inbox(s.id)
}

// begin registers a session that has been attached and starts its goroutine. The
// goroutine sends nothing until the answer to r has been written, because the
// editor knows the session only from then on. first is the state to show; requests
// that are not answered in the end leave the goroutine waiting until the session
// is stopped.
func (s *session) begin(r *request, first *protocol.SessionAttachResult) {
	ctx, end := context.WithCancel(s.ctx)
	s.end = end
	s.prompts.attached(s.link)
	s.agent.mu.Lock()
	s.sessions[s.id] = s
	s.agent.mu.Unlock()
	known := r.answered()
	s.wg.Go(func() {
		defer close(s.done)
		defer s.work.Wait()
		defer end()
		select {
		case <-known:
			s.present(ctx, first)
			s.follow(ctx)
		case <-ctx.Done():
		}
	})
}

// present shows running items and open questions of a session that was just
// attached, and sends the slash commands.
func (s *session) present(ctx context.Context, first *protocol.SessionAttachResult) {
	s.view.setPendingApprovals(first.Decisions)
	for i := range first.OpenItems {
		s.send(ctx, s.view.started(&first.OpenItems[i])...)
	}
	for i := range first.Decisions {
		s.questions.ask(ctx, &first.Decisions[i])
	}
	s.commands.refresh(ctx, s.link.Call)
}

// follow handles events until ctx is done or the session no longer exists, and
// reconnects as often as needed.
func (s *session) follow(ctx context.Context) {
	for {
		s.read(ctx)
		if ctx.Err() != nil {
			return
		}
		if err := s.reconnect(ctx); err != nil {
			s.abandon(err)
			return
		}
	}
}

// read handles events until the connection ends, the inbox has overflowed, or an
// event cannot be matched yet. In each of these cases the session must be attached
// again.
func (s *session) read(ctx context.Context) {
	for {
		select {
		case <-s.news.More():
			lost := s.news.Lost()
			if !s.handle(ctx, s.news.Take()) || lost {
				return
			}
		case <-s.link.Gone():
			s.handle(ctx, s.news.Take())
			return
		case <-ctx.Done():
			return
		}
	}
}

// reconnect attaches the session again, after the last event that was handled. It
// retries every reconnectInterval, or at once when a prompt arrives. A daemon is
// started only if the editor waits for something. After maxLosses failures,
// waiting prompts fail, but it goes on trying. It returns an error only if the
// session is gone or ctx is done.
func (s *session) reconnect(ctx context.Context) error {
	s.prompts.attached(nil)
	for tries := 0; ctx.Err() == nil; tries++ {
		r, err := s.reattach(ctx)
		if err == nil {
			s.reattached(ctx, r)
			s.prompts.attached(s.link)
			return nil
		}
		if kind := kindOf(err); kind == protocol.KindSessionNotFound || kind == protocol.KindSessionDeleted {
			return err
		}
		if s.busy() && tries == maxLosses {
			s.prompts.abandon(err)
		}
		s.Log.Warn("waiting for the daemon to reconnect", "session", s.id, "error", err)
		select {
		case <-time.After(reconnectInterval):
		case <-s.prompts.wanted:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}

// reattach makes one attempt to attach. On a new connection it first applies the
// editor's overlay again.
func (s *session) reattach(ctx context.Context) (*protocol.SessionAttachResult, error) {
	l, err := s.daemon.link(ctx, s.busy())
	if err != nil {
		return nil, err
	}
	if l == s.link {
		s.unfollow() // late events of the old subscription must not mix with the new ones
	} else if err := s.overlay.apply(ctx, l.Call); err != nil {
		return nil, err
	}
	s.on(l)
	p := protocol.SessionAttachParams{SessionID: s.id, AfterSeq: &s.seen, Epoch: s.epoch}
	var r protocol.SessionAttachResult
	return &r, l.Call(ctx, "session/attach", p, &r)
}

// reattached takes over the state after a reconnect. Missed events follow it and
// are handled as usual. If there is a gap instead, reattached resets the view,
// tells the user, and answers waiting prompts by asking for their turns.
func (s *session) reattached(ctx context.Context, r *protocol.SessionAttachResult) {
	s.known, s.epoch = r.Seq, s.link.epoch
	if r.Gap != nil {
		s.seen = r.Seq
		s.view.reset()
		s.send(ctx, thought("The history of this session has changed. Load the session again.\n")...)
		s.configured(ctx, r.Session.Config)
		s.prompts.recover(ctx)
	}
	s.open = r
	s.reopen(ctx)
	s.overlay.refresh(s.link.Call)
}

// reopen shows the items and questions that were open at the reattachment, once
// all events before it have been handled. Until then it does nothing.
func (s *session) reopen(ctx context.Context) {
	r := s.open
	if r == nil || s.seen < r.Seq {
		return
	}
	s.open = nil
	s.view.setPendingApprovals(r.Decisions)
	for i := range r.OpenItems {
		s.send(ctx, s.view.started(&r.OpenItems[i])...)
	}
	s.questions.reconcile(ctx, r.Decisions)
}

// handle handles events in order and skips durable ones that were handled before.
// It returns false at an event that cannot be matched to a prompt, because a
// prompt's answer was lost with the connection. This event and the later ones
// arrive again after the session is attached again.
func (s *session) handle(ctx context.Context, events []json.RawMessage) bool {
	for _, raw := range events {
		var ev protocol.Event
		if err := json.Unmarshal(raw, &ev); err != nil {
			s.Log.Warn("could not read an event of the daemon", "session", s.id, "error", err)
			continue
		}
		if ev.Seq != 0 && ev.Seq <= s.seen {
			continue
		}
		if ev.Seq != 0 && !s.prompts.stored(ctx, s.link) {
			return false
		}
		s.event(ctx, &ev)
		if ev.Seq != 0 {
			s.seen = ev.Seq
			s.reopen(ctx)
		}
	}
	return true
}

// event handles one event: it informs the part that it concerns and sends updates
// to the editor. Prompts are answered after the updates of their turn.
func (s *session) event(ctx context.Context, ev *protocol.Event) {
	switch ev.Type {
	case protocol.EventTurnAccepted, protocol.EventInputAccepted:
		if !s.prompts.recordTurn(ev) && ev.Type == protocol.EventTurnAccepted {
			s.view.accepted(ev)
		}
	case protocol.EventItemStarted:
		if ev.Item.Kind == protocol.ItemToolCall {
			s.loadPendingApprovals(ctx)
		}
	case protocol.EventItemCompleted:
		if s.prompts.own(ev.Item) {
			return
		}
		s.calls.itemCompleted(ev.Item)
	case protocol.EventDecisionOpened:
		if ev.Seq == 0 || ev.Seq > s.known {
			s.questions.ask(ctx, ev.Decision)
		}
		return
	case protocol.EventDecisionResolved:
		s.questions.withdraw(ev.Decision.ID)
		s.send(ctx, s.view.resolved(ev.Decision, s.id)...)
		return
	case protocol.EventSessionConfigured:
		s.changed(ctx, ev)
		return
	case protocol.EventToolsChanged:
		s.overlay.refresh(s.link.Call)
		s.work.Go(func() { s.commands.refresh(ctx, s.daemon.call) })
	case protocol.EventToolRequested:
		s.calls.requested(ctx, ev)
		return
	case protocol.EventUsageUpdated:
		ev.Total = s.spent(ctx, ev.Total)
	}
	s.send(ctx, s.view.event(ev)...)
	switch ev.Type {
	case protocol.EventItemCompleted:
		s.retries.completed(ctx, ev.Item)
	case protocol.EventTaskCompleted:
		s.retries.taskEnded(ctx, ev.Task)
		if ev.Task.Spec.Subagent != nil {
			s.send(ctx, s.view.cost(s.spent(ctx, nil))...)
		}
	case protocol.EventTurnCompleted:
		s.prompts.settle(ev)
		s.work.Go(func() { s.commands.refresh(ctx, s.daemon.call) })
	}
}

// spent returns what the session and its subagents have used in all. If the daemon does not answer, it is own.
func (s *session) spent(ctx context.Context, own *protocol.Usage) *protocol.Usage {
	var r protocol.UsageReadResult
	if err := s.link.Call(ctx, "usage/read", protocol.UsageReadParams{SessionID: s.id}, &r); err != nil {
		return own
	}
	return &r.Total
}

// busy reports whether a prompt or a question waits for the daemon.
func (s *session) busy() bool {
	return s.prompts.waiting() || s.questions.waiting()
}

// abandon answers waiting prompts with err and removes the session from the agent.
// It runs on the session's goroutine as its last step.
func (s *session) abandon(err error) {
	if !errors.Is(err, context.Canceled) {
		s.Log.Warn("stopped following the session", "session", s.id, "error", err)
	}
	s.prompts.abandon(err)
	s.agent.mu.Lock()
	defer s.agent.mu.Unlock()
	if s.sessions[s.id] == s {
		delete(s.sessions, s.id)
	}
}

// stop ends the session's goroutine, waits for it, and detaches. The daemon sends
// no events of the session after that. The caller must have removed the session
// from the agent.
func (s *session) stop() {
	s.end()
	<-s.done
	s.unfollow()
}
