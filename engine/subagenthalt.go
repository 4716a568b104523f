package engine

import (
	"errors"
	"time"

	"lashd/rpc/protocol"
)

// haltPatience is how long a task waits for its turn to end that is interrupted. That it will is durable then.
const haltTimeout = 5 * time.Second

// halt has the turns of the child end. One that had ended by itself tells what the task came to; nil: none had.
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

// unasked is what the task came to if a turn had ended by itself, and had not to be asked again; else nil.
func (d *subagentRun) finalOutcome(r *protocol.TurnReport) *protocol.TaskOutcome {
	if !r.State.Terminal() || r.State == protocol.TurnCancelled {
		return nil
	}
	out := d.outcome(r)
	if out.Code == outputMismatch && r.TurnID != d.retryTurnID() {
		return nil
	}
	return out
}

// interrupt stops a turn and those that go on from it, and gives the last one as it is then; nil: there is none.
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
