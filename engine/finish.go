package engine

import (
	"context"
	"errors"

	"lashd/engine/change"
	"lashd/engine/graph"
	"lashd/engine/trace"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// finish commits the turn, and tells whether it is stored. Until it is stored it is not over: want of space delays it, nothing else may. A turn that
// cannot be stored as it is ends with that as its outcome, and the head stays where it was.
func (r *run) finish() (stored bool) {
	r.capture()
	r.files.Join(true)
	for {
		err := r.store.persist(r.life, func(ctx context.Context, st *state) error { return st.complete(ctx, r) })
		switch {
		case err == nil:
			return true
		case r.store.left():
			return false
		case r.result.discarded != nil:
			r.eng.Log.Error("the end of a turn is not stored", "turn", r.id, "error", err)
			if pause(r.life, spaceCheck) != nil {
				return false
			}
		default:
			r.eng.Log.Error("turn cannot be stored", "turn", r.id, "error", err)
			r.trace.add(trace.StoreError, trace.Failure{Error: err.Error()})
			r.result.discarded = &protocol.Issue{Kind: "store", Code: codeOf(err, "turn_not_finalised"), Message: err.Error()}
		}
	}
}

// errUnpaired means that history would have a tool call without its result.
var errUnpaired = errors.New("the turn left a tool call without a result")

// ending is a turn that is over, with what becomes of it.
type ending struct {
	result turn.Result
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
	e := &ending{result: r.result.result(stored.Cancel)}
	e.total = st.totalWith(&e.result)
	to, err := st.switched(ctx, r, &e.result)
	if err != nil {
		return err
	}
	c := st.change(persistence.Commit{
		Retire: []protocol.TurnID{r.id}, Usage: r.journal.ledger(e.result, 0), Turned: true, Total: &e.total,
		Fence: persistence.Fence{Turn: r.id, Incarnation: st.eng.incarnation},
	})
	c.Shown = r.journal.streamed
	if err := st.conclude(c, r, e, stored); err != nil {
		return err
	}
	if to != nil {
		e.follow(c, st.follow(r, to))
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
	st.stored.keep(c, r.result.kept(e.next != nil))
	if e.next == nil {
		st.tasks.In(c).TurnOver()
	}
	c.Then(func() { st.ended(r, e) })
	if err := st.commit(ctx, c); err != nil {
		return err
	}
	switch {
	case e.next != nil:
		r.next = st.proceed(e.next)
	case r.result.compacts && r.result.discarded == nil:
		st.history.compactNext(r.id)
	}
	st.startNextTurn()
	return nil
}

// conclude adds the turn's nodes, its report, and the last events about its items.
func (st *state) conclude(c *change.Change, r *run, e *ending, stored persistence.StoredTurn) error {
	revision := st.row.Head.Revision
	if r.result.discarded == nil && len(r.journal.nodes) > 0 {
		if graph.ResumeSafe(messagesOf(r.journal.nodes)) != nil {
			return errUnpaired
		}
		c.Nodes = r.journal.nodes
		revision++
	}
	e.report = r.result.reportOf(e.result, revision)
	stored.State, stored.Report = e.report.State, e.report
	c.Turns = []persistence.Turn{stored.Turn}
	if r.result.discarded != nil {
		c.Tell(r.journal.withdrawal(e.result)...)
	} else {
		c.Tell(r.journal.closing(e.result)...)
	}
	return nil
}

// totalWith is what the session has used with a turn. What cannot be counted fails the turn, and is not counted.
func (st *state) totalWith(result *turn.Result) protocol.Usage {
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
	r.journal.streamed, r.result.report, st.current = nil, e.report, nil
	r.lease.trail() // what follows may be with other plugins
	r.trace.end(e.report)
	st.eng.Log.Info("turn ended", "session", st.id, "turn", r.id, "state", e.report.State, "outcome", e.report.Outcome.Kind, "ms", e.report.DurationMs)
	st.turnOver(r.id, e.report)
}

func messagesOf(nodes []protocol.Node) []*protocol.Message {
	msgs := make([]*protocol.Message, len(nodes))
	for i := range nodes {
		msgs[i] = nodes[i].Message
	}
	return msgs
}
