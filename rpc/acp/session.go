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

// ref is a session of the daemon by its id, on both connections.
type ref struct {
	*agent
	id   protocol.SessionID
	work *sync.WaitGroup // what is under way beside the session's goroutine, and ends before it
}

// session is one of the daemon's as an editor follows it. Its goroutine, follow, reads its events, sends what the editor is shown of
// them in their order, and owns the fields. Its parts have locks of their own.
type session struct {
	ref
	link  *link
	news  *client.Inbox
	seen  protocol.Seq // of the newest durable event that was handled
	known protocol.Seq // of the newest event when the session was attached: those before tell the past
	epoch int64        // in which it was seen
	view  *view
	open  *protocol.SessionAttachResult // how the session was when it was attached again, to be shown after the events up to then; or nil

	end  context.CancelFunc // ends follow, and what the session asks of the editor
	done chan struct{}      // closed when follow has ended

	prompts   prompts
	questions questions
	overlay   overlay
	config    configuration
	calls     editorCalls
}

func (a *agent) prepare(id protocol.SessionID, cwd string, b brought) *session {
	r, v, done := ref{a, id, &sync.WaitGroup{}}, newView(cwd), make(chan struct{})
	s := &session{
		ref: r, view: v, done: done,
		prompts: prompts{ref: r, done: done, wanted: make(chan struct{}, 1), relinked: make(chan struct{})},
		overlay: overlay{ref: r, brought: b, kinds: v.kinds},
		config:  configuration{ref: r},
		calls: editorCalls{ref: r, view: v, cwd: cwd,
			running: map[sdk.ToolCallId]context.CancelFunc{}, terminals: map[sdk.ToolCallId]string{}},
	}
	s.questions = questions{ref: r, view: v, prompts: &s.prompts, asked: map[protocol.DecisionID]context.CancelFunc{}}
	return s
}

// on has the session's events come over a connection.
func (s *session) on(l *link) {
	s.link, s.news = l, l.inbox(s.id)
}

// begin makes the session one of the connection's, as it was first seen. Its goroutine starts once the editor has the answer to r, so that it knows
// the session which it hears of.
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

// present shows what is under way in a session that was attached, and what else it has.
func (s *session) present(ctx context.Context, first *protocol.SessionAttachResult) {
	s.view.awaits(first.Decisions)
	for i := range first.OpenItems {
		s.send(ctx, s.view.started(&first.OpenItems[i])...)
	}
	for i := range first.Decisions {
		s.questions.ask(ctx, &first.Decisions[i])
	}
	s.greet(ctx, s.link.Call)
}

// follow handles events until ctx is done or the session is gone.
func (s *session) follow(ctx context.Context) {
	for {
		s.read(ctx)
		if ctx.Err() != nil {
			return
		}
		if err := s.again(ctx); err != nil {
			s.abandon(err)
			return
		}
	}
}

// read handles what comes until the connection has ended, or more has come than was held for the editor.
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

// again goes on where the last event was, on a new connection. While nobody waits for anything, no daemon is started for it.
func (s *session) again(ctx context.Context) error {
	s.prompts.attached(nil)
	for tries := 0; ctx.Err() == nil; tries++ {
		r, err := s.reattach(ctx)
		if err == nil {
			s.caughtUp(ctx, r)
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
		case <-time.After(stopPatrol):
		case <-s.prompts.wanted:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}

func (s *session) reattach(ctx context.Context) (*protocol.SessionAttachResult, error) {
	l, err := s.daemon.link(ctx, s.busy())
	if err != nil {
		return nil, err
	}
	if l == s.link {
		s.unfollow() // what is still to come of that must not be taken for what comes next
	} else if err := s.overlay.bring(ctx, l.Call); err != nil {
		return nil, err
	}
	s.on(l)
	p := protocol.SessionAttachParams{SessionID: s.id, AfterSeq: &s.seen, Epoch: s.epoch}
	var r protocol.SessionAttachResult
	return &r, l.Call(ctx, "session/attach", p, &r)
}

// caughtUp takes in how the session is by now; the events that lead there follow, unless there is a gap.
func (s *session) caughtUp(ctx context.Context, r *protocol.SessionAttachResult) {
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

// reopen shows what was under way when the session was attached again, once everything before that was shown.
func (s *session) reopen(ctx context.Context) {
	r := s.open
	if r == nil || s.seen < r.Seq {
		return
	}
	s.open = nil
	s.view.awaits(r.Decisions)
	for i := range r.OpenItems {
		s.send(ctx, s.view.started(&r.OpenItems[i])...)
	}
	s.questions.reconcile(ctx, r.Decisions)
}

// handle shows what happened. A durable event that was seen is not handled twice. At one of which it is not known whose it is it
// stops and returns false: that one and all that follow come again, once the session is attached again.
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

func (s *session) event(ctx context.Context, ev *protocol.Event) {
	switch ev.Type {
	case protocol.EventTurnAccepted, protocol.EventInputAccepted:
		if !s.prompts.entered(ev) && ev.Type == protocol.EventTurnAccepted {
			s.view.accepted(ev)
		}
	case protocol.EventItemStarted:
		if ev.Item.Kind == protocol.ItemToolCall {
			s.askedFirst(ctx)
		}
	case protocol.EventItemCompleted:
		if s.prompts.own(ev.Item) {
			return
		}
		s.calls.returned(ev.Item)
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
	case protocol.EventToolRequested:
		s.calls.requested(ctx, ev)
		return
	}
	s.send(ctx, s.view.event(ev)...)
	if ev.Type == protocol.EventTurnCompleted {
		s.prompts.settle(ev)
	}
}

// busy tells whether somebody waits for the daemon.
func (s *session) busy() bool {
	return s.prompts.waiting() || s.questions.waiting()
}

// abandon ends what waits for a session that is no more.
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

// stop ends following, and waits for that. The daemon says no more of the session then.
func (s *session) stop() {
	s.end()
	<-s.done
	s.unfollow()
}
