package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"lashd/engine/clientserver"
	"lashd/engine/feed"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// session is the in-memory handle of one session. It lives from the first use of the session until
// its actor returns, and it outlives the state: when memory and store may differ, the actor drops
// the state and loads a new one into the same handle, so subscribers keep their feed.
//
// Only the actor goroutine (act) touches the state. Everything else sends functions through mail,
// usually with do, onState or onTurnState. The fields below are either fixed at creation, atomic,
// guarded by turnMu, or used by the actor alone.
type session struct {
	eng *Engine
	id  protocol.SessionID
	// key is the row of the session in the store. The first load sets it before the actor runs a
	// function.
	key int64
	// feed sends events to subscribers. It stays open when the state is loaded again.
	feed *feed.Feed
	// clientServers has the MCP servers that a client added. They also
	// survive a reload. The holder of the plugin lock replaces them, on the actor.
	clientServers clientserver.Slot
	// mail is unbuffered: a completed send means that the actor has the function and will run it.
	mail chan func(*state)
	// closed is closed when the actor has returned and the handle is out of Engine.sessions.
	closed chan struct{}
	// live is the state that the actor serves; nil while it loads one or after it stopped.
	live atomic.Pointer[state]
	// newestRow is the session as of its newest commit, for readers outside the actor.
	newestRow atomic.Pointer[protocol.Session]
	// steered reports whether inputs wait for the next checkpoint of the running turn.
	steered atomic.Bool
	// processed counts the functions that the actor has run.
	processed int
	// err is why the session could not be loaded, or that it was deleted. Read it only after closed
	// is closed.
	err error

	// turnMu guards the fields below, which other goroutines read without the actor.
	turnMu sync.Mutex
	// turn is the running turn, for callers that must not wait for the actor.
	turn *run
	// activity is the session state that clients see; empty if it is not known yet.
	activity protocol.SessionState
	// resuming is closed when the interrupted turn runs again, or when it is known that it will
	// not. It is nil when no turn was interrupted.
	resuming chan struct{}
}

// answer is the result of a function that ran on another goroutine.
type answer[T any] struct {
	v   T
	err error
}

// do runs f on the actor of a session and returns its result. It loads the session if it is not in
// memory.
//
// f must be short: it commits and starts work, but never waits for work, because it blocks every
// other request to the session. ctx ends the wait for the actor. Once the actor has taken f, do
// waits for it, and f gets the context of the state instead of ctx.
func do[T any](ctx context.Context, e *Engine, id protocol.SessionID, f func(context.Context, *state) (T, error)) (T, error) {
	var zero T
	for {
		s, err := e.lookup(ctx, id)
		if err != nil {
			return zero, err
		}
		done := make(chan answer[T], 1)
		select {
		case s.mail <- func(st *state) { done <- runRecovered(st, f) }:
		case <-s.closed:
			if s.err != nil {
				return zero, s.err
			}
			continue // the session was unloaded just now: load it again
		case <-ctx.Done():
			return zero, context.Cause(ctx)
		}
		a := <-done
		return a.v, a.err
	}
}

// ready receives from a channel without blocking. ok is false if no value is available.
func ready[T any](from <-chan T) (v T, ok bool) {
	select {
	case v = <-from:
		return v, true
	default:
		return v, false
	}
}

// onTurnState is do for the goroutine of a turn: f runs only on the state that owns the turn. If
// that state was dropped it returns errStopped, and the next load resumes the turn from its
// journal. If f breaks the state, the turn is halted before onTurnState returns.
func onTurnState[T any](t *turnStore, f func(context.Context, *state) (T, error)) (T, error) {
	done := make(chan answer[T], 1)
	select {
	case t.mail <- func(st *state) {
		if st != t.owner {
			done <- answer[T]{err: errStopped}
			return
		}
		a := runRecovered(st, f)
		if st.broken != nil {
			t.halt(st.leaving()) // before the turn learns what has failed
		}
		done <- a
	}:
	case <-t.owner.closed:
		return answer[T]{}.v, errStopped
	}
	a := <-done
	return a.v, a.err
}

// onState is do for work that belongs to one particular state of a session. It fails with
// ErrReloaded or with the state's refusal if that state was dropped.
func onState[T any](owner *state, f func(context.Context, *state) (T, error)) (v T, err error) {
	done := make(chan answer[T], 1)
	select {
	case owner.mail <- func(st *state) {
		if st != owner {
			done <- answer[T]{err: ErrReloaded}
			return
		}
		done <- runRecovered(st, f)
	}:
		a := <-done
		return a.v, a.err
	case <-owner.closed:
		return v, owner.refusal()
	}
}

