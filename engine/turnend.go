package engine

import (
	"context"
	"errors"

	"lashd/engine/change"
	"lashd/engine/graph"
	"lashd/engine/receipt"
	"lashd/engine/trace"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// finish commits the end of the turn and reports whether it is stored. Lack of space only delays
// it. If the turn cannot be stored as it is, for example because it is too large, it is tried again
// with that error as its outcome and without becoming history; the head stays where it was. It
// returns false only if the turn is suspended.
func (r *run) finish() (stored bool) {
	r.capture()
	r.files.Join(true)
	for {
		err := r.store.storeWhenSpace(r.life, func(ctx context.Context, st *state) (err error) {
			r.next, err = st.turns.complete(ctx, r)
			return err
		})
		switch {
		case err == nil:
			return true
		case r.store.suspended():
			return false
		case r.result.discarded != nil:
			r.eng.Log.Error("cannot store the end of a turn", "turn", r.id, "error", err)
			if pause(r.life, spaceCheck) != nil {
				return false
			}
		default:
			r.eng.Log.Error("cannot store turn as history", "turn", r.id, "error", err)
			r.trace.add(trace.StoreError, trace.Failure{Error: err.Error()})
			r.result.discarded = &protocol.Issue{Kind: "store", Code: codeOf(err, "turn_not_finalised"), Message: err.Error()}
		}
	}
}

// errUnpaired means that a tool call of the turn has no result. No model accepts such a history, so
// it is never stored.
var errUnpaired = errors.New("the turn left a tool call without a result")

// ending collects how a turn ends while its commit is built.
type ending struct {
	result turn.Result
	report *protocol.TurnReport
	total  protocol.Usage // of the session, with this turn
	next   *continuation  // the turn that continues in another frame; nil: none
}

// complete commits the end of a turn and lets the session continue. It returns the run that
// continues in another frame, or nil. It runs on the actor, and everything is one commit: the
// report, the nodes, the usage, the events, the answered decisions, the plugin state and the turn
// that follows in a new frame. The order of its lines is the order of the events.
func (ts *sessionTurns) complete(ctx context.Context, r *run) (next *run, err error) {
	st := ts.st
	stored, ok := st.queue.Turn(r.id)
	if !ok {
		st.broken = ErrTurnNotActive
		return nil, st.broken
	}
	e := &ending{result: r.result.result(stored.Cancel)}
	e.total = ts.totalWith(&e.result)
	to, err := ts.nextFrame(ctx, r.id, &e.result)
	if err != nil {
		return nil, err
	}
	c := st.change(persistence.Commit{
		Retire: []protocol.TurnID{r.id}, Turned: true, Total: &e.total, Fence: persistence.Fence{Turn: r.id, Incarnation: st.eng.incarnation},
	})
	if e.report, err = r.addEnd(c, stored, e.result, st.row.Head.Revision); err != nil {
		return nil, err
	}
	if to != nil {
		e.next = ts.continueInFrame(r, to)
		e.next.addTo(c)
		if err := st.stored.clearExecution(ctx, c); err != nil {
			return nil, err
		}
		e.report.FollowedBy = e.next.turn.ID
	}
	st.decisions.TurnOver(c, r.id)
	r.files.Close(c)
	c.TellOf(protocol.Event{Type: protocol.EventUsageUpdated, TurnID: r.id, Usage: &e.result.Usage, Total: &e.total})
	c.TellOf(protocol.Event{Type: protocol.EventTurnCompleted, TurnID: r.id, Outcome: e.result.Outcome, Usage: &e.result.Usage, Issues: e.report.Issues, Follower: e.report.FollowedBy})
	if e.next == nil {
		st.queue.In(c).TurnOver(c, r.id)
	} else {
		st.queue.In(c).GoOn(c, r.id, e.next.turn, e.next.input)
	}
	st.stored.keep(c, r.result.stateToStore(e.next != nil))
	if e.next == nil {
		st.tasks.In(c).TurnOver()
	}
	c.Then(func() { ts.ended(r, e) })
	if err := st.commit(ctx, c); err != nil {
		return nil, err
	}
	switch {
	case e.next != nil:
		next = ts.startStored(turnStart{turn: e.next.turn, newFrame: true})
	case r.result.compactsHistory():
		st.history.compactNext(r.id)
	}
	ts.startNext()
	return next, nil
}

// addEnd adds to the change that ends the turn its row with the report, its nodes, its usage and
// the last events of its items. revision is that of the head before the turn.
func (r *run) addEnd(c *change.Change, stored persistence.StoredTurn, result turn.Result, revision int64) (*protocol.TurnReport, error) {
	c.Usage, c.Shown = r.journal.ledger(result, 0), r.journal.streamed
	r.journal.audits.AddTo(c)
	switch {
	case r.result.discarded != nil:
		c.Tell(r.journal.withdrawal(result)...)
	case graph.ResumeSafe(messagesOf(r.journal.nodes)) != nil:
		return nil, errUnpaired
	default:
		c.Nodes = r.journal.nodes
		c.Tell(r.journal.closing(result)...)
	}
	if len(c.Nodes) > 0 {
		revision++
	}
	stored.Report = r.result.reportOf(result, revision)
	stored.State = stored.Report.State
	c.Turns = []persistence.Turn{stored.Turn}
	return stored.Report, nil
}

// totalWith returns the session's usage including the turn. If the sum overflows, the turn fails
// and is not counted.
func (ts *sessionTurns) totalWith(result *turn.Result) protocol.Usage {
	total, err := ts.st.row.Usage.Add(result.Usage)
	if err != nil {
		fail(result, protocol.Issue{Kind: "runtime", Code: "token_usage_overflow", Message: err.Error()})
		return ts.st.row.Usage
	}
	return total
}

// ended updates memory after the end of a turn is stored, and wakes the goroutines that wait for
// it. It runs as part of the commit, before any other function of the actor.
func (ts *sessionTurns) ended(r *run, e *ending) {
	ts.current = nil
	ts.st.row.Usage = e.total
	ts.st.row.TurnIndex++
	r.markStored(e.report)
	ts.st.eng.Log.Info("turn ended", "session", ts.st.id, "turn", r.id, "state", e.report.State, "outcome", e.report.Outcome.Kind, "ms", e.report.DurationMs)
	ts.notifyEnd(r.id, e.report)
}

// markStored records that the turn is stored as reported. From here on the session may replace the
// plugins.
func (r *run) markStored(report *protocol.TurnReport) {
	r.journal.streamed, r.result.report = nil, report
	r.lease.allowReplace() // the next turn may use other plugins
	r.trace.end(report)
}

// messagesOf returns the messages of nodes that all have one.
func messagesOf(nodes []protocol.Node) []*protocol.Message {
	msgs := make([]*protocol.Message, len(nodes))
	for i := range nodes {
		msgs[i] = nodes[i].Message
	}
	return msgs
}

// abandonRun abandons a turn whose goroutine could not prepare it, and starts the next one. If that
// cannot be stored, the turn is tried again later. It runs on the actor, for the turn's goroutine.
func (ts *sessionTurns) abandonRun(r *run, cause error) {
	ts.current = nil
	if turn, ok := ts.st.queue.Turn(r.id); ok {
		if err := ts.abandon(turn, cause); err != nil {
			ts.st.eng.Log.Error("cannot start turn yet; retrying", "session", ts.st.id, "turn", r.id, "error", err)
			ts.st.alarm.RetryAfter(spaceCheck)
		}
	}
	ts.startNext()
}

// abandon ends a turn that could not be prepared, with the cause as its outcome. Its input stays in
// the store.
func (ts *sessionTurns) abandon(turn persistence.StoredTurn, cause error) error {
	ts.st.eng.Log.Error("cannot prepare turn", "session", ts.st.id, "turn", turn.ID, "error", cause)
	issue := protocol.Issue{Kind: "runtime", Code: codeOf(cause, "turn_not_prepared"), Message: cause.Error()}
	end := unstarted{
		turn: turn, issues: []protocol.Issue{issue}, outcome: protocol.TurnOutcome{Kind: protocol.OutcomeRuntimeError, Text: cause.Error()},
	}
	return ts.endUnstarted(ts.st.ctx, end, receipt.Request{}, nil)
}

// unstarted describes the end of a turn that never ran.
type unstarted struct {
	turn    persistence.StoredTurn
	outcome protocol.TurnOutcome
	issues  []protocol.Issue
}

// endUnstarted commits the end of a turn that does not run: it was cancelled in the queue, expired
// or could not be prepared. Its report has the outcome and no calls. result is stored under the
// receipt of the request that ends it, if there is one. It runs on the actor.
func (ts *sessionTurns) endUnstarted(ctx context.Context, u unstarted, rc receipt.Request, result any) error {
	turn := u.turn
	turn.State = u.outcome.State()
	turn.Report = &protocol.TurnReport{
		TurnID: turn.ID, SessionID: ts.st.id, State: turn.State, Outcome: &u.outcome, Issues: u.issues,
		AcceptedAtMs: turn.AcceptedMs, StartedAtMs: turn.StartedMs,
	}
	events, err := ts.retractions(ctx, u.turn)
	if err != nil {
		return err
	}
	c := ts.st.change(persistence.Commit{Retire: []protocol.TurnID{turn.ID}, Receipt: rc.With(result)})
	q := ts.st.queue.In(c)
	q.EndUnstarted(c, turn)
	c.Tell(events...)
	ts.st.decisions.TurnOver(c, turn.ID)
	c.TellOf(protocol.Event{
		Type: protocol.EventTurnCompleted, TurnID: turn.ID, Outcome: &u.outcome, Issues: u.issues, Usage: &protocol.Usage{},
	})
	if u.turn.State == protocol.TurnQueued {
		q.TellWaiting(c)
	}
	ts.notifyEnds(c, turn)
	return ts.st.commit(ctx, c)
}

// retractions returns the events that withdraw items which an earlier daemon published for a turn
// that will not become history.
func (ts *sessionTurns) retractions(ctx context.Context, turn persistence.StoredTurn) ([]change.Event, error) {
	if turn.State == protocol.TurnQueued {
		return nil, nil
	}
	rows, err := ts.st.eng.store.Effects(ctx, turn.ID)
	if err != nil {
		return nil, err
	}
	logged, err := progressOf(rows)
	if err != nil {
		return nil, nil // the journal may be what is wrong with the turn
	}
	return logged.retractions(ts.st.id, turn.ID), nil
}

// notifyEnd publishes the session's new state and wakes the goroutines that wait for the turn.
func (ts *sessionTurns) notifyEnd(id protocol.TurnID, report *protocol.TurnReport) {
	ts.st.show(ts.st)
	ts.st.eng.waits.end(id, report)
	ts.st.eng.sessionIdle.Notify()
}

// notifyEnds calls notifyEnd for turns that a change ends, once the change is stored.
func (ts *sessionTurns) notifyEnds(c *change.Change, ended ...persistence.StoredTurn) {
	for _, t := range ended {
		c.Then(func() { ts.notifyEnd(t.ID, t.Report) })
	}
}
