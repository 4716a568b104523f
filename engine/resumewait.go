package engine

import (
	"context"
	"time"

	"lashd/rpc/protocol"
)

// The log holds only ids for the items of a running turn. Their contents are in the memory of its run, which reads them from the
// journal after the session is loaded. Until then, readers of the log wait here instead of showing items without contents.

// resumePatience is how long who reads the log waits for a turn to go on. Plugins that hang may take longer.
const resumeTimeout = 10 * time.Second

// interruptedLocked has those who read the log wait.
func (s *session) awaitResumeLocked() {
	if s.resuming == nil {
		s.resuming = make(chan struct{})
	}
}

// resume is said by who loads a session: a turn is under way, which will go on, or there is none.
func (s *session) resume(underWay bool) {
	if !underWay {
		s.resumed()
		return
	}
	s.turnMu.Lock()
	defer s.turnMu.Unlock()
	s.awaitResumeLocked()
}

// resumed has nobody wait any more: the turn goes on, or it is known why it does not.
func (s *session) resumed() {
	s.turnMu.Lock()
	defer s.turnMu.Unlock()
	if s.resuming != nil {
		close(s.resuming)
		s.resuming = nil
	}
}

// underWay is the running turn, or what to wait for until there is one again.
func (s *session) runningTurn() (r *run, resuming chan struct{}) {
	s.turnMu.Lock()
	defer s.turnMu.Unlock()
	return s.turn, s.resuming
}

// untilResumed waits until a turn goes on, or has kept everybody waiting for too long.
func (s *session) waitResumed(ctx context.Context, resuming chan struct{}) error {
	limit := time.NewTimer(resumeTimeout)
	defer limit.Stop()
	select {
	case <-resuming:
	case <-limit.C:
	case <-s.closed:
		return ErrShuttingDown
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// draft is a node of the running turn that is not history yet, or nil.
func (s *session) draft(ctx context.Context, id protocol.NodeID) (*protocol.Node, error) {
	r, resuming := s.runningTurn()
	if resuming != nil {
		if err := s.waitResumed(ctx, resuming); err != nil {
			return nil, err
		}
		r, _ = s.runningTurn()
	}
	if r == nil {
		return nil, nil
	}
	return r.journal.draft(id), nil
}
