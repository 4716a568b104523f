package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/receipt"
	"lashd/engine/tool"
	"lashd/engine/workgroup"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// sessionTurns starts the turns of a session, one at a time, and stores how they end. It owns the run of the turn that runs. Of the state it
// asks for changes and their commits, for what is next (queue, holds, decisions), for another try (alarm), and for what a turn begins with
// (settings, history, stored state).
type sessionTurns struct {
	st      *state
	current *run // nil: no turn runs
}

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
		r, err := ts.startOnce(ctx, id, ceiling, p)
		if !errors.Is(err, errHeadMoved) {
			return r, err
		}
	}
}

// isSlow reports whether an error is that of plugin code which did not return in time.
func isSlow(err error) bool {
	return errors.Is(err, workgroup.ErrSlowPlugin) || errors.As(err, new(*plugin.AbandonedError)) || errors.As(err, new(*tool.SlowError))
}

// try is start once its params make sense. Plugins that cannot be opened refuse nothing: with them the turn fails. Those that take
// too long refuse everything: it can be tried again. It fails with errPluginsMoved if the session has other settings than its plugins by now.
func (ts *Turns) startOnce(ctx context.Context, id protocol.TurnID, ceiling *protocol.Ceiling, p *protocol.TurnStartParams) (*protocol.TurnStartResult, error) {
	l, err := ts.eng.lend(ctx, p.SessionID)
	if isSlow(err) {
		return receipt.Repeated[protocol.TurnStartResult](ctx, ts.eng.store, "turn/start", p.Key(), p, err)
	}
	begun := false
	defer func() {
		if !begun {
			l.release()
		}
	}()
	return mutate(ctx, ts.eng, p.SessionID, "turn/start", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.TurnStartResult, error) {
		if err := cmp.Or(l.checkInputs(p.PluginInputs), unusedID(ctx, ts.eng.store, id), st.queue.CheckRoom()); err != nil {
			return nil, err
		}
		if st.turns.running() != nil && p.WhenBusy == protocol.BusySteer {
			if p.TurnOptions != nil {
				return nil, param.Bad("/turnOptions", "cannot be changed in a turn that runs")
			}
			return st.turns.steerInstead(ctx, ceiling, p, rc)
		}
		if busy := len(st.queue.Turns()) > 0; busy && p.WhenBusy == protocol.BusyRefuse {
			return nil, &TurnActiveError{TurnID: st.queue.Turns()[0].ID, Input: true}
		}
		r, err := st.turns.accept(ctx, id, protocol.QueuedInput{Input: p.Input, PluginInputs: p.PluginInputs, TurnOptions: p.TurnOptions, Ceiling: ceiling}, l, rc)
		begun = err == nil && r.State == protocol.TurnRunning
		return r, err
	})
}

