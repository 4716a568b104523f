package engine

import (
	"cmp"
	"context"
	"errors"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/receipt"
	"lashd/engine/structured"
	"lashd/engine/tool"
	"lashd/engine/workgroup"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// sessionTurns starts the turns of a session, one at a time, and stores how they end. It owns the
// current run. It uses the state for commits, for what comes next (queue, holds, decisions), for
// retries (alarm) and for what a turn begins with (settings, history, stored state). All methods
// run on the actor.
type sessionTurns struct {
	st      *state
	current *run // nil: no turn runs
}

// Start stores an input and starts its turn. If the session is busy, p.WhenBusy decides: queue it
// (the default), reject it, or steer the running turn. It returns once the input is stored; use
// Wait for the end of the turn. It opens the session's plugins first, which may take as long as
// plugin code does.
func (ts *Turns) Start(ctx context.Context, p *protocol.TurnStartParams) (*protocol.TurnStartResult, error) {
	return ts.start(ctx, "", nil, p)
}

// start is Start for callers inside the daemon. They may set the id of the turn, and a ceiling: the
// limits of the plugin or session that requested it. If the session's plugins change before
// the turn is stored, start runs startOnce again.
func (ts *Turns) start(ctx context.Context, id protocol.TurnID, ceiling *protocol.Ceiling, p *protocol.TurnStartParams) (*protocol.TurnStartResult, error) {
	if err := param.CheckTurnStart(p); err != nil {
		return nil, err
	}
	schema, err := structured.Schema(p.Schema)
	if err != nil {
		return nil, param.Bad("/schema", "%v", err)
	}
	input, err := ts.eng.attachments().Prepare(ctx, p.SessionID, p.Input)
	if err = cmp.Or(err, ts.validate(ctx, p)); err != nil {
		return receipt.Repeated[protocol.TurnStartResult](ctx, ts.eng.store, "turn/start", p.Key(), p, err)
	}
	for {
		r, err := ts.startOnce(ctx, id, p, protocol.QueuedInput{Input: input.Parts, PluginInputs: p.PluginInputs, TurnOptions: p.TurnOptions, Ceiling: ceiling, Effort: p.Effort, Iterations: p.Iterations, Schema: schema}, input.Blobs)
		if !errors.Is(err, errHeadMoved) {
			return r, err
		}
	}
}

// isSlow reports whether an error says that plugin code did not return in time.
func isSlow(err error) bool {
	return errors.Is(err, workgroup.ErrSlowPlugin) || errors.As(err, new(*plugin.AbandonedError)) || errors.As(err, new(*tool.SlowError))
}

// startOnce is start after its params were checked; in is the input with its blobs, as it will be stored. Plugins that cannot be opened do not reject the
// input: the turn then fails with the reason, which the conversation shows. Plugins that take too
// long do reject it, because a retry may succeed. It fails with errHeadMoved if the session's
// settings changed after the plugins were leased. The lease goes to the turn if that starts at
// once.
func (ts *Turns) startOnce(ctx context.Context, id protocol.TurnID, p *protocol.TurnStartParams, in protocol.QueuedInput, blobs []persistence.Blob) (*protocol.TurnStartResult, error) {
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
		if err := cmp.Or(l.checkInputs(p.PluginInputs), unusedID(ctx, ts.eng.store, id), param.CheckEffort(st.row.Config.Model.WithEffort(p.Effort)), st.queue.CheckRoom()); err != nil {
			return nil, err
		}
		if st.turns.running() != nil && p.WhenBusy == protocol.BusySteer {
			if err := param.CheckSteer(p); err != nil {
				return nil, err
			}
			return st.turns.steerInstead(ctx, in, blobs, rc)
		}
		if busy := len(st.queue.Turns()) > 0; busy && p.WhenBusy == protocol.BusyRefuse {
			return nil, &TurnActiveError{TurnID: st.queue.Turns()[0].ID, Input: true}
		}
		r, err := st.turns.accept(ctx, id, in, blobs, l, rc)
		begun = err == nil && r.State == protocol.TurnRunning
		return r, err
	})
}

