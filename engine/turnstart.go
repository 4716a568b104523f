package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/queue"
	"lashd/engine/receipt"
	"lashd/engine/tool"
	"lashd/engine/workgroup"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Start makes an input durable and, unless the session is busy, starts its turn.
func (ts *Turns) Start(ctx context.Context, p *protocol.TurnStartParams) (*protocol.TurnStartResult, error) {
	return ts.start(ctx, "", nil, p)
}

// start is Start with a chosen turn id and a ceiling; a client gives neither.
func (ts *Turns) start(ctx context.Context, id protocol.TurnID, ceiling *protocol.Ceiling, p *protocol.TurnStartParams) (*protocol.TurnStartResult, error) {
	if err := cmp.Or(param.CheckInput(p.Input), param.CheckPluginInputs(p.PluginInputs)); err != nil {
		return nil, err
	}
	if modes := []protocol.WhenBusy{"", protocol.BusyQueue, protocol.BusyRefuse, protocol.BusySteer}; !slices.Contains(modes, p.WhenBusy) {
		return nil, param.NotOneOf("/whenBusy", modes)
	}
	if err := ts.validate(ctx, p); err != nil {
		return receipt.Repeated[protocol.TurnStartResult](ctx, ts.eng.store, "turn/start", p.Key(), p, err)
	}
	for {
		r, err := ts.try(ctx, id, ceiling, p)
		if !errors.Is(err, errPluginsMoved) {
			return r, err
		}
	}
}

// isSlow reports whether an error is that of plugin code which did not return in time.
func isSlow(err error) bool {
	return errors.Is(err, workgroup.ErrSlowPlugin) || errors.As(err, new(*plugin.LeftError)) || errors.As(err, new(*tool.SlowError))
}

// try is startTurn once its params make sense. Plugins that cannot be opened refuse nothing: with them the turn fails. Those that take
// too long refuse everything: it can be tried again. It fails with errPluginsMoved if the session has other settings than its plugins by now.
func (ts *Turns) try(ctx context.Context, id protocol.TurnID, ceiling *protocol.Ceiling, p *protocol.TurnStartParams) (*protocol.TurnStartResult, error) {
	l, err := ts.eng.lend(ctx, p.SessionID)
	if isSlow(err) {
		return receipt.Repeated[protocol.TurnStartResult](ctx, ts.eng.store, "turn/start", p.Key(), p, err)
	}
	begun := false
	defer func() {
		if !begun {
			l.back()
		}
	}()
	return mutate(ctx, ts.eng, p.SessionID, "turn/start", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.TurnStartResult, error) {
		if err := cmp.Or(l.takes(p.PluginInputs), st.unusedID(ctx, id), st.queue.CheckRoom()); err != nil {
			return nil, err
		}
		if st.current != nil && p.WhenBusy == protocol.BusySteer {
			if p.TurnOptions != nil {
				return nil, param.Bad("/turnOptions", "cannot be changed in a turn that runs")
			}
			return st.steerInstead(ctx, ceiling, p, rc)
		}
		if busy := len(st.queue.Turns()) > 0; busy && p.WhenBusy == protocol.BusyRefuse {
			return nil, &TurnActiveError{TurnID: st.queue.Turns()[0].ID, Input: true}
		}
		r, err := st.accept(ctx, id, protocol.QueuedInput{Input: p.Input, PluginInputs: p.PluginInputs, TurnOptions: p.TurnOptions, Ceiling: ceiling}, l, rc)
		begun = err == nil && r.State == protocol.TurnRunning
		return r, err
	})
}

// unusedID refuses an id for a new turn that is one's already. None is fine.
func (st *state) unusedID(ctx context.Context, id protocol.TurnID) error {
	if id == "" {
		return nil
	}
	_, err := st.eng.store.Turn(ctx, id)
	switch {
	case isMissing(err):
		return nil
	case err != nil:
		return err
	}
	return &plugin.TurnRequestError{Code: plugin.TurnIDInUse, TurnID: id}
}

