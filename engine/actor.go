package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"lashd/engine/feed"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// session is the handle of a session in memory. Its state belongs to one goroutine, the actor; everybody else sends
// it functions.
type session struct {
	eng           *Engine
	id            protocol.SessionID
	key           int64             // in the store; set before the first function is taken
	feed          *feed.Feed        // it outlives a state that is loaded again
	clientServers *clientServers    // likewise; nil: there are none. Changed on the actor by who holds the lock of the plugins
	mail          chan func(*state) // unbuffered: what was sent was received
	closed        chan struct{}
	live          atomic.Pointer[state]            // what the actor serves; nil: nothing now
	newestRow     atomic.Pointer[protocol.Session] // as of the newest commit, for those beside the actor
	steered       atomic.Bool                      // inputs wait for a checkpoint of the running turn
	processed     int                              // functions, by the actor
	err           error                            // why it could not be loaded; read after gone is closed

	turnMu   sync.Mutex
	turn     *run                  // the running turn, for those who do not want to wait for the actor
	activity protocol.SessionState // likewise; empty: not known yet
	resuming chan struct{}         // closed once the turn that was under way goes on; nil: none was
}

type answer[T any] struct {
	v   T
	err error
}

// do runs f on the actor of a session, loading it first if need be. f is short: it commits and starts work, it never
// waits for work. ctx ends the wait for the actor, not that for f, which runs to its end.
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
			continue // it left memory just now: load it again
		case <-ctx.Done():
			return zero, context.Cause(ctx)
		}
		a := <-done
		return a.v, a.err
	}
}

// ready is what a channel has by now, if it has something.
func ready[T any](from <-chan T) (v T, ok bool) {
	select {
	case v = <-from:
		return v, true
	default:
		return v, false
	}
}

// onTurnState is do for a turn: f runs only on the state that the turn belongs to. Once that is given up, the answer is
// errStopped: whoever loads the session again goes on from the journal.
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

// onState is do for work that belongs to one state of a session. It fails if that was given up.
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

// runRecovered runs f, unless the state is being given up. After a panic nobody knows what the state is: it is loaded again.
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

func (st *state) guard(f func()) {
	runRecovered(st, func(context.Context, *state) (struct{}, error) { f(); return struct{}{}, nil })
}

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

// A session that breaks again and again is loaded after reloadDelay, then after twice that, and so on up to reloadMost: otherwise it
// would use up a processor. One that lived longer than reloadMost begins with reloadDelay.
const (
	reloadDelay    = 100 * time.Millisecond
	maxReloadDelay = 10 * time.Second
)

func nextReload(delay, lived time.Duration) time.Duration {
	if lived > maxReloadDelay {
		return reloadDelay
	}
	return min(2*delay, maxReloadDelay)
}

// act is the actor: it loads the session and serves it until nobody has used it for a while. When memory and store may
// differ it loads the session again, under those who watch it.
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
			s.feed.Close(ErrShuttingDown) // only then anybody still watches
			return
		}
		s.eng.Log.Warn("reloading the session because its state may differ from the store", "session", s.id, "error", st.broken)
		if again {
			delay = nextReload(delay, time.Since(began))
		}
	}
}

func (s *session) serve(ctx context.Context, st *state) {
	s.live.Store(st)
	st.guard(st.wakeUp)
	if st.turns.running() == nil {
		s.resumed() // no turn goes on that would say so
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
		case <-st.alarm.rings():
			st.guard(st.onAlarm)
		case <-idle.C:
			if st.unused() {
				return
			}
			idle.Reset(s.eng.Idle)
		case <-ctx.Done():
			return
		}
		st.guard(st.turns.startWoken)
	}
}

func (s *session) leave() {
	s.clientServers.disconnect()
	s.eng.mu.Lock()
	if s.eng.sessions[s.id] == s {
		delete(s.eng.sessions, s.id)
	}
	s.eng.mu.Unlock()
	close(s.closed)
}

// show says what the session does, for those who do not want to wait for the actor.
func (s *session) show(st *state) {
	shown := st.public()
	s.turnMu.Lock()
	s.turn, s.activity = st.turns.running(), shown.State
	s.turnMu.Unlock()
	st.published.publish(shown)
}

// haltTurn leaves the running turn as it is.
func (s *session) haltTurn(cause error) {
	s.turnMu.Lock()
	defer s.turnMu.Unlock()
	if s.turn != nil {
		s.turn.halt(cause)
	}
}
