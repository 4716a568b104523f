package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"lashd/engine/plugin"
	"lashd/engine/turn"
	"lashd/persistence"
)

// runCell runs one code cell of the model. Its start is committed before it runs, and its result
// before the model sees it. A cell that an earlier run of the daemon started never runs again,
// because nothing is known about its effects; the model gets an error instead.
func (r *run) runCell(ctx context.Context, effect turn.Effect) error {
	reply := turn.CellReply{Error: plugin.ErrNoExecutor.Error()}
	switch {
	case r.judge.mayRunCells() != "":
		reply.Error = r.judge.mayRunCells()
	case len(r.journal.replay[effect.ID]) > 0:
		reply.Error = "The code started, then lashd was interrupted. It is unknown how far the code ran, and it was not run again."
	case r.hooks.plugins.Executes():
		var err error
		if reply, err = r.startCell(ctx, effect); err != nil {
			return r.interruptedCell(ctx, err)
		}
	}
	r.deliver(effect, turn.Response{Code: &reply})
	if r.journal.finished() {
		return nil // the turn's own commit follows at once
	}
	return r.store.flush(ctx, nil)
}

// startCell commits the start of a cell, runs it on a goroutine of its own and returns the reply.
// An error of the executor becomes part of the reply. startCell itself fails only if the start
// cannot be committed or ctx ends; then it asks the executor to abandon the cell.
func (r *run) startCell(ctx context.Context, effect turn.Effect) (turn.CellReply, error) {
	row := persistence.Effect{Turn: r.id, ID: effect.ID, Kind: string(effect.Kind), Hash: r.journal.prints.Envelope(&effect), Body: []byte("{}")}
	r.files.LookBefore(ctx)
	if err := r.store.flush(ctx, []persistence.Effect{row}); err != nil {
		return turn.CellReply{}, err
	}
	r.files.ToolsStart()
	defer r.files.ToolsEnd(ctx)
	done := make(chan answer[turn.CellReply], 1)
	call := &plugin.CodeCall{TurnID: r.id, Language: effect.Code.Language, Source: effect.Code.Source, AcceptFinish: effect.Code.AcceptFinish}
	r.eng.group.GoCall(func() {
		reply, err := r.hooks.plugins.Execute(ctx, call)
		done <- answer[turn.CellReply]{reply, err}
	})
	a, returned := withinGrace(ctx, done)
	switch {
	case !returned:
		r.hooks.plugins.AbandonCell()
		return a.v, context.Cause(ctx)
	case a.err != nil && ctx.Err() != nil:
		return a.v, a.err
	case a.err != nil:
		return turn.CellReply{Error: a.err.Error()}, nil
	}
	a.v.Control = dropNoopSwitch(ctx, r.eng, r.journal.begin.Frame, a.v.Control)
	return storableReply(a.v), nil
}

// storableReply returns the reply, or one with an error in its place if it cannot be encoded as
// JSON.
func storableReply(reply turn.CellReply) turn.CellReply {
	if _, err := json.Marshal(reply); err != nil {
		return turn.CellReply{Printed: reply.Printed, Error: fmt.Sprintf("The code ran, but its result cannot be stored: %v", err)}
	}
	return reply
}

// interruptedCell ends the turn, or leaves it to be resumed, when a cell has no reply.
func (r *run) interruptedCell(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return r.stop(cause)
	}
	return err
}
