package engine

import (
	"context"
	"errors"
	"slices"

	"lashd/engine/queue"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Wake is a wake, for tests that have nothing else that wakes.
type Wake = queue.Wake

// WakeSession queues a wake in a commit of its own. It returns the input, or the reason for a rejection.
func (e *Engine) WakeSession(ctx context.Context, id protocol.SessionID, w Wake) (protocol.QueuedInput, protocol.WakeRefusal, error) {
	var refused protocol.WakeRefusal
	in, err := do(ctx, e, id, func(ctx context.Context, st *state) (in protocol.QueuedInput, err error) {
		c := st.change(persistence.Commit{})
		if in, refused, err = st.queue.In(c).Wake(ctx, c, st.eng.store, w); err != nil || refused != "" {
			return in, err
		}
		return in, st.commit(ctx, c)
	})
	if isMissing(err) || errors.Is(err, persistence.ErrDeleted) {
		return protocol.QueuedInput{}, protocol.WakeTargetGone, nil
	}
	return in, refused, err
}

// WakeTogether has a session take wakes in one commit.
func (e *Engine) WakeTogether(ctx context.Context, id protocol.SessionID, all ...Wake) (inputs []protocol.QueuedInput, err error) {
	return do(ctx, e, id, func(ctx context.Context, st *state) ([]protocol.QueuedInput, error) {
		c := st.change(persistence.Commit{})
		st.tasks.In(c).Wake(all...)
		if err := st.commit(ctx, c); err != nil {
			return nil, err
		}
		return slices.Clone(c.Inputs), nil
	})
}

// HandOver does the first half of a transfer of tasks, and gives what takes it back.
func (e *Engine) HandOver(ctx context.Context, id protocol.SessionID, tasks ...protocol.TaskID) (back func() error, err error) {
	moving, err := do(ctx, e, id, func(_ context.Context, st *state) ([]protocol.Task, error) { return st.tasks.handOver(tasks) })
	return func() error {
		_, err := do(ctx, e, id, func(_ context.Context, st *state) (struct{}, error) {
			st.tasks.HandedOver(moving, false)
			return struct{}{}, nil
		})
		return err
	}, err
}

// Handed returns the number of functions that the actor of a loaded session has run, without this one, and the number of its commits.
func (e *Engine) Handed(ctx context.Context, id protocol.SessionID) (taken, commits int, err error) {
	_, err = do(ctx, e, id, func(_ context.Context, st *state) (struct{}, error) {
		taken, commits = st.processed-1, st.commits
		return struct{}{}, nil
	})
	return taken, commits, err
}
