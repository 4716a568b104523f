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
		live, err := do(ctx, s.eng, session, func(_ context.Context, st *state) (bool, error) { return st.drainHidden(s.work) })
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
func (st *state) drainHidden(asks *work) (live bool, err error) {
	for _, t := range st.tasks {
		if t.Spec.Hidden && (asks == nil || t.ID != asks.id) {
			return true, nil
		}
	}
	failed := st.failedHiddenTask
	if st.failedHiddenTask = nil; failed != nil {
		return false, &plugin.TaskFailedError{Task: *failed}
	}
	return false, nil
}

// failedHidden keeps the first hidden task that fails, until somebody waits for hidden tasks.
func (st *state) failedHidden(t protocol.Task) {
	if t.Spec.Hidden && st.failedHiddenTask == nil && (t.State == protocol.TaskFailed || t.State == protocol.TaskAbandoned) {
		st.failedHiddenTask = &t
	}
}
