package engine

import (
	"context"
	"maps"
	"slices"
	"sync"

	"lashd/rpc/protocol"
)

// maxWorkers is the number of tasks that work at once in the daemon, subagents excluded. Idle tasks
// do not count. The number is that of upstream.
const maxWorkers = 64

// maxChildren is the number of subagents of one session that work at once. They have slots of their
// own, apart from maxWorkers: a subagent that waits for its own subagents must not keep a slot that
// these need.
const maxChildren = 8

// workers tracks the attempts at tasks that work or wait for a slot, and the slots. A slot is taken
// by sending to its channel and given back by receiving from it, so a full channel means that all
// slots are taken.
type workers struct {
	mu       sync.Mutex
	all      map[workKey]*work // by the session that owns the task now
	slots    chan struct{}
	children map[protocol.SessionID]chan struct{} // slots of a session's subagents; created when needed
}

// workKey identifies a task: task ids are unique only within a session.
type workKey struct {
	session protocol.SessionID
	task    protocol.TaskID
}

// newWorkers returns the workers of a new engine, with no attempts and all slots free.
func newWorkers() workers {
	return workers{all: map[workKey]*work{}, slots: make(chan struct{}, maxWorkers), children: map[protocol.SessionID]chan struct{}{}}
}

// slotsFor returns the slots of which a task needs one: those of its session's subagents, or those
// of all other tasks.
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

// of returns the attempt at a task, or nil if none works or waits in this daemon.
func (ws *workers) of(session protocol.SessionID, id protocol.TaskID) *work {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.all[workKey{session, id}]
}

// list returns the attempts at tasks of a session, or of all sessions for an empty id, in no order.
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

// add registers an attempt. Go calls it before the attempt's goroutine starts.
func (ws *workers) add(w *work) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.all[workKey{w.session, w.id}] = w
}

// owner returns the session that owns the task now; a transfer changes it.
func (w *work) owner() protocol.SessionID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session
}

// move hands the attempt to another session after the task's transfer is stored. The attempt itself
// keeps running.
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

// releaseSlot unregisters an attempt that has ended. It also drops the slots of a session's
// subagents if no other attempt needs them. The caller has released its own slot before.
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

// slotsInUse reports whether an attempt refers to the slots. The caller holds ws.mu.
func (ws *workers) slotsInUse(places chan struct{}) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(ws.all)), func(w *work) bool { return w.slots == places })
}

// Claim implements live.Attempt: it takes a slot if one is free and never blocks. Slotless work
// always succeeds.
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

// markClaimed records that the work holds a slot, so that Release gives it back once.
func (w *work) markClaimed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.claimed = true
}

// awaitSlot takes a slot unless the work has one or needs none, and waits for it. It fails if ctx
// or the work's context is done.
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

// becomeIdle marks the task as waiting for something and gives its slot to other tasks. The worker
// calls it before it waits.
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

// resume waits for a slot and marks an idle task as running again. It does nothing if the task is
// not idle.
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

// withStateChange runs f, one at a time for each task, so that becoming idle and resuming cannot
// overlap.
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

// Release implements live.Attempt: it gives the slot back. It may be called more than once.
func (w *work) Release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.claimed {
		w.claimed = false
		<-w.slots
	}
}

// queued reports whether the task waits for a slot.
func (w *work) queued() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.claimed && !w.slotless && w.task.State != protocol.TaskIdle
}
