package engine

import (
	"context"
	"sync"

	"lashd/rpc/protocol"
)

// maxWorkers is how many tasks work at once; those that are idle do not count. The number is upstream's.
const maxWorkers = 64

// maxChildren is how many subagents of one session work at once. They have no other places than these: a subagent that waits for
// subagents of its own keeps only what those do not need.
const maxChildren = 8

// workers are those that are at work, or wait for a place.
type workers struct {
	mu       sync.Mutex
	all      map[workKey]*work // by the session that owns the task now
	slots    chan struct{}
	children map[protocol.SessionID]chan struct{} // slots of a session's subagents; created when needed
}

type workKey struct {
	session protocol.SessionID
	task    protocol.TaskID
}

func newWorkers() workers {
	return workers{all: map[workKey]*work{}, slots: make(chan struct{}, maxWorkers), children: map[protocol.SessionID]chan struct{}{}}
}

// placesFor are the places of which a task needs one.
func (ws *workers) slotsFor(session protocol.SessionID, spec *protocol.TaskSpec) chan struct{} {
	if spec.Subagent == nil {
		return ws.slots
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.children[session] == nil {
		ws.children[session] = make(chan struct{}, maxChildren)
	}
	return ws.children[session]
}

func (ws *workers) of(session protocol.SessionID, id protocol.TaskID) *work {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.all[workKey{session, id}]
}

// list are the workers of a session; empty: of all.
func (ws *workers) list(session protocol.SessionID) (found []*work) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for k, w := range ws.all {
		if session == "" || k.session == session {
			found = append(found, w)
		}
	}
	return found
}

func (ws *workers) add(w *work) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.all[workKey{w.session, w.id}] = w
}

func (w *work) owner() protocol.SessionID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session
}

// move gives the work to another session, with its task.
func (w *work) move(to protocol.SessionID) {
	ws := &w.eng.workers
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if ws.all[workKey{w.session, w.id}] == w {
		delete(ws.all, workKey{w.session, w.id})
		ws.all[workKey{to, w.id}] = w
	}
	w.session = to
}

func (w *work) releaseSlot() {
	ws := &w.eng.workers
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if ws.all[workKey{w.session, w.id}] == w {
		delete(ws.all, workKey{w.session, w.id})
	}
	for session, places := range ws.children {
		if places == w.slots && len(places) == 0 && !ws.slotsInUse(places) {
			delete(ws.children, session)
		}
	}
}

func (ws *workers) slotsInUse(places chan struct{}) bool {
	for _, w := range ws.all {
		if w.slots == places {
			return true
		}
	}
	return false
}

// Claim implements live.Attempt.
func (w *work) Claim() bool {
	if w.slotless {
		return true
	}
	select {
	case w.slots <- struct{}{}:
		w.markClaimed()
		return true
	default:
		return false
	}
}

// took notes that the work has a place.
func (w *work) markClaimed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.claimed = true
}

// await waits for a place.
func (w *work) awaitSlot(ctx context.Context) error {
	w.mu.Lock()
	claimed := w.claimed || w.slotless
	w.mu.Unlock()
	if claimed {
		return ctx.Err()
	}
	select {
	case w.slots <- struct{}{}:
		w.markClaimed()
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.ctx.Done():
		return context.Cause(w.ctx)
	}
}

// rest has the task wait for something: others may have its place meanwhile.
func (w *work) becomeIdle(ctx context.Context, reason string) error {
	return w.withStateChange(ctx, func() error {
		if err := w.addEvent(protocol.TaskEvent{Kind: protocol.TaskWasWaiting, Reason: reason}); err != nil {
			return err
		}
		if w.now().State == protocol.TaskIdle {
			w.Release()
		}
		return nil
	})
}

// resume has a task that waits go on, as soon as there is a place for it.
func (w *work) resume(ctx context.Context) error {
	return w.withStateChange(ctx, func() error {
		if w.now().State != protocol.TaskIdle {
			return nil
		}
		if err := w.awaitSlot(ctx); err != nil {
			return err
		}
		return w.addEvent(protocol.TaskEvent{Kind: protocol.TaskWasResumed})
	})
}

// shifting lets one change of that kind happen at a time.
func (w *work) withStateChange(ctx context.Context, f func() error) error {
	select {
	case w.stateChange <- struct{}{}:
		defer func() { <-w.stateChange }()
		return f()
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.ctx.Done():
		return context.Cause(w.ctx)
	}
}

// Release implements live.Attempt.
func (w *work) Release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.claimed {
		w.claimed = false
		<-w.slots
	}
}

// queued tells whether it waits for a place.
func (w *work) queued() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.claimed && !w.slotless && w.task.State != protocol.TaskIdle
}
