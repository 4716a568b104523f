package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"lashd/engine/change"
	"lashd/engine/queue"
	"lashd/engine/receipt"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// sessionQueue is the queue of a session, with what makes changes of it durable. It asks its session for changes and their commits, for
// its settings, and whether a turn runs or may begin.
type sessionQueue struct {
	*queue.Queue
	st *state
}

// Queue is what clients may ask of the inputs that no turn has taken in.
type Queue struct{ eng *Engine }

// List lists inputs, and tells why none of those that wait starts.
func (q *Queue) List(ctx context.Context, p *protocol.QueueListParams) (*protocol.QueueListResult, error) {
	return do(ctx, q.eng, p.SessionID, func(ctx context.Context, st *state) (*protocol.QueueListResult, error) {
		result := &protocol.QueueListResult{Data: list(slices.Clone(st.queue.Inputs())), Hold: st.hold()}
		if !p.All {
			return result, nil
		}
		inputs, err := q.eng.store.Inputs(ctx, st.key, 200)
		result.Data = list(inputs)
		return result, err
	})
}

// hold is why no turn of the queue starts now.
func (st *state) hold() protocol.QueueHold {
	switch {
	case len(st.queue.Waiting()) == 0:
		return protocol.HoldEmpty
	case st.eng.group.Closed():
		return protocol.HoldStopping
	case st.current != nil && st.decisions.AskedBy(st.current.id) > 0:
		return protocol.HoldDecision
	case st.current != nil:
		return protocol.HoldTurn
	case st.holds.held():
		return protocol.HoldCommand
	case st.foreign(st.queue.Turns()[0]):
		return protocol.HoldForeign
	case st.eng.store.Space() != nil:
		return protocol.HoldSpace
	}
	return protocol.HoldRetry
}

// Cancel withdraws inputs that no turn has taken in.
func (q *Queue) Cancel(ctx context.Context, p *protocol.QueueCancelParams) (*protocol.QueueCancelResult, error) {
	return mutate(ctx, q.eng, p.SessionID, "queue/cancel", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.QueueCancelResult, error) {
		inputs := st.queue.Inputs()
		first := slices.IndexFunc(inputs, func(in protocol.QueuedInput) bool { return in.ID == p.InputID })
		if first < 0 {
			return st.queue.endedInput(ctx, p.InputID)
		}
		last := first + 1
		if p.Suffix {
			last = len(inputs)
		}
		return st.queue.withdraw(ctx, inputs[first:last], rc)
	})
}

// endedInput answers for an input that is in the queue no more.
func (q sessionQueue) endedInput(ctx context.Context, id protocol.InputID) (*protocol.QueueCancelResult, error) {
	status := protocol.CancelNotFound
	in, err := q.st.eng.store.Input(ctx, q.st.key, id)
	switch {
	case errors.Is(err, persistence.ErrNotFound):
	case err != nil:
		return nil, err
	case in.State == protocol.InputCancelled:
		status = protocol.CancelAlreadyCancelled
	default:
		status = protocol.CancelAlreadyCompleted
	}
	return &protocol.QueueCancelResult{Data: []protocol.CancelledInput{{InputID: id, Status: status}}, Seq: q.st.row.Seq}, nil
}

// withdraw cancels inputs, and the turns that are left without any. One commit does it all.
func (q sessionQueue) withdraw(ctx context.Context, targets []protocol.QueuedInput, rc receipt.Request) (*protocol.QueueCancelResult, error) {
	result := &protocol.QueueCancelResult{Seq: q.st.row.Seq}
	gone := map[protocol.InputID]bool{}
	for _, in := range targets {
		status := protocol.CancelDone
		if q.Claimed(in) {
			status = protocol.CancelAlreadyClaimed
		} else {
			gone[in.ID] = true
		}
		result.Data = append(result.Data, protocol.CancelledInput{InputID: in.ID, Status: status})
	}
	if len(gone) == 0 {
		return result, nil
	}
	c := q.st.change(persistence.Commit{})
	q.st.over(c, q.In(c).Withdraw(c, gone))
	result.Seq = c.Seq()
	c.Receipt = rc.With(result)
	if err := q.st.commit(ctx, c); err != nil {
		return nil, err
	}
	return result, nil
}

// In returns the draft of the queue in a change.
func (q sessionQueue) In(c *change.Change) *queue.Draft {
	st := q.st
	p := queue.Policy{
		Session: st.id, Key: st.key, Incarnation: st.eng.incarnation, Drain: st.row.Config.Drain, Room: roomForWakes(&st.row.Config),
	}
	if st.current != nil {
		p.Running = st.current.id
	}
	p.Idle = st.current == nil && !st.holds.held() && !st.holds.awaited() && !st.alarm.retrying() && !st.eng.group.Closed()
	return q.Queue.In(c, p)
}

// roomForWakes is how many bytes the model can be told at once.
func roomForWakes(cfg *protocol.Config) int {
	window := cmp.Or(cfg.Model.ContextWindow, protocol.MaxInput)
	return int(min(protocol.MaxInput, window*bytesPerToken))
}

// over has those told who wait for turns that end with a change without having run.
func (st *state) over(c *change.Change, ended []persistence.StoredTurn) {
	for _, t := range ended {
		c.Then(func() { st.turnOver(t.ID, t.Report) })
	}
}

// startWoken starts a turn if a wake was queued.
func (st *state) startWoken() {
	if st.queue.TakeWake() {
		st.startNextTurn()
	}
}
