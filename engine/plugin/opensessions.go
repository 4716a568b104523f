package plugin

import (
	"errors"
	"fmt"
	"sync"

	"lashd/rpc/protocol"
)

// ErrOpen means that a session is open already.
var ErrOpen = errors.New("the session is open already")

// openSessions are the sessions that are open, by id.
type openSessions struct {
	mu       sync.Mutex
	sessions map[protocol.SessionID]*Session
}

func (l *openSessions) add(s *Session) error {
	if s.session == "" {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.gone {
		return errGone
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

var errGone = errors.New("nobody waits for the session any more")

// bar forgets s, and sees to it that it is never added.
func (l *openSessions) bar(s *Session) {
	l.mu.Lock()
	s.gone = true
	l.mu.Unlock()
	l.remove(s)
}

// remove forgets s, but not another session that has its id now.
func (l *openSessions) remove(s *Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sessions[s.session] == s {
		delete(l.sessions, s.session)
	}
}

// Session finds an open session; if there is none, that is an OperationError.
func (h *Host) Session(id protocol.SessionID) (*Session, error) {
	h.live.mu.Lock()
	defer h.live.mu.Unlock()
	s, ok := h.live.sessions[id]
	if !ok {
		return nil, &OperationError{Code: UnknownSession, Name: string(id)}
	}
	return s, nil
}

// Isolated is the same host with no sessions open: what is open in one does not hinder the other. Shutdown of either shuts
// down the factories of both.
func (h *Host) Isolated() *Host {
	other := *h
	other.live = &openSessions{}
	return &other
}