// runRecovered runs f on the actor, unless the state is being dropped. A panic in f leaves the
// state in an unknown condition, so runRecovered marks it broken and the actor loads the session
// again.
func runRecovered[T any](st *state, f func(context.Context, *state) (T, error)) (a answer[T]) {
	if st.refusalErr != nil {
		return answer[T]{err: st.refusalErr}
	}
	defer func() {
		if p := recover(); p != nil {
			a.err = st.eng.group.Recovered("session", st.id, p)
			st.broken = a.err
		}
	}()
	a.v, a.err = f(st.ctx, st)
	return a
}

// guard runs a step of the actor itself with the same protection against panics as a request.
func (st *state) guard(f func()) {
	runRecovered(st, func(context.Context, *state) (struct{}, error) { f(); return struct{}{}, nil })
}

// lookup returns the handle of a session, and starts its actor if there is none. It waits until Run
// serves. The session need not exist: a missing one shows when the actor loads it. After Run has
// stopped the actors it returns ErrShuttingDown.
func (e *Engine) lookup(ctx context.Context, id protocol.SessionID) (*session, error) {
	select {
	case <-e.running:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		return nil, ErrShuttingDown
	}
	if s, ok := e.sessions[id]; ok {
		return s, nil
	}
	s := &session{eng: e, id: id, feed: feed.New(id), mail: make(chan func(*state)), closed: make(chan struct{})}
	e.sessions[id] = s
	actors := e.ctx
	e.group.GoActor(func() { s.act(actors) })
	return s, nil
}

// A session that keeps breaking is reloaded after reloadDelay, then after twice that, up to
// maxReloadDelay, so that it does not use up a processor. A state that lived longer than
// maxReloadDelay resets the delay.
const (
	reloadDelay    = 100 * time.Millisecond
	maxReloadDelay = 10 * time.Second
)

// nextReload returns the delay before the next reload, after a state that was loaded with delay and
// lived for the given time.
func nextReload(delay, lived time.Duration) time.Duration {
	if lived > maxReloadDelay {
		return reloadDelay
	}
	return min(2*delay, maxReloadDelay)
}

// act is the actor goroutine. It loads the session and serves it until it has been unused for
// Config.Idle, the engine stops, or the session is deleted. If memory and store may differ, it
// drops the state and loads the session again, while subscribers stay attached to the feed.
func (s *session) act(ctx context.Context) {
	defer s.leave()
	delay := reloadDelay
	for again := false; ; again = true {
		if again && pause(ctx, delay) != nil {
			s.feed.Close(ErrShuttingDown)
			return
		}
		began := time.Now()
		st, err := s.load(ctx, again)
		if err != nil {
			s.err = err
			s.feed.Close(err)
			return
		}
		s.serve(ctx, st)
		st.unload()
		switch {
		case errors.Is(st.broken, persistence.ErrDeleted):
			s.err = st.broken
			s.feed.Close(s.err)
			return
		case st.broken == nil, errors.Is(st.broken, errClosed), ctx.Err() != nil:
			s.feed.Close(ErrShuttingDown) // an idle session has no subscribers
			return
		}
		s.eng.Log.Warn("reloading the session because its state may differ from the store", "session", s.id, "error", st.broken)
		if again {
			delay = nextReload(delay, time.Since(began))
		}
	}
}

// serve runs the functions sent to the actor until the state is broken, unused or stopped. After
// each one it publishes the visible state and starts a turn if a wake is due.
func (s *session) serve(ctx context.Context, st *state) {
	s.live.Store(st)
	st.guard(st.wakeUp)
	if st.turns.running() == nil {
		s.resumed() // there is no turn that would call it
	}
	idle := time.NewTimer(s.eng.Idle)
	defer idle.Stop()
	for st.broken == nil {
		s.show(st)
		select {
		case f := <-s.mail:
			s.processed++
			f(st)
			idle.Reset(s.eng.Idle)
		case <-st.alarm.Rings():
			st.guard(st.onAlarm)
		case <-idle.C:
			if st.endUnused() {
				return
			}
			idle.Reset(s.eng.Idle)
		case <-ctx.Done():
			return
		}
		st.guard(st.turns.startWoken)
	}
}

// leave removes the handle from the engine and disconnects the client's MCP servers. The next use
// of the session creates a new handle.
func (s *session) leave() {
	s.clientServers.Load().Disconnect()
	s.eng.mu.Lock()
	if s.eng.sessions[s.id] == s {
		delete(s.eng.sessions, s.id)
	}
	s.eng.mu.Unlock()
	close(s.closed)
}

// show publishes what the session does now, for readers that must not wait for the actor.
func (s *session) show(st *state) {
	shown := st.public()
	s.turnMu.Lock()
	s.turn, s.activity = st.turns.running(), shown.State
	s.turnMu.Unlock()
	st.published.publish(shown)
}

// haltTurn stops the goroutine of the running turn without ending the turn, so that it can be
// resumed. Any goroutine may call it.
func (s *session) haltTurn(cause error) {
	s.turnMu.Lock()
	defer s.turnMu.Unlock()
	if s.turn != nil {
		s.turn.halt(cause)
	}
}
