package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"lashd/engine/task/subagent"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// A subagent is a task that runs as a turn of a child session. The spec contains the ids of both. So an attempt after a crash
// creates neither again and waits for the same turn, which the child session runs and recovers like any other.

// subagentLabel is the usage label of subagents in the parent's ledger, unless the spec has
// another.
const subagentLabel = "subagent"

// subagentRun is one attempt at a subagent task. Its methods run on the worker's goroutine.
type subagentRun struct {
	*work
	*protocol.TaskChild
	parent protocol.SessionID // the session that started the task; stays the child's parent if the task is transferred
}

// runSubagent is the worker of subagent tasks. If the daemon stops it returns nil: the child's turn
// continues there, and the next daemon waits for it. Full disks, busy databases and reloaded
// sessions are retried until the task is stopped.
func runSubagent(ctx context.Context, w *work) *protocol.TaskOutcome {
	t := w.now()
	d := &subagentRun{work: w, TaskChild: t.Spec.Subagent, parent: t.Origin.SessionID}
	if asked := t.CancelRequested; asked != nil { // an earlier daemon stopped before it could cancel the turn
		return cmp.Or(d.halt(), (&taskStop{asked.By, asked.Reason}).outcome())
	}
	out, err := d.run(ctx)
	for isTransient(err) && pause(ctx, spaceCheck) == nil {
		out, err = d.run(ctx)
	}
	switch {
	case errors.Is(err, ErrShuttingDown), errors.Is(context.Cause(w.ctx), errStopped):
		return nil // the child's turn resumes, and the next daemon waits for it
	case ctx.Err() != nil:
		return d.halt()
	case err != nil:
		return &protocol.TaskOutcome{Kind: protocol.TaskError, Code: "notDelegated", Message: err.Error()}
	}
	return out
}

// isTransient reports whether an error comes from the disk, the database or a reload of a session:
// the attempt can continue.
func isTransient(err error) bool {
	return slices.ContainsFunc([]error{persistence.ErrFull, persistence.ErrBusy, persistence.ErrBudget, ErrReloaded}, func(e error) bool { return errors.Is(err, e) })
}

// run waits for the previous task, creates the child if needed and runs its turn. If the answer
// does not fit the output schema, it asks the child once more in a second turn.
func (d *subagentRun) run(ctx context.Context) (*protocol.TaskOutcome, error) {
	if err := d.awaitPrevious(ctx); err != nil {
		return nil, err
	}
	if err := d.ensureChild(ctx); err != nil {
		return nil, err
	}
	report, err := d.turn(ctx, d.TurnID, d.Input)
	if err != nil {
		return nil, err
	}
	out := subagent.Outcome(report, d.Output)
	if out.Code != subagent.OutputMismatch {
		return out, nil
	}
	again := fmt.Sprintf("Your answer does not match the required schema: %s. Answer again with only JSON that matches this schema:\n%s", out.Message, d.Output)
	if report, err = d.turn(ctx, d.retryTurnID(), []protocol.InputPart{{Type: protocol.InputText, Text: again}}); err != nil {
		return nil, err
	}
	return subagent.Outcome(report, d.Output), nil
}

// retryTurnID is the id of the turn in which the child corrects an answer that does not fit the
// schema.
func (d *subagentRun) retryTurnID() protocol.TurnID { return d.TurnID + "_again" }

