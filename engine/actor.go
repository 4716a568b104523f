package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"lashd/rpc/protocol"
)

// session is the handle of a session in memory. Its state belongs to one goroutine, the actor; everybody else sends
// it functions.
type session struct {
	eng  *Engine
	id   protocol.SessionID
	key  int64             // in the store; set before ready is closed
	feed *feed             // likewise
	mail chan func(*state) // unbuffered: what was sent was received
	gone chan struct{}
	err  error // why it could not be loaded; read after gone is closed

	turnMu sync.Mutex
	turn   *run // the running turn, for those who do not want to wait for the actor
}

// do runs f on the actor of a session, loading it first if need be. f is short: it commits and starts work, it never
// waits for work. Once f runs, it runs to its end whatever happens to ctx.
func do[T any](ctx context.Context, e *Engine, id protocol.SessionID, f func(context.Context, *state) (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	var zero T
	for {
		s, err := e.lookup(ctx, id)
		if err != nil {
			return zero, err
		}
		done := make(chan answer, 1)
		select {
		case s.mail <- func(st *state) {
			v, err := f(st.ctx, st)
			done <- answer{v, err}
		}:
		case <-s.gone:
			if s.err != nil {
				return zero, s.err
			}
			continue // it left memory just now: load it again
		case <-ctx.Done():
			return zero, context.Cause(ctx)
		}
		select {
		case a := <-done:
			return a.v, a.err
		case <-ctx.Done():
			return zero, context.Cause(ctx)
		}
	}
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
	s := &session{eng: e, id: id, mail: make(chan func(*state)), gone: make(chan struct{})}
	e.sessions[id] = s
	actors := e.ctx
	e.actors.Go(func() { s.act(actors) })
	return s, nil
}

// act is the actor: it loads the session and serves it until nobody has used it for a while.
func (s *session) act(ctx context.Context) {
	defer s.leave()
	st, err := s.load(ctx)
	if err != nil {
		s.err = err
		return
	}
	defer st.unload()
	idle := time.NewTimer(s.eng.Idle)
	defer idle.Stop()
	for {
		select {
		case f := <-s.mail:
			f(st)
			if st.broken != nil {
				return
			}
			idle.Reset(s.eng.Idle)
		case <-idle.C:
			if st.unused() {
				return
			}
			idle.Reset(s.eng.Idle)
		case <-ctx.Done():
			return
		}
	}
}

func (s *session) leave() {
	s.eng.mu.Lock()
	if s.eng.sessions[s.id] == s {
		delete(s.eng.sessions, s.id)
	}
	s.eng.mu.Unlock()
	close(s.gone)
}

// stopTurn stops the running turn so that a later run of the daemon can go on with it.
func (s *session) stopTurn() {
	s.turnMu.Lock()
	defer s.turnMu.Unlock()
	if s.turn != nil {
		s.turn.cancel(errStopped)
	}
}

func (s *session) setTurn(r *run) {
	s.turnMu.Lock()
	s.turn = r
	s.turnMu.Unlock()
}

// draft is a node of the running turn that is not history yet.
func (s *session) draft(id protocol.NodeID) *protocol.Node {
	s.turnMu.Lock()
	r := s.turn
	s.turnMu.Unlock()
	if r == nil {
		return nil
	}
	return r.draft(id)
}

// errStopped is the cause of a turn's context when the daemon stops: the turn is left as it is, to be resumed.
var errStopped = errors.New("the daemon stops")
