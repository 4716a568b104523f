package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// A subagent is a task that runs as a turn of a child session. The spec contains the ids of both. So an attempt after a crash
// creates neither again and waits for the same turn, which the child session runs and recovers like any other.

// subagentLabel is that under which a parent's ledger shows what its subagents use.
const subagentLabel = "subagent"

// subagentRun is an attempt at a subagent.
type subagentRun struct {
	*work
	*protocol.TaskChild
	parent protocol.SessionID // the session that started the task; stays the child's parent if the task is transferred
}

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

// passing tells whether an error is one of a disk, or of a session that is loaded anew: what was begun goes on after it.
func isTransient(err error) bool {
	return slices.ContainsFunc([]error{persistence.ErrFull, persistence.ErrBusy, persistence.ErrBudget, ErrReloaded}, func(e error) bool { return errors.Is(err, e) })
}

// run is the turn, and another one if what it comes to is not what is wanted.
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
	out := d.outcome(report)
	if out.Code != outputMismatch {
		return out, nil
	}
	again := fmt.Sprintf("Your answer does not match the required schema: %s. Answer again with only JSON that matches this schema:\n%s", out.Message, d.Output)
	if report, err = d.turn(ctx, d.retryTurnID(), []protocol.InputPart{{Type: protocol.InputText, Text: again}}); err != nil {
		return nil, err
	}
	return d.outcome(report), nil
}

// second is the turn in which the child corrects its answer.
func (d *subagentRun) retryTurnID() protocol.TurnID { return d.TurnID + "_again" }

// queue waits for the task that comes before.
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

// find sees to it that there is the child, which has to work for the parent.
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

// asker is the session that started the task, within what it could do then.
func (d *subagentRun) asker() *requester {
	return &requester{session: d.parent, ceiling: d.now().Origin.Ceiling}
}

func (d *subagentRun) createChild(ctx context.Context) error {
	p := *d.New
	p.SessionID, p.IdempotencyKey = d.SessionID, ""
	p.Relation = protocol.Relation{Kind: protocol.RelationChild, Parent: d.parent, Cause: "task " + string(d.id)}
	p.UsageLabel = cmp.Or(p.UsageLabel, subagentLabel)
	_, err := d.eng.Sessions.new(ctx, d.asker(), &p)
	if errors.Is(err, persistence.ErrExists) { // another task of the same agent made it
		return nil
	}
	return err
}

// turn is the report of a turn of the child, which is started if it was not.
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

// watch waits until a turn has ended, and the turns that follow it in new frames. The task is idle while a person is asked.
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
