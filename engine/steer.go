package engine

import (
	"context"
	"fmt"
	"slices"

	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Steer adds an input to a running turn. The turn reads it at its next checkpoint of the given
// boundary: after the work of a step, or before the turn completes. If the turn ends first, the
// input starts the next turn, so it is never lost. It fails with ErrTurnNotActive if the turn does
// not run, and with an error of the queue if that is full.
func (ts *Turns) Steer(ctx context.Context, p *protocol.TurnSteerParams) (*protocol.TurnSteerResult, error) {
	return ts.steer(ctx, nil, p)
}

// steer is Steer with a ceiling on the authority of the requester; nil is a client. The ceiling
// limits the turn from the checkpoint on.
func (ts *Turns) steer(ctx context.Context, ceiling *protocol.Ceiling, p *protocol.TurnSteerParams) (*protocol.TurnSteerResult, error) {
	if at := []protocol.Boundary{"", protocol.BoundaryAfterWork, protocol.BoundaryBeforeCompletion}; !slices.Contains(at, p.Boundary) {
		return nil, param.NotOneOf("/boundary", at)
	}
	t, err := ts.eng.store.Turn(ctx, p.TurnID)
	if err != nil {
		return nil, err
	}
	input, err := ts.eng.attachments().Prepare(ctx, t.Session, p.Input)
	if err != nil {
		return receipt.Repeated[protocol.TurnSteerResult](ctx, ts.eng.store, "turn/steer", p.Key(), p, err)
	}
	return mutate(ctx, ts.eng, t.Session, "turn/steer", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.TurnSteerResult, error) {
		if st.turns.runningID() != p.TurnID {
			return nil, fmt.Errorf("turn %s: %w", p.TurnID, ErrTurnNotActive)
		}
		if err := st.queue.CheckRoom(); err != nil {
			return nil, err
		}
		r := &protocol.TurnSteerResult{}
		return r, st.turns.steer(ctx, protocol.QueuedInput{Input: input.Parts, Boundary: p.Boundary, Ceiling: ceiling}, input.Blobs, func(id protocol.InputID, seq protocol.Seq) *persistence.Receipt {
			r.InputID, r.Seq = id, seq
			return rc.With(r)
		})
	})
}

// steer stores an input with its blobs for the running turn. receipt builds the receipt from the input's id and
// the seq of the commit. It runs on the actor.
func (ts *sessionTurns) steer(ctx context.Context, in protocol.QueuedInput, blobs []persistence.Blob, receipt func(protocol.InputID, protocol.Seq) *persistence.Receipt) error {
	c := ts.st.change(persistence.Commit{Blobs: blobs})
	in = ts.st.queue.In(c).Steer(c, in)
	c.Receipt = receipt(in.ID, c.Seq())
	return ts.st.commit(ctx, c)
}

// steerInstead handles turn/start with whenBusy "steer" while a turn runs: it steers that turn
// instead of queueing a new one.
func (ts *sessionTurns) steerInstead(ctx context.Context, in protocol.QueuedInput, blobs []persistence.Blob, rc receipt.Request) (*protocol.TurnStartResult, error) {
	r := &protocol.TurnStartResult{TurnID: ts.current.id, State: protocol.TurnRunning}
	return r, ts.steer(ctx, in, blobs, func(id protocol.InputID, seq protocol.Seq) *persistence.Receipt {
		r.InputID, r.Seq = id, seq
		return rc.With(r)
	})
}

// checkpoint handles a checkpoint effect: hooks run, then waiting inputs of this boundary enter the
// turn. They are stored before the model sees them. If a hook aborts the turn, the inputs stay in
// the queue for the next turn.
//
// It asks the actor only if inputs wait (steered), because most turns have many checkpoints and no
// steered input.
func (r *run) checkpoint(ctx context.Context, effect turn.Effect) error {
	answer, err := r.seams.atCheckpoint(ctx, effect)
	if err == nil && answer.Abort == nil && r.steered.Load() { // if a plugin stops the turn, waiting inputs stay queued
		err = r.store.storeWhenSpace(ctx, func(ctx context.Context, st *state) error { return r.admit(ctx, st, effect, &answer) })
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
		return r.store.flush(ctx, nil, answer.events...) // store it, so that hooks with directives do not run again after a crash
	}
	r.journal.deliver(effect.ID, turn.Response{Checkpoint: &answer.Delivery}) // admit has written its journal row
	return nil
}

// admit moves the waiting inputs of a checkpoint into the turn. One commit stores their new state,
// the answer to the effect and the events. From then on the turn is limited by their ceilings too.
// It runs on the actor.
func (r *run) admit(ctx context.Context, st *state, effect turn.Effect, p *checkpointResult) error {
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
		p.Inputs = append(p.Inputs, in.Message(r.id))
	}
	c.Effects = append(c.Effects, persistence.Effect{
		Turn: r.id, ID: effect.ID, Kind: string(effect.Kind), Finished: true, Hash: r.journal.prints.Envelope(&effect),
		Body: encode(turn.Response{Checkpoint: &p.Delivery}),
	})
	c.Tell(p.events...)
	c.TellOf(protocol.Event{Type: protocol.EventInputAccepted, TurnID: r.id, InputIDs: ids, Boundary: kind})
	q.TellWaiting(c)
	c.Then(func() { r.judge.ceiling = r.judge.ceilingOf(r.id, st.queue.Inputs()) })
	return r.store.commit(ctx, st, c)
}
