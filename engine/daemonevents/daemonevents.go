// Package daemonevents notifies watchers of changes in the daemon as a whole: sessions, triggers, plugins and the store. The
// events are not durable; a client that connects reads the current state first.
package daemonevents

import (
	"context"
	"slices"
	"sync"
	"time"

	"lashd/engine/tip"
	"lashd/rpc/protocol"
)

// Publisher sends events of the daemon to its watchers. A watcher that has not read an event gets only the newest one
// per subject, so the memory for a slow watcher is limited by the number of subjects. Safe for concurrent use; the zero
// value is ready.
type Publisher struct {
	tip      tip.Tip
	mu       sync.Mutex // guards watchers and the ready list of each
	watchers map[*Watcher]struct{}
}

// Watch returns a watcher of events from now on. The caller must call Close.
func (p *Publisher) Watch() *Watcher {
	w := &Watcher{from: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watchers == nil {
		p.watchers = map[*Watcher]struct{}{}
	}
	p.watchers[w] = struct{}{}
	return w
}

// Watched reports whether there are watchers. Publishers use it to skip building an event.
func (p *Publisher) Watched() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.watchers) > 0
}

// Publish sends an event and sets its time. about names the subject: an unread event about the same subject is
// replaced, and the new one moves to the end. It never blocks and may be called without watchers.
func (p *Publisher) Publish(about string, event protocol.ServerEvent) {
	event.AtMs = time.Now().UnixMilli()
	p.mu.Lock()
	for w := range p.watchers {
		w.ready = slices.DeleteFunc(w.ready, func(s subject) bool { return s.name == about })
		w.ready = append(w.ready, subject{about, event})
	}
	p.mu.Unlock()
	p.tip.Notify()
}

// Session publishes a new or changed session.
func (p *Publisher) Session(s protocol.Session) {
	p.Publish(string(s.ID), protocol.ServerEvent{Type: protocol.ServerSessionChanged, SessionID: s.ID, Session: &s})
}

// SessionDeleted publishes that a session was deleted. It replaces unread changes of the session.
func (p *Publisher) SessionDeleted(id protocol.SessionID) {
	p.Publish(string(id), protocol.ServerEvent{Type: protocol.ServerSessionDeleted, SessionID: id})
}

// Watcher receives events of the daemon. Use it from one goroutine.
type Watcher struct {
	from  *Publisher
	ready []subject // unread events, oldest change first; guarded by from.mu
}

// Close unsubscribes. Events that were not read are dropped.
func (w *Watcher) Close() {
	w.from.mu.Lock()
	defer w.from.mu.Unlock()
	delete(w.from.watchers, w)
}

// Next waits until there are events and returns all of them. If ctx is done first, it returns the cause of ctx.
func (w *Watcher) Next(ctx context.Context) ([]protocol.ServerEvent, error) {
	for {
		again := w.from.tip.Next()
		if events := w.take(); len(events) > 0 {
			return events, nil
		}
		select {
		case <-again:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// take removes and returns the unread events.
func (w *Watcher) take() []protocol.ServerEvent {
	w.from.mu.Lock()
	defer w.from.mu.Unlock()
	events := make([]protocol.ServerEvent, 0, len(w.ready))
	for _, s := range w.ready {
		events = append(events, s.event)
	}
	w.ready = nil
	return events
}

// subject is an unread event with the subject that a newer event replaces it by.
type subject struct {
	name  string
	event protocol.ServerEvent
}
