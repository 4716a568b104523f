package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"lashd/engine/plugin"
	"lashd/engine/turn"
	"lashd/persistence"
)

// runCell runs a piece of the model's code. That it is started is durable before it runs, and what it came to before the
// model sees it. One that was started by a daemon that died meanwhile is not run again.
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

// startCell gives the reply of a cell, or why there is none. What goes wrong in the executor is said in the reply.
func (r *run) startCell(ctx context.Context, effect turn.Effect) (turn.CellReply, error) {
	row := persistence.Effect{Turn: r.id, ID: effect.ID, Kind: string(effect.Kind), Hash: r.journal.prints.envelope(&effect), Body: []byte("{}")}
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

// storableReply is a reply that JSON can hold.
func storableReply(reply turn.CellReply) turn.CellReply {
	if _, err := json.Marshal(reply); err != nil {
		return turn.CellReply{Printed: reply.Printed, Error: fmt.Sprintf("The code ran, but its result cannot be stored: %v", err)}
	}
	return reply
}

// interruptedCell ends or leaves a turn whose cell has no reply.
func (r *run) interruptedCell(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return r.stop(cause)
	}
	return err
}