// unusedID fails if a turn with this id exists. An empty id passes.
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

// accept commits an input with its blobs and its turn. If the session is idle, the turn counts as running from
// that commit on and takes over the lease; the caller must not release the lease then. It fails
// with errHeadMoved if the lease does not fit the session's settings any more, and with
// persistence.ErrFull if the store lacks space for new work.
func (ts *sessionTurns) accept(ctx context.Context, id protocol.TurnID, in protocol.QueuedInput, blobs []persistence.Blob, l *lease, rc receipt.Request) (*protocol.TurnStartResult, error) {
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
	c := ts.st.change(persistence.Commit{Blobs: blobs})
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

// startNext grants a waiting hold or starts the oldest queued turn, if nothing runs. Waiting
// commands come before queued turns. After a failure, such as a full disk, it tries again later. It
// is called after everything that may make the session free.
func (ts *sessionTurns) startNext() {
	if ts.grantHold(); ts.st.holds.held() {
		return
	}
	for ts.current == nil && ts.st.broken == nil && len(ts.st.queue.Turns()) > 0 && !ts.st.alarm.Retrying() && !ts.st.eng.group.Closed() {
		if ts.foreign(ts.st.queue.Turns()[0]) {
			return
		}
		if err := ts.startOldest(); err != nil {
			ts.st.eng.Log.Error("cannot start turn yet; retrying", "session", ts.st.id, "turn", ts.st.queue.Turns()[0].ID, "error", err)
			ts.st.alarm.RetryAfter(spaceCheck)
		}
	}
}

// grantHold gives the session to the next waiting command or task, unless it is held or a turn has
// begun.
func (ts *sessionTurns) grantHold() {
	if ts.st.holds.awaited() && !ts.st.holds.held() && !ts.begun() && ts.st.broken == nil && !ts.st.eng.group.Closed() {
		ts.st.holds.grant()
	}
}

// running returns the running turn, or nil.
func (ts *sessionTurns) running() *run { return ts.current }

// runningID returns the id of the running turn, or an empty id.
func (ts *sessionTurns) runningID() protocol.TurnID {
	if ts.current == nil {
		return ""
	}
	return ts.current.id
}

// canStartNow reports whether a turn that is accepted now starts at once.
func (ts *sessionTurns) canStartNow() bool {
	st := ts.st
	return ts.current == nil && !st.holds.held() && !st.holds.awaited() && !st.alarm.Retrying() && !st.eng.group.Closed()
}

// begun reports whether a turn runs or has to be resumed.
func (ts *sessionTurns) begun() bool {
	return ts.current != nil || ts.st.queue.Begun()
}

// startWoken starts a turn if a commit has queued a wake. The actor calls it after each function.
func (ts *sessionTurns) startWoken() {
	if ts.st.queue.TakeWake() {
		ts.startNext()
	}
}

// holdReason returns why no queued turn starts now, for clients that show the queue.
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

// foreign reports whether another daemon took a turn over while this one served the session, which
// can happen only if two daemons use one store. Such a turn is not touched.
func (ts *sessionTurns) foreign(t persistence.StoredTurn) bool {
	return ts.st.reloaded && t.State != protocol.TurnQueued && t.Incarnation != ts.st.eng.incarnation
}

// startOldest starts the oldest turn of the queue. A turn that an earlier daemon ran is taken over:
// the commit sets this daemon's incarnation, which fences off the earlier daemon.
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

// dropExpired removes expired wakes from a turn that is about to start. If no input is left, the
// turn ends without starting.
func (ts *sessionTurns) dropExpired(turn persistence.StoredTurn) (ended bool, err error) {
	c := ts.st.change(persistence.Commit{})
	over, some := ts.st.queue.In(c).DropExpired(c, turn.ID)
	if !some {
		return false, nil
	}
	ts.notifyEnds(c, over...)
	return len(over) > 0, ts.st.commit(ts.st.ctx, c)
}
