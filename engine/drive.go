package engine

import (
	"context"
	"time"

	"lashd/engine/change"
	"lashd/engine/receipt"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// drive starts the goroutine of a turn, which gets a lease of the plugins if somebody has one for it, and else takes one itself. A turn that
// cannot even be prepared ends with that as its outcome; an error means that not even this could be stored.
func (st *state) drive(turn persistence.StoredTurn, resumed bool, l *lease) error {
	r := st.newRun(turn, resumed)
	r.lease = l
	err := st.begin(r)
	if err == nil && l != nil {
		err = st.collect(r)
	}
	if err != nil {
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
		session: st.session, owner: st, id: turn.ID, ended: make(chan struct{}),
		journal: journal{session: st.id, turn: turn.ID}, files: st.eng.Files.NewPoint(st.id, st.key, turn.ID, st.row.Cwd),
		entering: turn.ID == st.frameTurn, entered: make(chan struct{}),
	}
	r.result = turnResult{journal: &r.journal, started: time.Now(), startedMs: turn.StartedMs, acceptedMs: turn.AcceptedMs, resumed: resumed}
	r.life, r.halt = context.WithCancelCause(st.ctx)
	r.ctx, r.cancel = context.WithCancelCause(r.life)
	r.judge = judge{config: &r.journal.begin.Config, cwd: st.row.Cwd, asker: st.row.Authority.Ceiling}
	r.trace = turnTrace{out: st.eng.Trace, session: st.id, turn: turn.ID, journal: &r.journal}
	r.store = &turnStore{session: st.session, owner: st, turn: turn.ID, life: r.life, halt: r.halt, journal: &r.journal, files: r.files, trace: r.trace}
	r.asks = asks{turnStore: r.store, judge: &r.judge}
	r.hooks = &hooks{session: st.session, caller: r, judge: &r.judge, trace: r.trace}
	r.seams = &seams{hooks: r.hooks, store: r.store, journal: &r.journal, result: &r.result, about: st.row}
	r.prompt = &prompt{seams: r.seams}
	r.emissions = emissions{eng: st.eng, turn: turn.ID, cwd: st.row.Cwd, life: r.life}
	return r
}

// discard ends a run that has ended or never began.
func (r *run) discard() {
	r.halt(nil)
	r.lease.back()
}

func (st *state) launch(r *run) {
	st.current = r
	st.show(st) // before the turn runs, so that whoever stops all turns finds it
	started := st.eng.group.GoTurn(func() {
		defer close(r.ended)
		defer r.discard()
		defer func() {
			r.files.Release()
			r.eng.tidyFiles()
		}()
		r.drive()
	})
	if !started {
		st.current = nil
		r.discard()
	}
}

// abandonRun is abandon for a turn whose goroutine has begun, and has the session go on.
func (st *state) abandonRun(r *run, cause error) {
	st.current = nil
	if turn, ok := st.queue.Turn(r.id); ok {
		if err := st.abandon(turn, cause); err != nil {
			st.eng.Log.Error("turn is not started yet", "session", st.id, "turn", r.id, "error", err)
			st.alarm.retryLater()
		}
	}
	st.startNextTurn()
}

// abandon ends a turn that could not be prepared: its input is kept as evidence, its outcome says what is wrong.
func (st *state) abandon(turn persistence.StoredTurn, cause error) error {
	st.eng.Log.Error("turn cannot be run", "session", st.id, "turn", turn.ID, "error", cause)
	issue := protocol.Issue{Kind: "runtime", Code: codeOf(cause, "turn_not_prepared"), Message: cause.Error()}
	end := unstarted{
		turn: turn, state: protocol.TurnFailed, issues: []protocol.Issue{issue},
		outcome: protocol.TurnOutcome{Kind: protocol.OutcomeRuntimeError, Text: cause.Error()},
	}
	return st.endUnstarted(st.ctx, end, receipt.Request{}, nil)
}

// unstarted is how a turn ends that does not run.
type unstarted struct {
	turn    persistence.StoredTurn
	state   protocol.TurnState
	outcome protocol.TurnOutcome
	issues  []protocol.Issue
}

func (st *state) endUnstarted(ctx context.Context, u unstarted, rc receipt.Request, result any) error {
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
	c := st.change(persistence.Commit{Retire: []protocol.TurnID{turn.ID}, Receipt: rc.With(result)})
	q := st.queue.In(c)
	q.EndUnstarted(c, turn)
	c.Tell(events...)
	st.decisions.TurnOver(c, turn.ID)
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
