package engine

import (
	"context"
	"errors"

	"lashd/engine/graph"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// finish commits the turn, and tells whether it is stored. Until it is stored it is not over: want of space delays it, nothing else may. A turn that
// cannot be stored as it is ends with that as its outcome, and the head stays where it was.
func (r *run) finish() (stored bool) {
	r.capture()
	r.files.settle(true)
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

// ending is the commit of a turn that is over, and what holds in memory once it is stored.
type ending struct {
	commit *persistence.Commit
	events []logEvent
	result resultOf
	report *protocol.TurnReport
	total  protocol.Usage
	inputs []protocol.QueuedInput
	turns  []persistence.StoredTurn
	closed []*openDecision // of the turn: nobody waits for their answers any more
	next   *following      // goes on in another frame; nil: nothing does
	kept   func()
	moves  *moves
}

// complete stores a turn that is over, and has the session go on.
func (st *state) complete(ctx context.Context, r *run) error {
	e, err := st.ending(ctx, r)
	if err != nil {
		return err
	}
	before := st.row.Head.Leaf
	done, err := st.commitShown(ctx, e.commit, r.streamed, e.events...)
	if err != nil {
		e.moves.undo()
		return err
	}
	st.grow(before, done.Nodes)
	st.ended(r, e)
	switch {
	case e.next != nil:
		r.next = st.proceed(e.next)
	case r.full && r.given == nil:
		st.compactNext(r.id)
	}
	st.kick()
	return nil
}

// ending makes the commit of a turn: its nodes, what is said of them, its report, its usage, and what becomes of inputs, decisions
// and tasks.
func (st *state) ending(ctx context.Context, r *run) (*ending, error) {
	stored, ok := st.openTurn(r.id)
	if !ok {
		st.broken = ErrTurnNotActive
		return nil, st.broken
	}
	e := &ending{result: r.result(stored.Cancel)}
	e.total = st.totalWith(&e.result)
	to, err := st.switched(ctx, r, &e.result)
	if err != nil {
		return nil, err
	}
	e.commit = &persistence.Commit{
		Retire: []protocol.TurnID{r.id}, Usage: r.ledger(e.result, 0), Turned: true, Total: &e.total,
		Fence: persistence.Fence{Turn: r.id, Incarnation: st.eng.incarnation},
	}
	revision := st.row.Head.Revision
	if r.given == nil && len(r.nodes) > 0 {
		if graph.ResumeSafe(messagesOf(r.nodes)) != nil {
			return nil, errUnpaired
		}
		e.commit.Nodes = r.nodes
		revision++
	}
	e.report = r.report(e.result, revision)
	stored.State, stored.Report = e.report.State, e.report
	e.commit.Turns = []persistence.Turn{stored.Turn}
	e.events = r.closing(e.result)
	if to != nil {
		e.follow(st.follow(r, to))
	}
	return e, st.settle(r, e)
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
func (e *ending) follow(next *following) {
	next.into(e.commit)
	e.next, e.report.FollowedBy = next, next.turn.ID
	e.events = append(e.events, next.events...)
}

// ended has memory follow what is stored, and tells those who wait for the turn.
func (st *state) ended(r *run, e *ending) {
	e.kept()
	st.row.Usage, st.inputs, st.turns = e.total, e.inputs, e.turns
	st.row.TurnIndex++
	st.forget(e.closed)
	e.moves.settle()
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
func (r *run) closing(result resultOf) []logEvent {
	if r.given != nil {
		var events []logEvent
		for i := r.logged.Calls; i < len(result.Calls); i++ {
			events = append(events, logEvent{Event: protocol.Event{Type: protocol.EventModelRecorded, TurnID: r.id, Call: &result.Calls[i]}})
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
