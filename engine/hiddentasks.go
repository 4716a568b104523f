package engine

import (
	"context"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// AwaitHidden implements plugin.TaskService.
func (s *services) AwaitHidden(ctx context.Context, session protocol.SessionID) error {
	session, err := s.own(ctx, session)
	if err != nil {
		return err
	}
	for {
		again := s.eng.tasksMoved.Next()
		live, err := do(ctx, s.eng, session, func(_ context.Context, st *state) (bool, error) { return st.tasks.drainHidden(s.work) })
		if err != nil || !live {
			return err
		}
		select {
		case <-again:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// drainHidden tells whether hidden tasks are live, besides the one that asks. If none is, it fails with the first one that failed.
func (ts sessionTasks) drainHidden(asks *work) (live bool, err error) {
	var self protocol.TaskID
	if asks != nil {
		self = asks.id
	}
	if ts.AnyHidden(self) {
		return true, nil
	}
	if failed := ts.TakeFailedHidden(); failed != nil {
		return false, &plugin.TaskFailedError{Task: *failed}
	}
	return false, nil
}
