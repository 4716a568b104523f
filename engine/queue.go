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

// sessionQueue is the queue of a session, connected to the session's commits. The session's actor owns it. It uses
// the session to build changes, to read settings, and to find out whether a turn runs or may start.
type sessionQueue struct {
	*queue.Queue
	st *state
}

// Queue is the API of a session's queued inputs.
type Queue struct{ eng *Engine }

// List returns the queued inputs, oldest first, and the reason why none of them starts a turn now. With All set it
// returns the newest 200 inputs of the session in any state instead, also oldest first.
func (q *Queue) List(ctx context.Context, p *protocol.QueueListParams) (*protocol.QueueListResult, error) {
	return do(ctx, q.eng, p.SessionID, func(ctx context.Context, st *state) (*protocol.QueueListResult, error) {
		result := &protocol.QueueListResult{Data: list(slices.Clone(st.queue.Inputs())), Hold: st.turns.holdReason()}
		if !p.All {
			return result, nil
		}
		inputs, err := q.eng.store.Inputs(ctx, st.key, 200)
		result.Data = list(inputs)
		return result, err
	})
}

// Cancel removes an input that no turn has taken in; with Suffix also all inputs queued after it. For an input
// that is no longer queued, the status says whether it was cancelled, used by a turn, or never existed. Cancel and
// the start of a turn exclude each other on the actor, so an input is either cancelled or used.
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

// endedInput returns the answer of Cancel for an input that is not in the queue.
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

// withdraw cancels inputs and ends the queued turns that have no inputs left, in one commit. Inputs that a turn
// took in during the wait are reported and stay.
func (q sessionQueue) withdraw(ctx context.Context, targets []protocol.QueuedInput, rc receipt.Request) (*protocol.QueueCancelResult, error) {
	answers, gone := q.Withdrawable(targets)
	result := &protocol.QueueCancelResult{Data: answers, Seq: q.st.row.Seq}
	if len(gone) == 0 {
		return result, nil
	}
	c := q.st.change(persistence.Commit{})
	q.st.turns.notifyEnds(c, q.In(c).Withdraw(c, gone)...)
	result.Seq = c.Seq()
	c.Receipt = rc.With(result)
	if err := q.st.commit(ctx, c); err != nil {
		return nil, err
	}
	return result, nil
}

// In returns the draft of the queue in a change, with the settings that decide how wakes share turns. Every caller
// that uses the same change gets the same draft, so their changes add up to one commit.
func (q sessionQueue) In(c *change.Change) *queue.Draft {
	st := q.st
	return q.Queue.In(c, queue.Policy{
		Session: st.id, Key: st.key, Incarnation: st.eng.incarnation, Drain: st.row.Config.Drain, Room: roomForWakes(&st.row.Config),
		Running: st.turns.runningID(), Idle: st.turns.canStartNow(),
	})
}

// roomForWakes returns how many bytes of wakes fit into one turn: the model's context window at BytesPerToken, at
// most protocol.MaxInput. Without a configured window it is protocol.MaxInput. Wakes beyond it wait for the next
// turn.
func roomForWakes(cfg *protocol.Config) int {
	window := cmp.Or(cfg.Model.ContextWindow, protocol.MaxInput)
	return int(min(protocol.MaxInput, window*protocol.BytesPerToken))
}
