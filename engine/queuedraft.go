package engine

import (
	"slices"

	"lashd/engine/change"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Parts of a session that have drafts in a change.
type part string

const (
	partQueue     part = "queue"
	partDecisions part = "decisions"
	partTasks     part = "tasks"
)

// queueDraft is what the queue becomes with a change: the turns that have not ended, in order, and the inputs that no committed turn
// has consumed.
type queueDraft struct {
	st     *state
	turns  []persistence.StoredTurn
	inputs []protocol.QueuedInput
	woken  bool // a turn may start once the actor is done with what it does
}

func (st *state) queueIn(c *change.Change) *queueDraft {
	return change.DraftOf(c, partQueue, func() *queueDraft {
		return &queueDraft{st: st, turns: slices.Clone(st.turns), inputs: slices.Clone(st.inputs)}
	})
}

// Finish implements change.Draft.
func (q *queueDraft) Finish(*change.Change) error { return nil }

// Land implements change.Draft.
func (q *queueDraft) Land() {
	q.st.turns, q.st.inputs = q.turns, q.inputs
	q.st.wakePending = q.st.wakePending || q.woken
}

// accept adds a turn that answers some inputs.
func (q *queueDraft) accept(c *change.Change, t persistence.StoredTurn, inputs ...protocol.QueuedInput) {
	q.addTurn(c, t)
	for _, in := range inputs {
		q.addInput(c, in)
	}
	c.Tell(acceptedEvent(t.ID, inputs...))
}

func (q *queueDraft) addTurn(c *change.Change, t persistence.StoredTurn) {
	c.Turns, q.turns = append(c.Turns, t.Turn), append(q.turns, t)
}

func (q *queueDraft) addInput(c *change.Change, in protocol.QueuedInput) {
	c.Inputs, q.inputs = append(c.Inputs, in), append(q.inputs, in)
}

// setInput changes an input.
func (q *queueDraft) setInput(c *change.Change, in protocol.QueuedInput) {
	c.Inputs = append(c.Inputs, in)
	q.inputs[slices.IndexFunc(q.inputs, func(old protocol.QueuedInput) bool { return old.ID == in.ID })] = in
}

// set changes a turn.
func (q *queueDraft) set(c *change.Change, t persistence.StoredTurn) {
	c.Turns = append(c.Turns, t.Turn)
	q.turns[slices.IndexFunc(q.turns, func(old persistence.StoredTurn) bool { return old.ID == t.ID })] = t
}

// end adds the report of a turn that is over, and removes the turn.
func (q *queueDraft) end(c *change.Change, t persistence.StoredTurn) {
	c.Turns = append(c.Turns, t.Turn)
	q.turns = turnsWithout(q.turns, t.ID)
}

func turnsWithout(turns []persistence.StoredTurn, id protocol.TurnID) []persistence.StoredTurn {
	return slices.DeleteFunc(turns, func(t persistence.StoredTurn) bool { return t.ID == id })
}

// cancelInputs removes inputs that no turn answers any more, and tells how many these are.
func (q *queueDraft) cancelInputs(c *change.Change, why protocol.WakeRefusal, which func(protocol.QueuedInput) bool) (n int) {
	left := q.inputs[:0:0]
	for _, in := range q.inputs {
		if !which(in) {
			left = append(left, in)
			continue
		}
		in.State, in.Refused = protocol.InputCancelled, why
		c.Inputs = append(c.Inputs, in)
		n++
	}
	q.inputs = left
	return n
}

// endEmptied ends the queued turns that have no input any more, and says why they have none.
func (q *queueDraft) endEmptied(c *change.Change, why string) {
	for _, t := range slices.Clone(q.turns) {
		if t.State != protocol.TurnQueued || len(ofTurn(t.ID, q.inputs)) > 0 {
			continue
		}
		outcome := protocol.TurnOutcome{Kind: protocol.OutcomeCancelled, Cancel: &protocol.CancelEvidence{RequestID: "internal:queue", Reason: why}}
		t.State = protocol.TurnCancelled
		t.Report = &protocol.TurnReport{TurnID: t.ID, SessionID: q.st.id, State: t.State, Outcome: &outcome, AcceptedAtMs: t.AcceptedMs}
		q.end(c, t)
		c.TellOf(protocol.Event{Type: protocol.EventTurnCompleted, TurnID: t.ID, Outcome: &outcome, Usage: &protocol.Usage{}})
		c.Then(func() { q.st.turnOver(t.ID, t.Report) })
	}
}

// tellWaiting tells which inputs wait now.
func (q *queueDraft) tellWaiting(c *change.Change) {
	c.Tell(queueChanged(waitingOf(q.inputs, q.turns)))
}
