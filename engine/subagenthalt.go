package engine

import (
	"errors"
	"time"

	"lashd/engine/task/subagent"
	"lashd/rpc/protocol"
)

// haltTimeout is how long a task waits for an interrupted turn to end. The request to interrupt it
// is stored before the wait, so the turn ends even if the wait times out.
const haltTimeout = 5 * time.Second

// halt interrupts the turns of the child, the first one and the one that corrects its answer, and
// waits up to haltTimeout for each. If a turn had ended by itself before, its outcome is the
// outcome of the task; nil means that none had. It keeps trying until the daemon stops, because a
// task must not end as stopped while its turn runs on.
func (d *subagentRun) halt() (out *protocol.TaskOutcome) {
	for _, id := range []protocol.TurnID{d.TurnID, d.retryTurnID()} {
		for {
			report, err := d.interrupt(id)
			if report != nil {
				out = d.finalOutcome(report)
			}
			if err == nil || errors.Is(err, ErrShuttingDown) || pause(d.eng.actorContext(), reloadDelay) != nil {
				break
			}
		}
	}
	return out
}

// finalOutcome returns the outcome of the task if a turn ended by itself with a final answer. It
// returns nil if the turn still runs, was cancelled, or gave an answer that a second turn had to
// correct.
func (d *subagentRun) finalOutcome(r *protocol.TurnReport) *protocol.TaskOutcome {
	if !r.State.Terminal() || r.State == protocol.TurnCancelled {
		return nil
	}
	out := subagent.Outcome(r, d.Output)
	if out.Code == subagent.OutputMismatch && r.TurnID != d.retryTurnID() {
		return nil
	}
	return out
}

// interrupt stops a turn and the turns that continue it in new frames. It returns the last report,
// or nil if there is no such turn.
func (d *subagentRun) interrupt(id protocol.TurnID) (last *protocol.TurnReport, err error) {
	ctx := d.eng.actorContext()
	for id != "" {
		report, err := d.eng.Turns.Read(ctx, &protocol.TurnParams{TurnID: id})
		switch {
		case isGone(err), err == nil && report.SessionID != d.SessionID:
			return last, nil
		case err != nil:
			return last, err
		}
		why := &protocol.TurnInterruptParams{TurnID: id, Reason: "task " + string(d.id) + " was cancelled"}
		if _, err = d.eng.Turns.Interrupt(ctx, "", why); err != nil && !isGone(err) {
			return last, err
		}
		last, err = d.eng.Turns.Wait(ctx, &protocol.TurnWaitParams{TurnID: id, TimeoutMs: haltTimeout.Milliseconds()})
		if err != nil {
			return last, err
		}
		id = last.FollowedBy
	}
	return last, nil
}
