package engine

import (
	"context"
	"time"

	"lashd/rpc/protocol"
)

// The log holds only ids for the items of a running turn. Their contents are in the memory of its run, which reads them from the
// journal after the session is loaded. Until then, readers of the log wait here instead of showing items without contents.

// resumeTimeout limits how long a reader of the log waits for a turn to resume. Plugins that hang
// may take longer; the reader then gets items with their ids only.
const resumeTimeout = 10 * time.Second

// awaitResumeLocked makes readers of the log wait until resumed is called. The caller holds turnMu.
func (s *session) awaitResumeLocked() {
	if s.resuming == nil {
		s.resuming = make(chan struct{})
	}
}

// resume records whether a turn was running when the session was last in memory. The actor calls it
// once it has loaded the state: if a turn will resume, readers wait for it, otherwise they stop
// waiting.
func (s *session) resume(underWay bool) {
	if !underWay {
		s.resumed()
		return
	}
	s.turnMu.Lock()
	defer s.turnMu.Unlock()
	s.awaitResumeLocked()
}

// resumed ends the wait of readers. It is called once the turn has its journal in memory, failed to
// start, or does not exist. Calling it again does nothing.
func (s *session) resumed() {
	s.turnMu.Lock()
	defer s.turnMu.Unlock()
	if s.resuming != nil {
		close(s.resuming)
		s.resuming = nil
	}
}

// runningTurn returns the running turn, or nil. If a turn has yet to resume, it also returns the
// channel that is closed then.
func (s *session) runningTurn() (r *run, resuming chan struct{}) {
	s.turnMu.Lock()
	defer s.turnMu.Unlock()
	return s.turn, s.resuming
}

// waitResumed waits until the turn resumes or resumeTimeout passes; both return nil. It fails if
// the session leaves memory or ctx is done.
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

// draft returns a node of the running turn that is not history yet, or nil if there is none of that
// id. It waits while a turn resumes, so it must not run on the actor, which a resuming turn needs.
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
