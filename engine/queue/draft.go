package queue

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"lashd/engine/change"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Policy is the state of the session that a draft depends on.
type Policy struct {
	Session protocol.SessionID
	// Key is the store's number of the session.
	Key int64
	// Incarnation identifies the daemon.
	Incarnation string
	// Drain says which wakes may share a turn.
	Drain protocol.DrainPolicy
	// Room is the number of bytes that the model can get at once.
	Room int
	// Running is the turn that runs. Empty: none.
	Running protocol.TurnID
	// Idle means that a new turn can start at once.
	Idle bool
}

// Draft is the queue as it will be after a change. Its methods add rows and events to the
// change. The Queue itself changes when the change lands.
type Draft struct {
	of     *Queue
	policy Policy
	turns  []persistence.StoredTurn
	inputs []protocol.QueuedInput
	woken  bool
	// begun is the turn that the change starts. Empty: none.
	begun protocol.TurnID
}

// In returns the draft of the queue in a change, and creates it on the first call. Later
// calls ignore p.
func (q *Queue) In(c *change.Change, p Policy) *Draft {
	return change.DraftOf(c, q, func() *Draft {
		return &Draft{of: q, policy: p, turns: slices.Clone(q.turns), inputs: slices.Clone(q.inputs)}
	})
}

// Finish implements change.Draft. If a wake reaches an idle session, its turn starts in the
// same change.
func (d *Draft) Finish(c *change.Change) error {
	if !d.woken || !d.policy.Idle || len(d.of.turns) > 0 || len(d.turns) == 0 {
		return nil
	}
	t := &d.turns[0]
	t.State, t.StartedMs, d.begun = protocol.TurnRunning, t.AcceptedMs, t.ID
	c.Turns[slices.IndexFunc(c.Turns, func(row persistence.Turn) bool { return row.ID == t.ID })] = t.Turn
	d.TellWaiting(c)
	return nil
}

// Land implements change.Draft: it makes the draft the queue.
func (d *Draft) Land() {
	d.of.turns, d.of.inputs = d.turns, d.inputs
	d.of.wakePending = d.of.wakePending || d.woken
	d.of.begun = cmp.Or(d.begun, d.of.begun)
}

// Start adds a turn for an input and returns both. The turn gets the id unless it is empty.
// With idle set the turn runs at once; otherwise it is queued.
func (d *Draft) Start(c *change.Change, id protocol.TurnID, in protocol.QueuedInput, idle bool) (protocol.QueuedInput, persistence.StoredTurn) {
	t := d.newTurn()
	t.ID = cmp.Or(id, t.ID)
	if idle {
		t.State, t.StartedMs = protocol.TurnRunning, t.AcceptedMs
	}
	in = d.accept(c, t, in)
	if !idle {
		d.TellWaiting(c)
	}
	return in, t
}

// accept adds a turn together with its new input, and notifies clients.
func (d *Draft) accept(c *change.Change, t persistence.StoredTurn, in protocol.QueuedInput) protocol.QueuedInput {
	in.ID, in.TurnID, in.State, in.AtMs = protocol.NewInputID(), t.ID, protocol.InputQueued, t.AcceptedMs
	d.addTurn(c, t)
	d.addInput(c, in)
	c.Tell(accepted(t.ID, in))
	return in
}

// Begin marks a turn as run by this daemon, or as waiting for a decision if asks is set. It
// changes nothing if the turn is already in that state.
func (d *Draft) Begin(c *change.Change, t persistence.StoredTurn, asks bool) persistence.StoredTurn {
	next := t
	next.State, next.Incarnation = protocol.TurnRunning, d.policy.Incarnation
	if next.StartedMs == 0 {
		next.StartedMs = time.Now().UnixMilli()
	}
	if asks {
		next.State = protocol.TurnWaiting
	}
	if t.State != next.State || t.Incarnation != next.Incarnation {
		d.SetTurn(c, next)
	}
	if t.State == protocol.TurnQueued {
		d.TellWaiting(c)
	}
	return next
}

// QueueOnce adds a turn for each input, except for inputs that their source has brought
// before. It returns all inputs as they are in the queue. If a source has brought a
// different input, it returns ErrOtherInput.
func (d *Draft) QueueOnce(ctx context.Context, c *change.Change, past Past, wanted []protocol.QueuedInput) (all []protocol.QueuedInput, err error) {
	added := false
	for _, in := range wanted {
		same, err := d.Same(ctx, c, past, in.Source)
		switch {
		case err != nil:
			return nil, err
		case same == nil:
			all, added = append(all, d.accept(c, d.newTurn(), in)), true
		case !sameContent(*same, in):
			return nil, fmt.Errorf("input %s: %w", in.Source, ErrOtherInput)
		default:
			all = append(all, *same)
		}
	}
	if added {
		d.TellWaiting(c)
	}
	return all, nil
}

// ErrOtherInput means that the source has already brought a different input.
var ErrOtherInput = errors.New("this source was already used for a different input; use a new source")

// sameContent reports whether two inputs have the same content in their stored form.
func sameContent(a, b protocol.QueuedInput) bool {
	type content struct {
		Input   []protocol.InputPart
		Plugins protocol.PluginInputs
		Options *protocol.TurnOptions
	}
	textA, errA := json.Marshal(content{a.Input, a.PluginInputs, a.TurnOptions})
	textB, errB := json.Marshal(content{b.Input, b.PluginInputs, b.TurnOptions})
	return errA == nil && errB == nil && bytes.Equal(textA, textB)
}

