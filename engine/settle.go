package engine

import (
	"slices"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// settle says what becomes of what waited for the turn, and of what it leaves.
func (st *state) settle(r *run, e *ending) error {
	var queued, resolved []logEvent
	e.inputs, e.turns, queued = st.settleInputs(e.commit, r.id, e.next)
	e.closed, resolved = st.closeDecisions(e.commit, r.id)
	e.events = append(e.events, resolved...)
	e.events = append(e.events, r.files.close(e.commit)...)
	e.events = append(e.events,
		logEvent{Event: protocol.Event{Type: protocol.EventUsageUpdated, TurnID: r.id, Usage: &e.result.Usage, Total: &e.total}},
		logEvent{Event: protocol.Event{Type: protocol.EventTurnCompleted, TurnID: r.id, Outcome: e.result.Outcome, Usage: &e.result.Usage, Issues: e.report.Issues, Follower: e.report.FollowedBy}})
	e.events = append(e.events, queued...)
	e.kept = st.keep(e.commit, r.kept(e.next != nil))
	e.moves = st.moves(e.commit)
	if e.next == nil {
		e.moves.leaveTurn()
	}
	err := e.moves.whole()
	e.events = append(e.events, e.moves.news...)
	return err
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
	if len(turns) > 0 && in.Ceiling == nil { // nobody's turn is held to what another one's input is held to
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
