package engine

import (
	"context"
	"errors"

	"lashd/engine/change"
	"lashd/engine/graph"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// finish commits the turn, and tells whether it is stored. Until it is stored it is not over: want of space delays it, nothing else may. A turn that
// cannot be stored as it is ends with that as its outcome, and the head stays where it was.
func (r *run) finish() (stored bool) {
	r.capture()
	r.files.joinLook(true)
	for {
		err := r.persist(r.life, func(ctx context.Context, st *state) error { return st.complete(ctx, r) })
		switch {
		case err == nil:
			return true
		case r.left():
			return false
		case r.given != nil:
			r.eng.Log.Error("the end of a turn is not stored", "turn", r.id, "error", err)
			if pause(r.life, spaceCheck) != nil {
				return false
			}
		default:
			r.eng.Log.Error("turn cannot be stored", "turn", r.id, "error", err)
			r.trace(TraceStoreError, tracedError{Error: err.Error()})
			r.given = &givenUp{protocol.Issue{Kind: "store", Code: codeOf(err, "turn_not_finalised"), Message: err.Error()}}
		}
	}
}

// errUnpaired means that history would have a tool call without its result.
var errUnpaired = errors.New("the turn left a tool call without a result")

// ending is a turn that is over, with what becomes of it.
type ending struct {
	result resultOf
	report *protocol.TurnReport
	total  protocol.Usage
	next   *following // goes on in another frame; nil: nothing does
}

// complete stores a turn that is over, and has the session go on. The order of the events is the order of its lines.
func (st *state) complete(ctx context.Context, r *run) error {
	stored, ok := st.queue.Turn(r.id)
	if !ok {
		st.broken = ErrTurnNotActive
		return st.broken
	}
	e := &ending{result: r.result(stored.Cancel)}
	e.total = st.totalWith(&e.result)
	to, err := st.switched(ctx, r, &e.result)
	if err != nil {
		return err
	}
	c := st.change(persistence.Commit{
		Retire: []protocol.TurnID{r.id}, Usage: r.ledger(e.result, 0), Turned: true, Total: &e.total,
		Fence: persistence.Fence{Turn: r.id, Incarnation: st.eng.incarnation},
	})
	c.Shown = r.streamed
	if err := st.conclude(c, r, e, stored); err != nil {
		return err
	}
	if to != nil {
		e.follow(c, st.follow(r, to))
	}
	st.decisionsIn(c).turnOver(c, r.id)
	c.Tell(r.files.close(&c.Commit)...)
	c.TellOf(protocol.Event{Type: protocol.EventUsageUpdated, TurnID: r.id, Usage: &e.result.Usage, Total: &e.total})
	c.TellOf(protocol.Event{Type: protocol.EventTurnCompleted, TurnID: r.id, Outcome: e.result.Outcome, Usage: &e.result.Usage, Issues: e.report.Issues, Follower: e.report.FollowedBy})
	if e.next == nil {
		st.queueIn(c).TurnOver(c, r.id)
	} else {
		st.queueIn(c).GoOn(c, r.id, e.next.turn, e.next.input)
	}
	st.keep(c, r.kept(e.next != nil))
	if e.next == nil {
		st.tasksIn(c).turnOver()
	}
	c.Then(func() { st.ended(r, e) })
	if err := st.commit(ctx, c); err != nil {
		return err
	}
	switch {
	case e.next != nil:
		r.next = st.proceed(e.next)
	case r.full && r.given == nil:
		st.compactNext(r.id)
	}
	st.startNextTurn()
	return nil
}

// conclude adds the turn's nodes, its report, and the last events about its items.
func (st *state) conclude(c *change.Change, r *run, e *ending, stored persistence.StoredTurn) error {
	revision := st.row.Head.Revision
	if r.given == nil && len(r.nodes) > 0 {
		if graph.ResumeSafe(messagesOf(r.nodes)) != nil {
			return errUnpaired
		}
		c.Nodes = r.nodes
		revision++
	}
	e.report = r.report(e.result, revision)
	stored.State, stored.Report = e.report.State, e.report
	c.Turns = []persistence.Turn{stored.Turn}
	c.Tell(r.closing(e.result)...)
	return nil
}

// totalWith is what the session has used with a turn. What cannot be counted fails the turn, and is not counted.
func (st *state) totalWith(result *resultOf) protocol.Usage {
	total, err := st.row.Usage.Add(result.Usage)
	if err != nil {
		fail(result, protocol.Issue{Kind: "runtime", Code: "token_usage_overflow", Message: err.Error()})
		return st.row.Usage
	}
	return total
}

// follow has another turn go on in the place of the one that ends.
func (e *ending) follow(c *change.Change, next *following) {
	next.into(&c.Commit)
	e.next, e.report.FollowedBy = next, next.turn.ID
	c.Tell(next.events...)
}

// ended has memory follow what is stored, and tells those who wait for the turn.
func (st *state) ended(r *run, e *ending) {
	st.row.Usage = e.total
	st.row.TurnIndex++
	r.streamed, r.told, st.current = nil, e.report, nil
	r.lease.trail() // what follows may be with other plugins
	r.traceEnd(e.report)
	st.eng.Log.Info("turn ended", "session", st.id, "turn", r.id, "state", e.report.State, "outcome", e.report.Outcome.Kind, "ms", e.report.DurationMs)
	st.turnOver(r.id, e.report)
}

// kept is what plugins keep of the turn. What cannot be stored with it may be that; what the code executor keeps is of the
// frame that the turn was in.
func (r *run) kept(left bool) *captured {
	switch {
	case r.given != nil:
		r.captured = nil
	case r.captured != nil && left:
		k := *r.captured
		k.execution = nil
		return &k
	}
	return r.captured
}

func messagesOf(nodes []protocol.Node) []*protocol.Message {
	msgs := make([]*protocol.Message, len(nodes))
	for i := range nodes {
		msgs[i] = nodes[i].Message
	}
	return msgs
}

// closing are the last news of a turn, and the withdrawal of what it told of that does not become history.
func (r *run) closing(result resultOf) []change.Event {
	if r.given != nil {
		var events []change.Event
		for i := r.logged.Calls; i < len(result.Calls); i++ {
			events = append(events, change.Event{Event: protocol.Event{Type: protocol.EventModelRecorded, TurnID: r.id, Call: &result.Calls[i]}})
		}
		return append(events, r.logged.retractions(r.session.id, r.id)...)
	}
	_, events := r.news(result)
	if gone := len(r.logged.Nodes) - len(r.nodes); gone > 0 { // the journal was told of more than could be replayed
		all := r.logged.retractions(r.session.id, r.id)
		kept := progress{Nodes: r.logged.Nodes[:len(r.nodes)]}
		events = append(events, all[len(kept.retractions(r.session.id, r.id)):]...)
	}
	return events
}
