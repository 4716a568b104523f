package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Steer sends an input into a running turn: it enters at the next checkpoint of its boundary, or, if the turn ends
// before, gets the next turn.
func (ts *Turns) Steer(ctx context.Context, p *protocol.TurnSteerParams) (*protocol.TurnSteerResult, error) {
	return ts.steer(ctx, nil, p)
}

// steer is Steer for whoever may not do all that the session may; nil: a client. The turn is held to that from the checkpoint on.
func (ts *Turns) steer(ctx context.Context, ceiling *protocol.Ceiling, p *protocol.TurnSteerParams) (*protocol.TurnSteerResult, error) {
	if err := param.CheckInput(p.Input); err != nil {
		return nil, err
	}
	if at := []protocol.Boundary{"", protocol.BoundaryAfterWork, protocol.BoundaryBeforeCompletion}; !slices.Contains(at, p.Boundary) {
		return nil, param.NotOneOf("/boundary", at)
	}
	t, err := ts.eng.store.Turn(ctx, p.TurnID)
	if err != nil {
		return nil, err
	}
	return mutate(ctx, ts.eng, t.Session, "turn/steer", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.TurnSteerResult, error) {
		if st.current == nil || st.current.id != p.TurnID {
			return nil, fmt.Errorf("turn %s: %w", p.TurnID, ErrTurnNotActive)
		}
		if err := st.queue.CheckRoom(); err != nil {
			return nil, err
		}
		return st.steer(ctx, protocol.QueuedInput{Input: p.Input, Boundary: p.Boundary, Ceiling: ceiling}, func(r *protocol.TurnSteerResult) *persistence.Receipt { return rc.With(r) })
	})
}

func (st *state) steer(ctx context.Context, in protocol.QueuedInput, rc func(*protocol.TurnSteerResult) *persistence.Receipt) (*protocol.TurnSteerResult, error) {
	in.ID, in.TurnID, in.State, in.AtMs = protocol.NewInputID(), st.current.id, protocol.InputPendingActive, now()
	in.Boundary = cmp.Or(in.Boundary, protocol.BoundaryAfterWork)
	c := st.change(persistence.Commit{})
	st.queue.In(c).Steer(c, in)
	result := &protocol.TurnSteerResult{InputID: in.ID, Seq: c.Seq()}
	c.Receipt = rc(result)
	if err := st.commit(ctx, c); err != nil {
		return nil, err
	}
	return result, nil
}

// steerInstead is turn/start of a busy session whose client wants to steer.
func (st *state) steerInstead(ctx context.Context, ceiling *protocol.Ceiling, p *protocol.TurnStartParams, rc receipt.Request) (*protocol.TurnStartResult, error) {
	result := &protocol.TurnStartResult{TurnID: st.current.id, State: protocol.TurnRunning}
	_, err := st.steer(ctx, protocol.QueuedInput{Input: p.Input, PluginInputs: p.PluginInputs, Ceiling: ceiling}, func(r *protocol.TurnSteerResult) *persistence.Receipt {
		result.InputID, result.Seq = r.InputID, r.Seq
		return rc.With(result)
	})
	return result, err
}

// checkpoint lets in what waits for this seam. What enters is durable before the model sees it.
func (r *run) checkpoint(ctx context.Context, effect turn.Effect) error {
	answer, err := r.seams.atCheckpoint(ctx, effect)
	if err == nil && answer.Abort == nil && r.steered.Load() { // what waits for a turn that a plugin stops stays where it is
		err = r.store.persist(ctx, func(ctx context.Context, st *state) error { return st.admit(ctx, r, effect, &answer) })
	}
	if err != nil {
		if c := context.Cause(ctx); c != nil {
			return r.stop(c)
		}
		return err
	}
	if len(answer.Inputs) == 0 {
		r.deliver(effect, turn.Response{Checkpoint: &answer.Delivery})
		if !answer.acted {
			return nil
		}
		return r.store.flush(ctx, nil, answer.told...) // hooks that wanted something are not asked again
	}
	r.journal.deliver(effect.ID, turn.Response{Checkpoint: &answer.Delivery}) // its journal row is written already
	return nil
}

// admit stores that inputs enter the turn, and how.
func (st *state) admit(ctx context.Context, r *run, effect turn.Effect, p *passage) error {
	kind := effect.Checkpoint.Kind
	entering := st.queue.Entering(r.id, r.journal.begin.Config.Drain, effect.Checkpoint.Admits)
	if len(entering) == 0 {
		return nil
	}
	c := r.store.change(st)
	q := st.queue.In(c)
	var ids []protocol.InputID
	for _, in := range entering {
		in.State, ids = protocol.InputAccepted, append(ids, in.ID)
		q.SetInput(c, in)
		p.Inputs = append(p.Inputs, inputMessage(r.id, in))
	}
	c.Effects = append(c.Effects, persistence.Effect{
		Turn: r.id, ID: effect.ID, Kind: string(effect.Kind), Finished: true, Hash: r.journal.prints.envelope(&effect),
		Body: encode(turn.Response{Checkpoint: &p.Delivery}),
	})
	c.Tell(p.told...)
	c.TellOf(protocol.Event{Type: protocol.EventInputAccepted, TurnID: r.id, InputIDs: ids, Boundary: kind})
	q.TellWaiting(c)
	c.Then(func() { r.judge.ceiling = r.judge.ceilingOf(r.id, st.queue.Inputs()) })
	return r.store.commit(ctx, st, c)
}
