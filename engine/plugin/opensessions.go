package plugin

import (
	"errors"
	"fmt"
	"sync"

	"lashd/rpc/protocol"
)

// ErrOpen means that a session with this id is already open.
var ErrOpen = errors.New("the session is already open")

// openSessions are the open sessions by id. Hosts made by With share one value.
type openSessions struct {
	mu       sync.Mutex // also guards Session.gone
	sessions map[protocol.SessionID]*Session
}

// add registers s. It fails with ErrOpen if the id is taken, and with errOpenAbandoned after forbid. A session without an id is
// ignored.
func (l *openSessions) add(s *Session) error {
	if s.session == "" {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.gone {
		return errOpenAbandoned
	}
	if l.sessions[s.session] != nil {
		return fmt.Errorf("session %s: %w", s.session, ErrOpen)
	}
	if l.sessions == nil {
		l.sessions = map[protocol.SessionID]*Session{}
	}
	l.sessions[s.session] = s
	return nil
}

// errOpenAbandoned means that Host.Open gave up on the session while it was being built.
var errOpenAbandoned = errors.New("opening the session was abandoned")

// forbid removes s and makes every later add of it fail.
func (l *openSessions) forbid(s *Session) {
	l.mu.Lock()
	s.gone = true
	l.mu.Unlock()
	l.remove(s)
}

// remove removes s. It leaves another session that has taken the id in place.
func (l *openSessions) remove(s *Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sessions[s.session] == s {
		delete(l.sessions, s.session)
	}
}

// Session returns an open session, or an OperationError with the code UnknownSession.
func (h *Host) Session(id protocol.SessionID) (*Session, error) {
	h.live.mu.Lock()
	defer h.live.mu.Unlock()
	s, ok := h.live.sessions[id]
	if !ok {
		return nil, &OperationError{Code: UnknownSession, Name: string(id)}
	}
	return s, nil
}

// Isolated returns the same host with no open sessions: sessions of one may have the ids of sessions of the other.
// Shutdown of either shuts down the factories of both.
func (h *Host) Isolated() *Host {
	other := *h
	other.live = &openSessions{}
	return &other
}
