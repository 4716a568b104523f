package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"lashd/engine/plugin"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// interruptedCode is what the model reads of a cell that started before a crash and may not run again.
const interruptedCode = "The code started, then lashd was interrupted. It is unknown how far the code ran, and it was not run again."

// runCell runs one code cell of the model. Its start is committed before it runs, and its result
// before the model sees it, in one commit with the globals that it changed. A cell that an earlier
// run of the daemon started runs again if its executor repeats cells: the results of its calls come
// from the journal. Otherwise nothing is known about its effects, and the model gets an error.
func (r *run) runCell(ctx context.Context, effect turn.Effect) error {
	reply := turn.CellReply{Error: plugin.ErrNoExecutor.Error()}
	rows := r.journal.replay[effect.ID]
	switch {
	case r.judge.mayRunCells() != "":
		reply.Error = r.judge.mayRunCells()
	case len(rows) > 0 && !r.hooks.plugins.ReplaysCells():
		reply.Error = interruptedCode
	case r.hooks.plugins.Executes():
		var err error
		if reply, err = r.startCell(ctx, effect, rows); err != nil {
			return r.interruptedCell(ctx, err)
		}
	}
	r.deliver(effect, turn.Response{Code: &reply})
	return r.storeCell()
}

// startCell commits the start of a cell, runs it on a goroutine of its own and returns the reply.
// An error of the executor becomes part of the reply. startCell itself fails only if the start
// cannot be committed, or if ctx or the run ends; then it asks the executor to abandon the cell.
func (r *run) startCell(ctx context.Context, effect turn.Effect, rows []persistence.Effect) (turn.CellReply, error) {
	c := r.newCell(ctx, effect, rows)
	r.files.LookBefore(ctx)
	if len(rows) == 0 {
		start := persistence.Effect{Turn: r.id, ID: effect.ID, Kind: string(effect.Kind), Hash: r.journal.prints.Envelope(&effect), Body: []byte("{}")}
		if err := r.store.flush(ctx, []persistence.Effect{start}); err != nil {
			return turn.CellReply{}, err
		}
	}
	r.files.ToolsStart()
	defer r.files.ToolsEnd(ctx)
	code := effect.Code
	call := &plugin.CodeCall{
		TurnID: r.id, CellID: c.outer.CallID, Language: code.Language, Source: code.Source, AcceptFinish: code.AcceptFinish, Schema: code.Schema,
	}
	a, returned := c.execute(ctx, call, c)
	if !returned {
		return a.v, context.Cause(ctx)
	}
	if err := context.Cause(r.ctx); err != nil {
		return a.v, err // the turn has ended or is suspended: the answer is not the result of the code
	}
	reply, err := c.settle(a.v, a.err)
	if err != nil {
		return reply, err
	}
	r.seams.queuedMessages = append(r.seams.queuedMessages, c.outer.messages...)
	reply.Control = dropNoopSwitch(r.ctx, r.eng, r.journal.begin.Frame, reply.Control)
	r.hooks.trace.cell(c, call, &reply)
	return reply, nil
}

// storeCell stores the result of a cell together with the globals that it changed. If the turn ends
// with the cell, the commit that ends the turn follows at once and stores both. So do globals that cannot
// be captured now; if that still fails then, it is an issue of the turn.
func (r *run) storeCell() error {
	if r.journal.finished() {
		return nil
	}
	k, err := r.eng.captureExecution(r.life, r.hooks.plugins, nil)
	if err != nil {
		r.eng.Log.Error("cannot capture the globals of code cells", "session", r.session.id, "error", err)
	}
	return r.store.flushState(r.ctx, k)
}

// storableReply returns the reply, or one with an error in its place if it cannot be encoded as
// JSON.
func storableReply(reply turn.CellReply) turn.CellReply {
	if _, err := json.Marshal(reply); err != nil {
		return turn.CellReply{
			ID: reply.ID, Printed: reply.Printed, Calls: reply.Calls, Shown: reply.Shown, DurationMs: reply.DurationMs, Error: fmt.Sprintf("The code ran, but its result cannot be stored: %v", err),
		}
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

// nondeterministic returns the issue that ends the turn of a cell that, when it ran again, did not
// make the calls that it had made before.
func nondeterministic(err error) *protocol.Issue {
	if !errors.As(err, new(*JournalError)) {
		return nil
	}
	return &protocol.Issue{Kind: "runtime", Code: "nondeterministic_cell", Message: "The code ran again after a crash and did not repeat its calls, so it was stopped: " + err.Error()}
}
