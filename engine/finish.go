package engine

import (
	"context"
	"errors"
	"slices"

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

// complete is the commit of a turn: its nodes, what is said of them, its report, its usage, and what becomes of inputs.
func (st *state) complete(ctx context.Context, r *run) error {
	stored, ok := st.openTurn(r.id)
	if !ok {
		st.broken = ErrTurnNotActive
		return st.broken
	}
	result := r.result(stored.Cancel)
	total, err := st.row.Usage.Add(result.Usage)
	if err != nil {
		total = st.row.Usage
		fail(&result, protocol.Issue{Kind: "runtime", Code: "token_usage_overflow", Message: err.Error()})
	}
	to, err := st.switched(ctx, r, &result)
	if err != nil {
		return err
	}
	c := &persistence.Commit{
		Retire: []protocol.TurnID{r.id}, Usage: r.ledger(result, 0), Turned: true, Total: &total,
		Fence: persistence.Fence{Turn: r.id, Incarnation: st.eng.incarnation},
	}
	revision := st.row.Head.Revision
	if r.given == nil && len(r.nodes) > 0 {
		if graph.ResumeSafe(messagesOf(r.nodes)) != nil {
			return errUnpaired
		}
		c.Nodes = r.nodes
		revision++
	}
	report := r.report(result, revision)
	stored.State, stored.Report = report.State, report
	c.Turns = []persistence.Turn{stored.Turn}
	events := r.closing(result)
	var next *following
	if to != nil {
		next = st.follow(r, to)
		next.into(c)
		report.FollowedBy = next.turn.ID
		events = append(events, next.events...)
	}
	inputs, turns, queued := st.settleInputs(c, r.id, next)
	closed, resolved := st.closeDecisions(c, r.id)
	events = append(events, resolved...)
	events = append(events, r.files.close(c)...)
	events = append(events,
		logEvent{Event: protocol.Event{Type: protocol.EventUsageUpdated, TurnID: r.id, Usage: &result.Usage, Total: &total}},
		logEvent{Event: protocol.Event{Type: protocol.EventTurnCompleted, TurnID: r.id, Outcome: result.Outcome, Usage: &result.Usage, Issues: report.Issues, Follower: report.FollowedBy}})
	events = append(events, queued...)
	kept := st.keep(c, r.kept(next != nil))
	before := st.row.Head.Leaf
	m := st.moves(c)
	if next == nil {
		m.leaveTurn()
	}
	if err := m.whole(); err != nil {
		return err
	}
	done, err := st.commitShown(ctx, c, r.streamed, append(events, m.news...)...)
	if err != nil {
		m.undo()
		return err
	}
	kept()
	st.row.Usage, st.inputs, st.turns = total, inputs, turns
	st.row.TurnIndex++
	st.grow(before, done.Nodes)
	st.forget(closed)
	m.settle()
	r.streamed, r.told, st.current = nil, report, nil
	r.lease.trail() // what follows may be with other plugins
	r.traceEnd(report)
	st.eng.Log.Info("turn ended", "session", st.id, "turn", r.id, "state", report.State, "outcome", report.Outcome.Kind, "ms", report.DurationMs)
	st.turnOver(r.id, report)
	if next != nil {
		r.next = st.proceed(next)
	} else if r.full && r.given == nil {
		st.compactNext(r.id)
	}
	st.kick()
	return nil
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

// settleInputs says what becomes of the inputs when a turn ends: what it took in is completed, and what a person steered at it
// too late goes to the next turn, which is made if there is none; a wake gets a turn as if it came now. If another turn goes on in
// its place, they are steered at that.
func (st *state) settleInputs(c *persistence.Commit, id protocol.TurnID, next *following) (left []protocol.QueuedInput, turns []persistence.StoredTurn, events []logEvent) {
	turns = st.turnsWithout(id)
	if next != nil {
		return st.steerOn(c, id, next)
	}
	known, late := len(turns), false
	for _, in := range st.inputs {
		switch {
		case in.TurnID != id:
			left = append(left, in)
			continue
		case in.State != protocol.InputPendingActive:
			in.State = protocol.InputCompleted
		case lapsed(in):
			in.State, in.Refused, late = protocol.InputCancelled, protocol.WakeExpired, true
		default:
			if made := st.deferTo(&in, turns, left); made != nil {
				turns = append(turns, *made)
				c.Turns = append(c.Turns, made.Turn)
			}
			left, late = append(left, in), true
		}
		c.Inputs = append(c.Inputs, in)
	}
	for _, t := range turns[known:] {
		events = append(events, acceptedEvent(t.ID, ofTurn(t.ID, left)...))
	}
	if late {
		events = append(events, queueChanged(waitingOf(left, turns)))
	}
	return left, turns, events
}

// deferTo gives what came too late for a turn another one, which it answers if it had to be made.
func (st *state) deferTo(in *protocol.QueuedInput, turns []persistence.StoredTurn, left []protocol.QueuedInput) *persistence.StoredTurn {
	in.State = protocol.InputDeferred
	if in.Wake != nil {
		return st.place(in, turns, left)
	}
	if len(turns) > 0 {
		in.TurnID = turns[0].ID
		return nil
	}
	t := st.newTurn()
	in.TurnID = t.ID
	return &t
}

// steerOn is settleInputs for a turn that another one goes on from.
func (st *state) steerOn(c *persistence.Commit, id protocol.TurnID, next *following) (left []protocol.QueuedInput, turns []persistence.StoredTurn, events []logEvent) {
	for _, in := range st.inputs {
		switch {
		case in.TurnID != id:
		case in.State == protocol.InputPendingActive:
			in.TurnID = next.turn.ID
			c.Inputs = append(c.Inputs, in)
		default:
			in.State = protocol.InputCompleted
			c.Inputs = append(c.Inputs, in)
			continue
		}
		left = append(left, in)
	}
	turns = slices.Insert(st.turnsWithout(id), 0, next.turn)
	left = append(left, next.input)
	events = []logEvent{acceptedEvent(next.turn.ID, next.input)}
	if waiting := waitingOf(left, turns); len(waiting) > 0 {
		events = append(events, queueChanged(waiting))
	}
	return left, turns, events
}