// accept commits a turn with its input, under its own id if it has one. If the session is idle, the turn is running from that
// commit on, and has the lease.
func (st *state) accept(ctx context.Context, id protocol.TurnID, in protocol.QueuedInput, l *lease, rc receipt.Request) (*protocol.TurnStartResult, error) {
	if st.eng.group.Closed() {
		return nil, ErrShuttingDown
	}
	if err := st.eng.store.Space(); err != nil {
		return nil, err
	}
	idle := len(st.queue.Turns()) == 0 && !st.holds.held()
	if idle && l != nil && !l.fits(st) {
		return nil, errPluginsMoved
	}
	turn := st.newTurn()
	turn.ID = cmp.Or(id, turn.ID)
	if idle {
		turn.State, turn.StartedMs = protocol.TurnRunning, turn.AcceptedMs
	}
	in.ID, in.TurnID, in.State, in.AtMs = protocol.NewInputID(), turn.ID, protocol.InputQueued, turn.AcceptedMs
	c := st.change(persistence.Commit{})
	q := st.queue.In(c)
	q.Accept(c, turn, in)
	result := &protocol.TurnStartResult{TurnID: turn.ID, InputID: in.ID, State: turn.State, Seq: c.Seq()}
	if !idle {
		q.TellWaiting(c)
	}
	c.Receipt = rc.With(result)
	if err := st.commit(ctx, c); err != nil {
		return nil, err
	}
	if idle {
		if err := st.drive(turn, false, l); err != nil {
			st.alarm.retryLater() // the input is durable, and that is what was asked for
		}
	}
	return result, nil
}

func (st *state) newTurn() persistence.StoredTurn {
	return queue.NewTurn(st.id, st.eng.incarnation, now())
}

// startNextTurn starts the oldest turn that has not ended, if none runs. What stands in the way, such as a full disk, is tried
// again later.
func (st *state) startNextTurn() {
	if st.grantHold(); st.holds.held() {
		return
	}
	for st.current == nil && st.broken == nil && len(st.queue.Turns()) > 0 && !st.alarm.retrying() && !st.eng.group.Closed() {
		if st.foreign(st.queue.Turns()[0]) {
			return
		}
		if err := st.startNext(); err != nil {
			st.eng.Log.Error("turn is not started yet", "session", st.id, "turn", st.queue.Turns()[0].ID, "error", err)
			st.alarm.retryLater()
		}
	}
}

// grantHold gives the session to the next command unless somebody has it.
func (st *state) grantHold() {
	if st.holds.awaited() && !st.holds.held() && !st.begun() && st.broken == nil && !st.eng.group.Closed() {
		st.holds.grant()
	}
}

// begun reports whether a turn runs, or has to go on.
func (st *state) begun() bool {
	return st.current != nil || st.queue.Begun()
}

// foreign tells that a turn was taken over by another daemon while this one served the session: it is left alone.
func (st *state) foreign(t persistence.StoredTurn) bool {
	return st.reloaded && t.State != protocol.TurnQueued && t.Incarnation != st.eng.incarnation
}

// startNext starts the oldest turn. One that an earlier daemon drove is taken over.
func (st *state) startNext() error {
	turn := st.queue.Turns()[0]
	if st.queue.TakeBegun(turn.ID) {
		return st.drive(turn, false, nil)
	}
	resumed := turn.State != protocol.TurnQueued
	if !resumed {
		if ended, err := st.dropExpired(turn); ended || err != nil {
			return err
		}
	}
	next := turn
	next.State, next.Incarnation = protocol.TurnRunning, st.eng.incarnation
	if next.StartedMs == 0 {
		next.StartedMs = now()
	}
	if st.decisions.AskedBy(turn.ID) > 0 {
		next.State = protocol.TurnWaiting
	}
	if !resumed || turn.Incarnation != next.Incarnation || turn.State != next.State {
		c := st.change(persistence.Commit{Fence: persistence.Fence{Turn: turn.ID, Incarnation: turn.Incarnation}})
		q := st.queue.In(c)
		q.SetTurn(c, next)
		if !resumed {
			q.TellWaiting(c)
		}
		if err := st.commit(st.ctx, c); err != nil {
			return err
		}
	}
	return st.drive(next, resumed, nil)
}

// dropExpired cancels the wakes of a turn that is to start which came too late. If nothing is left of it, it ends, and does not start.
func (st *state) dropExpired(turn persistence.StoredTurn) (ended bool, err error) {
	c := st.change(persistence.Commit{})
	over, some := st.queue.In(c).DropExpired(c, turn.ID)
	if !some {
		return false, nil
	}
	st.over(c, over)
	return len(over) > 0, st.commit(st.ctx, c)
}
