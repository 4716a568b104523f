package engine

import (
	"context"
	"time"

	"lashd/engine/change"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// drive starts the goroutine of a turn. A turn that cannot even be prepared ends with that as its outcome; an error
// means that not even this could be stored.
func (st *state) drive(turn persistence.StoredTurn, resumed bool) error {
	r := st.newRun(turn, resumed)
	if err := st.prepare(r, st.queue.Inputs()); err != nil {
		r.discard()
		return st.abandon(turn, err)
	}
	if turn.Cancel != nil {
		r.cancel(&cancelled{*turn.Cancel})
	}
	st.launch(r)
	return nil
}

func (st *state) newRun(turn persistence.StoredTurn, resumed bool) *run {
	r := &run{
		session: st.session, owner: st, id: turn.ID, started: time.Now(), startedMs: turn.StartedMs,
		acceptedMs: turn.AcceptedMs, resumed: resumed, ended: make(chan struct{}), cwd: st.row.Cwd, about: st.row,
		entering: turn.ID == st.frameTurn, entered: make(chan struct{}),
	}
	r.life, r.halt = context.WithCancelCause(st.ctx)
	r.ctx, r.cancel = context.WithCancelCause(r.life)
	return r
}

func (st *state) launch(r *run) {
	st.current = r
	st.show(st) // before the turn runs, so that whoever stops all turns finds it
	started := st.eng.goTurn(func() {
		defer close(r.ended)
		defer r.discard()
		defer r.leaveFiles()
		r.drive()
	})
	if !started {
		st.current = nil
		r.discard()
		return
	}
	if err := st.beginArmed(st.ctx, true); err != nil {
		st.eng.Log.Error("monitors are not begun yet", "session", st.id, "error", err)
	}
}

// abandon ends a turn that could not be prepared: its input is kept as evidence, its outcome says what is wrong.
func (st *state) abandon(turn persistence.StoredTurn, cause error) error {
	st.eng.Log.Error("turn cannot be run", "session", st.id, "turn", turn.ID, "error", cause)
	issue := protocol.Issue{Kind: "runtime", Code: codeOf(cause, "turn_not_prepared"), Message: cause.Error()}
	end := unstarted{
		turn: turn, state: protocol.TurnFailed, issues: []protocol.Issue{issue},
		outcome: protocol.TurnOutcome{Kind: protocol.OutcomeRuntimeError, Text: cause.Error()},
	}
	return st.endUnstarted(st.ctx, end, receipt{}, nil)
}

// unstarted is how a turn ends that does not run.
type unstarted struct {
	turn    persistence.StoredTurn
	state   protocol.TurnState
	outcome protocol.TurnOutcome
	issues  []protocol.Issue
}

func (st *state) endUnstarted(ctx context.Context, u unstarted, rc receipt, result any) error {
	turn := u.turn
	turn.State = u.state
	turn.Report = &protocol.TurnReport{
		TurnID: turn.ID, SessionID: st.id, State: u.state, Outcome: &u.outcome, Issues: u.issues,
		AcceptedAtMs: turn.AcceptedMs, StartedAtMs: turn.StartedMs,
	}
	events, err := st.retractions(ctx, u.turn)
	if err != nil {
		return err
	}
	c := st.change(persistence.Commit{Retire: []protocol.TurnID{turn.ID}, Receipt: rc.with(result)})
	q := st.queueIn(c)
	q.EndUnstarted(c, turn)
	c.Tell(events...)
	st.decisionsIn(c).turnOver(c, turn.ID)
	c.TellOf(protocol.Event{
		Type: protocol.EventTurnCompleted, TurnID: turn.ID, Outcome: &u.outcome, Issues: u.issues, Usage: &protocol.Usage{},
	})
	if u.turn.State == protocol.TurnQueued {
		q.TellWaiting(c)
	}
	c.Then(func() { st.turnOver(turn.ID, turn.Report) })
	return st.commit(ctx, c)
}

// retractions withdraw what an earlier run of the daemon told of a turn that will not become history.
func (st *state) retractions(ctx context.Context, turn persistence.StoredTurn) ([]change.Event, error) {
	if turn.State == protocol.TurnQueued {
		return nil, nil
	}
	rows, err := st.eng.store.Effects(ctx, turn.ID)
	if err != nil {
		return nil, err
	}
	logged, err := progressOf(rows)
	if err != nil {
		return nil, nil // the journal may be what is wrong with the turn
	}
	return logged.retractions(st.id, turn.ID), nil
}

// turnOver tells those who wait that a turn has ended.
func (st *state) turnOver(id protocol.TurnID, report *protocol.TurnReport) {
	st.show(st)
	st.eng.waits.end(id, report)
	st.eng.settled.Notify()
}