// Steer adds an input for the running turn, which reads it at its next checkpoint. It
// returns the queued input.
func (d *Draft) Steer(c *change.Change, in protocol.QueuedInput) protocol.QueuedInput {
	in.ID, in.TurnID, in.State, in.AtMs = protocol.NewInputID(), d.policy.Running, protocol.InputPendingActive, time.Now().UnixMilli()
	in.Boundary = cmp.Or(in.Boundary, protocol.BoundaryAfterWork)
	d.addInput(c, in)
	d.TellWaiting(c)
	return in
}

func (d *Draft) newTurn() persistence.StoredTurn {
	return NewTurn(d.policy.Session, d.policy.Incarnation, time.Now().UnixMilli())
}

// addTurn adds a turn at the end of the queue.
func (d *Draft) addTurn(c *change.Change, t persistence.StoredTurn) {
	c.Turns, d.turns = append(c.Turns, t.Turn), append(d.turns, t)
}

// addInput adds an input at the end of the queue.
func (d *Draft) addInput(c *change.Change, in protocol.QueuedInput) {
	c.Inputs, d.inputs = append(c.Inputs, in), append(d.inputs, in)
}

// SetInput replaces a queued input, which must exist.
func (d *Draft) SetInput(c *change.Change, in protocol.QueuedInput) {
	c.Inputs = append(c.Inputs, in)
	d.inputs[slices.IndexFunc(d.inputs, func(old protocol.QueuedInput) bool { return old.ID == in.ID })] = in
}

// SetTurn replaces a queued turn, which must exist.
func (d *Draft) SetTurn(c *change.Change, t persistence.StoredTurn) {
	c.Turns = append(c.Turns, t.Turn)
	d.turns[slices.IndexFunc(d.turns, func(old persistence.StoredTurn) bool { return old.ID == t.ID })] = t
}

// EndUnstarted ends a turn that does not run, and cancels its inputs. t must have its
// report.
func (d *Draft) EndUnstarted(c *change.Change, t persistence.StoredTurn) {
	d.end(c, t)
	d.cancel(c, "", func(in protocol.QueuedInput) bool { return in.TurnID == t.ID })
}

// end removes a turn from the queue and stores its final row.
func (d *Draft) end(c *change.Change, t persistence.StoredTurn) {
	c.Turns = append(c.Turns, t.Turn)
	d.turns = without(d.turns, t.ID)
}

func without(turns []persistence.StoredTurn, id protocol.TurnID) []persistence.StoredTurn {
	return slices.DeleteFunc(turns, func(t persistence.StoredTurn) bool { return t.ID == id })
}

// Withdraw cancels inputs that no turn has read, and ends queued turns that have no input
// left. It returns these turns with their reports.
func (d *Draft) Withdraw(c *change.Change, gone map[protocol.InputID]bool) (ended []persistence.StoredTurn) {
	d.cancel(c, "", func(in protocol.QueuedInput) bool { return gone[in.ID] })
	ended = d.endEmptied(c, "its input was withdrawn")
	d.TellWaiting(c)
	return ended
}

// DropExpired cancels the expired wakes of a turn that is about to start, and ends the turn
// if it has no other input. some is false if there are none; then the change stays as it
// was.
func (d *Draft) DropExpired(c *change.Change, id protocol.TurnID) (ended []persistence.StoredTurn, some bool) {
	if d.cancel(c, protocol.WakeExpired, func(in protocol.QueuedInput) bool { return in.TurnID == id && expired(in) }) == 0 {
		return nil, false
	}
	ended = d.endEmptied(c, "its wake has expired")
	d.TellWaiting(c)
	return ended, true
}

// cancel removes the selected inputs and stores them as cancelled. It returns their number.
func (d *Draft) cancel(c *change.Change, why protocol.WakeRefusal, which func(protocol.QueuedInput) bool) (n int) {
	left := d.inputs[:0:0]
	for _, in := range d.inputs {
		if !which(in) {
			left = append(left, in)
			continue
		}
		in.State, in.Refused = protocol.InputCancelled, why
		c.Inputs = append(c.Inputs, in)
		n++
	}
	d.inputs = left
	return n
}

// endEmptied ends the queued turns without inputs. why is the reason in their reports.
func (d *Draft) endEmptied(c *change.Change, why string) (ended []persistence.StoredTurn) {
	for _, t := range slices.Clone(d.turns) {
		if t.State != protocol.TurnQueued || len(of(t.ID, d.inputs)) > 0 {
			continue
		}
		outcome := protocol.TurnOutcome{Kind: protocol.OutcomeCancelled, Cancel: &protocol.CancelEvidence{RequestID: "internal:queue", Reason: why}}
		t.State = protocol.TurnCancelled
		t.Report = &protocol.TurnReport{TurnID: t.ID, SessionID: d.policy.Session, State: t.State, Outcome: &outcome, AcceptedAtMs: t.AcceptedMs}
		d.end(c, t)
		c.TellOf(protocol.Event{Type: protocol.EventTurnCompleted, TurnID: t.ID, Outcome: &outcome, Usage: &protocol.Usage{}})
		ended = append(ended, t)
	}
	return ended
}

// TellWaiting adds the event that lists the waiting inputs.
func (d *Draft) TellWaiting(c *change.Change) {
	c.TellOf(protocol.Event{Type: protocol.EventQueueChanged, Queue: waiting(d.inputs, d.turns)})
}
