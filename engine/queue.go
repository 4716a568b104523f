package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"lashd/engine/change"
	"lashd/engine/queue"
	"lashd/engine/receipt"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Queue lists inputs, and tells why none of those that wait starts.
func (e *Engine) Queue(ctx context.Context, p *protocol.QueueListParams) (*protocol.QueueListResult, error) {
	return do(ctx, e, p.SessionID, func(ctx context.Context, st *state) (*protocol.QueueListResult, error) {
		result := &protocol.QueueListResult{Data: list(slices.Clone(st.queue.Inputs())), Hold: st.hold()}
		if !p.All {
			return result, nil
		}
		inputs, err := e.store.Inputs(ctx, st.key, 200)
		result.Data = list(inputs)
		return result, err
	})
}

// hold is why no turn of the queue starts now.
func (st *state) hold() protocol.QueueHold {
	switch {
	case len(st.queue.Waiting()) == 0:
		return protocol.HoldEmpty
	case st.eng.stopping():
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

// CancelInput withdraws inputs that no turn has taken in.
func (e *Engine) CancelInput(ctx context.Context, p *protocol.QueueCancelParams) (*protocol.QueueCancelResult, error) {
	return mutate(ctx, e, p.SessionID, "queue/cancel", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.QueueCancelResult, error) {
		inputs := st.queue.Inputs()
		first := slices.IndexFunc(inputs, func(in protocol.QueuedInput) bool { return in.ID == p.InputID })
		if first < 0 {
			return st.endedInput(ctx, p.InputID)
		}
		last := first + 1
		if p.Suffix {
			last = len(inputs)
		}
		return st.withdraw(ctx, inputs[first:last], rc)
	})
}

func (st *state) endedInput(ctx context.Context, id protocol.InputID) (*protocol.QueueCancelResult, error) {
	status := protocol.CancelNotFound
	in, err := st.eng.store.Input(ctx, st.key, id)
	switch {
	case errors.Is(err, persistence.ErrNotFound):
	case err != nil:
		return nil, err
	case in.State == protocol.InputCancelled:
		status = protocol.CancelAlreadyCancelled
	default:
		status = protocol.CancelAlreadyCompleted
	}
	return &protocol.QueueCancelResult{Data: []protocol.CancelledInput{{InputID: id, Status: status}}, Seq: st.row.Seq}, nil
}

// withdraw cancels inputs, and the turns that are left without any. One commit does it all.
func (st *state) withdraw(ctx context.Context, targets []protocol.QueuedInput, rc receipt.Request) (*protocol.QueueCancelResult, error) {
	result := &protocol.QueueCancelResult{Seq: st.row.Seq}
	gone := map[protocol.InputID]bool{}
	for _, in := range targets {
		status := protocol.CancelDone
		if t, ok := st.queue.Turn(in.TurnID); in.State != protocol.InputPendingActive && (!ok || t.State != protocol.TurnQueued) {
			status = protocol.CancelAlreadyClaimed
		} else {
			gone[in.ID] = true
		}
		result.Data = append(result.Data, protocol.CancelledInput{InputID: in.ID, Status: status})
	}
	if len(gone) == 0 {
		return result, nil
	}
	c := st.change(persistence.Commit{})
	st.over(c, st.queueIn(c).Withdraw(c, gone))
	result.Seq = c.Seq()
	c.Receipt = rc.With(result)
	if err := st.commit(ctx, c); err != nil {
		return nil, err
	}
	return result, nil
}

// queueIn is the draft of the queue in a change.
func (st *state) queueIn(c *change.Change) *queue.Draft {
	p := queue.Policy{
		Session: st.id, Key: st.key, Incarnation: st.eng.incarnation, Drain: st.row.Config.Drain, Room: st.roomForWakes(),
	}
	if st.current != nil {
		p.Running = st.current.id
	}
	p.Idle = st.current == nil && !st.holds.held() && !st.holds.awaited() && !st.alarm.retrying() && !st.eng.stopping()
	return st.queue.In(c, p)
}

// roomForWakes is how many bytes the model can be told at once.
func (st *state) roomForWakes() int {
	window := cmp.Or(st.row.Config.Model.ContextWindow, protocol.MaxInput)
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

// enqueue adds turns, each with its input. One whose source is known already stays the one that it was.
func (st *state) enqueue(ctx context.Context, c *change.Change, wanted []protocol.QueuedInput) (all []protocol.QueuedInput, err error) {
	q, added := st.queueIn(c), false
	for _, in := range wanted {
		same, err := q.Same(ctx, c, st.eng.store, in.Source)
		switch {
		case err != nil:
			return nil, err
		case same == nil:
			all, added = append(all, q.Queue(c, in)), true
		case !sameContent(*same, in):
			return nil, fmt.Errorf("input %s: %w", in.Source, ErrOtherInput)
		default:
			all = append(all, *same)
		}
	}
	if added {
		q.TellWaiting(c)
	}
	return all, nil
}

// sameContent tells whether two inputs say the same.
func sameContent(a, b protocol.QueuedInput) bool {
	type content struct {
		Input   []protocol.InputPart
		Plugins protocol.PluginInputs
		Options *protocol.TurnOptions
	}
	of := func(in protocol.QueuedInput) []byte {
		return encode(content{in.Input, in.PluginInputs, in.TurnOptions})
	}
	return bytes.Equal(of(a), of(b))
}