// awaitPrevious waits until the task in d.After has ended or no longer exists. The task is idle and
// gives its slot back while it waits.
func (d *subagentRun) awaitPrevious(ctx context.Context) error {
	for d.After != "" {
		again := d.eng.tasksChanged.Next()
		t, err := d.eng.store.Task(ctx, d.owner(), d.After)
		switch {
		case isMissing(err) || err == nil && t.State.Final():
			return d.resume(ctx)
		case err != nil:
			return err
		}
		if err := d.becomeIdle(ctx, string(d.After)); err != nil {
			return err
		}
		select {
		case <-again:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// ensureChild creates the child session if it does not exist and the spec says how. It fails if the
// child is not below the parent, because then the parent may not give it work.
func (d *subagentRun) ensureChild(ctx context.Context) error {
	_, err := d.eng.store.Session(ctx, d.SessionID)
	if isMissing(err) && d.New != nil {
		err = d.createChild(ctx)
	}
	if err != nil {
		return err
	}
	host := &services{eng: d.eng, session: d.parent}
	if below, err := host.WorksForOwn(ctx, d.SessionID); err != nil || !below || d.SessionID == d.parent {
		return cmp.Or(err, fmt.Errorf("session %s does not work for %s", d.SessionID, d.parent))
	}
	return nil
}

// asker returns the parent session as a requester, limited to what it could do when it started the
// task.
func (d *subagentRun) asker() *requester {
	return &requester{session: d.parent, ceiling: d.now().Origin.Ceiling}
}

// createChild creates the child session under its fixed id. A session that exists already is no
// error: another task of the same agent created it.
func (d *subagentRun) createChild(ctx context.Context) error {
	p := *d.New
	p.SessionID, p.IdempotencyKey = d.SessionID, ""
	p.Relation = protocol.Relation{Kind: protocol.RelationChild, Parent: d.parent, Cause: "task " + string(d.id)}
	p.UsageLabel = cmp.Or(p.UsageLabel, subagentLabel)
	_, err := d.eng.Sessions.new(ctx, &sessionDraft{by: d.asker()}, &p)
	if errors.Is(err, persistence.ErrExists) { // another task of the same agent made it
		return nil
	}
	return err
}

// turn starts a turn of the child unless it exists, and waits for its report. The idempotency key
// is derived from the turn's id, so an attempt after a crash finds the turn that an earlier one
// started.
func (d *subagentRun) turn(ctx context.Context, id protocol.TurnID, input []protocol.InputPart) (*protocol.TurnReport, error) {
	t, err := d.eng.store.Turn(ctx, id)
	switch {
	case isMissing(err):
		var ceiling *protocol.Ceiling
		if ceiling, err = d.eng.turnCeiling(ctx, d.asker(), d.SessionID); err != nil {
			return nil, err
		}
		// Not cancelable: to stop the turn later, it must be known whether it was started.
		_, err = d.eng.Turns.start(context.WithoutCancel(ctx), id, ceiling, &protocol.TurnStartParams{
			Mutation: protocol.Mutation{IdempotencyKey: "turn:" + string(id)}, SessionID: d.SessionID, Input: input,
		})
	case err == nil && t.Session != d.SessionID:
		err = fmt.Errorf("turn %s is of another session", id)
	}
	if err != nil {
		return nil, err
	}
	return d.awaitTurn(ctx, id)
}

// awaitTurn waits until a turn and all turns that follow it in new frames have ended, and returns
// the last report. While the turn waits for a decision, the task is idle without a slot. When the
// turn continues, the task takes a slot again as soon as one is free; the turn does not wait for
// that.
func (d *subagentRun) awaitTurn(ctx context.Context, id protocol.TurnID) (*protocol.TurnReport, error) {
	for {
		again, turn := d.eng.childDecisionsChanged.Next(), d.eng.waits.of(id)
		report, err := d.eng.Turns.Read(ctx, &protocol.TurnParams{TurnID: id})
		if err != nil || report.State.Terminal() {
			d.eng.waits.end(id, nil) // the turn may have ended before the wait began; remove the entry, as no end will
		}
		var place chan<- struct{}
		switch idle := d.now().State == protocol.TaskIdle; {
		case err != nil:
			return nil, err
		case report.FollowedBy != "":
			id = report.FollowedBy
			continue
		case report.State.Terminal():
			return report, nil
		case report.State == protocol.TurnWaiting && !idle:
			err = d.becomeIdle(ctx, "a decision")
		case report.State != protocol.TurnWaiting && idle:
			place = d.slots // send only if a slot is free
		}
		if err != nil {
			return nil, err
		}
		select {
		case place <- struct{}{}:
			d.markClaimed()
			if err := d.resume(ctx); err != nil {
				return nil, err
			}
		case <-turn.over:
		case <-again:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-d.eng.done():
			return nil, ErrShuttingDown
		}
	}
}
