// Package daemonevents tells watchers what changes in the daemon as a whole: sessions, triggers, plugins, the store.
package daemonevents

import (
	"context"
	"slices"
	"sync"
	"time"

	"lashd/engine/tip"
	"lashd/rpc/protocol"
)

// Publisher publishes events of the daemon to its watchers. Of each subject a watcher gets the newest event only, so that a slow one needs
// no more memory than there are subjects. It is safe for concurrent use, and its zero value is ready.
type Publisher struct {
	tip      tip.Tip
	mu       sync.Mutex
	watchers map[*Watcher]struct{}
}

// Watch returns a watcher of what changes from now on.
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

// Watched reports whether anybody watches.
func (p *Publisher) Watched() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.watchers) > 0
}

// Publish publishes an event, in place of one about the same subject that a watcher has not read.
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

// Session publishes a session that is new or has changed.
func (p *Publisher) Session(s protocol.Session) {
	p.Publish(string(s.ID), protocol.ServerEvent{Type: protocol.ServerSessionChanged, SessionID: s.ID, Session: &s})
}

// SessionDeleted publishes that a session is deleted.
func (p *Publisher) SessionDeleted(id protocol.SessionID) {
	p.Publish(string(id), protocol.ServerEvent{Type: protocol.ServerSessionDeleted, SessionID: id})
}

// Watcher reads events of the daemon. One goroutine uses it; Close ends it.
type Watcher struct {
	from  *Publisher
	ready []subject // in order of their change; guarded by the publisher
}

// Close ends the watch.
func (w *Watcher) Close() {
	w.from.mu.Lock()
	defer w.from.mu.Unlock()
	delete(w.from.watchers, w)
}

// Next waits for events, or until ctx is done.
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

// subject is what an event is about; a newer event takes the place of an older one.
type subject struct {
	name  string
	event protocol.ServerEvent
}