// unusedID refuses an id for a new turn that another turn has already. No id is fine.
func unusedID(ctx context.Context, store *persistence.Store, id protocol.TurnID) error {
	if id == "" {
		return nil
	}
	_, err := store.Turn(ctx, id)
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
func (ts *sessionTurns) accept(ctx context.Context, id protocol.TurnID, in protocol.QueuedInput, l *lease, rc receipt.Request) (*protocol.TurnStartResult, error) {
	if ts.st.eng.group.Closed() {
		return nil, ErrShuttingDown
	}
	if err := ts.st.eng.store.Space(); err != nil {
		return nil, err
	}
	idle := len(ts.st.queue.Turns()) == 0 && !ts.st.holds.held()
	if idle && l != nil && !l.matches(ts.st) {
		return nil, errHeadMoved
	}
	c := ts.st.change(persistence.Commit{})
	in, turn := ts.st.queue.In(c).Start(c, id, in, idle)
	result := &protocol.TurnStartResult{TurnID: turn.ID, InputID: in.ID, State: turn.State, Seq: c.Seq()}
	c.Receipt = rc.With(result)
	if err := ts.st.commit(ctx, c); err != nil {
		return nil, err
	}
	if idle {
		ts.startStored(turnStart{turn: turn, lease: l})
	}
	return result, nil
}

// startNext starts the oldest turn that has not ended, if none runs. After a failure, such as a full disk, it tries again later.
func (ts *sessionTurns) startNext() {
	if ts.grantHold(); ts.st.holds.held() {
		return
	}
	for ts.current == nil && ts.st.broken == nil && len(ts.st.queue.Turns()) > 0 && !ts.st.alarm.retrying() && !ts.st.eng.group.Closed() {
		if ts.foreign(ts.st.queue.Turns()[0]) {
			return
		}
		if err := ts.startOldest(); err != nil {
			ts.st.eng.Log.Error("cannot start turn yet; retrying", "session", ts.st.id, "turn", ts.st.queue.Turns()[0].ID, "error", err)
			ts.st.alarm.retryLater()
		}
	}
}

// grantHold gives the session to the next command unless it is held.
func (ts *sessionTurns) grantHold() {
	if ts.st.holds.awaited() && !ts.st.holds.held() && !ts.begun() && ts.st.broken == nil && !ts.st.eng.group.Closed() {
		ts.st.holds.grant()
	}
}

// running is the turn that runs; nil: none does.
func (ts *sessionTurns) running() *run { return ts.current }

// runningID is the id of the turn that runs; empty: none does.
func (ts *sessionTurns) runningID() protocol.TurnID {
	if ts.current == nil {
		return ""
	}
	return ts.current.id
}

// free reports whether a turn that comes now can begin at once.
func (ts *sessionTurns) canStartNow() bool {
	st := ts.st
	return ts.current == nil && !st.holds.held() && !st.holds.awaited() && !st.alarm.retrying() && !st.eng.group.Closed()
}

// begun reports whether a turn runs, or has to go on.
func (ts *sessionTurns) begun() bool {
	return ts.current != nil || ts.st.queue.Begun()
}

// startWoken starts a turn if a wake was queued.
func (ts *sessionTurns) startWoken() {
	if ts.st.queue.TakeWake() {
		ts.startNext()
	}
}

// holdReason is why no turn of the queue starts now.
func (ts *sessionTurns) holdReason() protocol.QueueHold {
	switch {
	case len(ts.st.queue.Waiting()) == 0:
		return protocol.HoldEmpty
	case ts.st.eng.group.Closed():
		return protocol.HoldStopping
	case ts.current != nil && ts.st.decisions.AskedBy(ts.current.id) > 0:
		return protocol.HoldDecision
	case ts.current != nil:
		return protocol.HoldTurn
	case ts.st.holds.held():
		return protocol.HoldCommand
	case ts.foreign(ts.st.queue.Turns()[0]):
		return protocol.HoldForeign
	case ts.st.eng.store.Space() != nil:
		return protocol.HoldSpace
	}
	return protocol.HoldRetry
}

// foreign reports whether a turn was taken over by another daemon while this one served the session: it is left alone.
func (ts *sessionTurns) foreign(t persistence.StoredTurn) bool {
	return ts.st.reloaded && t.State != protocol.TurnQueued && t.Incarnation != ts.st.eng.incarnation
}

// startOldest starts the oldest turn. One that an earlier daemon drove is taken over.
func (ts *sessionTurns) startOldest() error {
	turn := ts.st.queue.Turns()[0]
	if ts.st.queue.TakeBegun(turn.ID) {
		return ts.start(turnStart{turn: turn})
	}
	resumed := turn.State != protocol.TurnQueued
	if !resumed {
		if ended, err := ts.dropExpired(turn); ended || err != nil {
			return err
		}
	}
	c := ts.st.change(persistence.Commit{Fence: persistence.Fence{Turn: turn.ID, Incarnation: turn.Incarnation}})
	next := ts.st.queue.In(c).Begin(c, turn, ts.st.decisions.AskedBy(turn.ID) > 0)
	if len(c.Turns) > 0 {
		if err := ts.st.commit(ts.st.ctx, c); err != nil {
			return err
		}
	}
	return ts.start(turnStart{turn: next, resumed: resumed})
}

// dropExpired cancels the wakes of a turn that is to start which came too late. If nothing is left of it, it ends, and does not start.
func (ts *sessionTurns) dropExpired(turn persistence.StoredTurn) (ended bool, err error) {
	c := ts.st.change(persistence.Commit{})
	over, some := ts.st.queue.In(c).DropExpired(c, turn.ID)
	if !some {
		return false, nil
	}
	ts.notifyEnds(c, over...)
	return len(over) > 0, ts.st.commit(ts.st.ctx, c)
}
