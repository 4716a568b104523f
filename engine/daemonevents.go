package engine

import (
	"context"
	"slices"
	"sync"

	"lashd/engine/tip"
	"lashd/rpc/protocol"
)

// bulletin tells those who watch the whole daemon what changed. Of each subject a watcher gets the newest news only, so
// that a slow one needs no more memory than there are subjects.
type bulletin struct {
	tip      tip.Tip
	mu       sync.Mutex
	watchers map[*Watcher]struct{}
}

// Watcher reads news of the daemon. One goroutine uses it; Close ends it.
type Watcher struct {
	from  *bulletin
	ready []subject // in order of their change; guarded by the bulletin
}

// subject is what a piece of news is about; newer news take the place of older.
type subject struct {
	name  string
	event protocol.ServerEvent
}

// Watch follows what changes from now on.
func (e *Engine) Watch() *Watcher {
	b := &e.bulletin
	w := &Watcher{from: b}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watchers == nil {
		b.watchers = map[*Watcher]struct{}{}
	}
	b.watchers[w] = struct{}{}
	return w
}

// Close ends the watch.
func (w *Watcher) Close() {
	w.from.mu.Lock()
	defer w.from.mu.Unlock()
	delete(w.from.watchers, w)
}

// Next waits for news, or until ctx is done.
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

func (b *bulletin) watched() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.watchers) > 0
}

func (b *bulletin) post(about string, event protocol.ServerEvent) {
	event.AtMs = now()
	b.mu.Lock()
	for w := range b.watchers {
		w.ready = slices.DeleteFunc(w.ready, func(s subject) bool { return s.name == about })
		w.ready = append(w.ready, subject{about, event})
	}
	b.mu.Unlock()
	b.tip.Notify()
}

func (e *Engine) postSession(s protocol.Session) {
	e.bulletin.post(string(s.ID), protocol.ServerEvent{Type: protocol.ServerSessionChanged, SessionID: s.ID, Session: &s})
}

func (e *Engine) postDeleted(id protocol.SessionID) {
	e.bulletin.post(string(id), protocol.ServerEvent{Type: protocol.ServerSessionDeleted, SessionID: id})
}

func (e *Engine) postTrigger(g protocol.Trigger) {
	e.bulletin.post(string(g.ID), protocol.ServerEvent{Type: protocol.ServerTriggerChanged, Trigger: &g})
}

func (e *Engine) postTriggerGone(g protocol.Trigger) {
	e.bulletin.post(string(g.ID), protocol.ServerEvent{Type: protocol.ServerTriggerDeleted, Trigger: &g})
}

// watchStore posts the condition of the store whenever it changes, until ctx is done.
func (e *Engine) watchStore(ctx context.Context) {
	told := "ok" // as whoever came before was told, unless the condition has changed since
	for {
		again := e.store.Turned()
		if c := e.Condition(); c != told {
			told = c
			e.bulletin.post("store", protocol.ServerEvent{Type: protocol.ServerStoreChanged, Store: c})
		}
		select {
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// Condition is "ok", or what the store does not do at present, and why.
func (e *Engine) Condition() string {
	if err := e.store.Condition(); err != nil {
		return err.Error()
	}
	if lost := e.store.Rollback(); lost != nil {
		return lost.Error()
	}
	return "ok"
}

// outline is what of a session the daemon's watchers are told the changes of.
type outline struct {
	state    protocol.SessionState
	title    string
	archived bool
	turns    int64
	leaf     protocol.NodeID
}

// announce tells the daemon's watchers of a session that is not as they were told last.
func (st *state) announce() {
	o := outline{st.doing(), st.row.Title, st.row.Archived, st.row.TurnIndex, st.row.Head.Leaf}
	if st.lastPublished == (outline{}) || st.lastPublished == o {
		st.lastPublished = o
		return
	}
	st.lastPublished = o
	if st.eng.bulletin.watched() {
		st.eng.postSession(st.public())
	}
}
