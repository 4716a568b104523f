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

// Policy is what a draft has to know of its session.
type Policy struct {
	Session     protocol.SessionID
	Key         int64                // of the session in the store
	Incarnation string               // of the daemon
	Drain       protocol.DrainPolicy // which wakes may share a turn
	Room        int                  // bytes that the model can be told at once
	Running     protocol.TurnID      // the turn that runs; empty: none
	Idle        bool                 // a turn that comes now can begin at once
}

// Draft is what the queue becomes with a change.
type Draft struct {
	of     *Queue
	policy Policy
	turns  []persistence.StoredTurn
	inputs []protocol.QueuedInput
	woken  bool
	begun  protocol.TurnID // by the change; empty: none
}

// In returns the queue's draft in a change.
func (q *Queue) In(c *change.Change, p Policy) *Draft {
	return change.DraftOf(c, q, func() *Draft {
		return &Draft{of: q, policy: p, turns: slices.Clone(q.turns), inputs: slices.Clone(q.inputs)}
	})
}

// Finish implements change.Draft: a turn that a wake brings to an idle session begins in the change that brings it.
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

// Land implements change.Draft.
func (d *Draft) Land() {
	d.of.turns, d.of.inputs = d.turns, d.inputs
	d.of.wakePending = d.of.wakePending || d.woken
	d.of.begun = cmp.Or(d.begun, d.of.begun)
}

// Start adds a turn for an input, and returns both. The turn has this id, unless it is empty. It is running if the session is idle; otherwise
// it waits.
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

// accept adds a turn with its input, which is in no queue yet.
func (d *Draft) accept(c *change.Change, t persistence.StoredTurn, in protocol.QueuedInput) protocol.QueuedInput {
	in.ID, in.TurnID, in.State, in.AtMs = protocol.NewInputID(), t.ID, protocol.InputQueued, t.AcceptedMs
	d.addTurn(c, t)
	d.addInput(c, in)
	c.Tell(accepted(t.ID, in))
	return in
}

// Begin marks a turn as run by this daemon, or as waiting for a decision if asks is set. It changes nothing if the turn is so already.
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

// QueueOnce adds a turn for each of the inputs, except for those whose source has brought the same input before. It returns all inputs as
// they are in the queue. A source that has brought another input is ErrOtherInput.
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

// ErrOtherInput means that a source has brought another input before.
var ErrOtherInput = errors.New("its source brought another input before; what is new needs a source of its own")

// sameContent reports whether two inputs have the same content once they are stored.
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

// Steer adds an input that enters the running turn at its next checkpoint, and returns it as it is in the queue.
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

func (d *Draft) addTurn(c *change.Change, t persistence.StoredTurn) {
	c.Turns, d.turns = append(c.Turns, t.Turn), append(d.turns, t)
}

func (d *Draft) addInput(c *change.Change, in protocol.QueuedInput) {
	c.Inputs, d.inputs = append(c.Inputs, in), append(d.inputs, in)
}

// SetInput changes an input.
func (d *Draft) SetInput(c *change.Change, in protocol.QueuedInput) {
	c.Inputs = append(c.Inputs, in)
	d.inputs[slices.IndexFunc(d.inputs, func(old protocol.QueuedInput) bool { return old.ID == in.ID })] = in
}

// SetTurn changes a turn.
func (d *Draft) SetTurn(c *change.Change, t persistence.StoredTurn) {
	c.Turns = append(c.Turns, t.Turn)
	d.turns[slices.IndexFunc(d.turns, func(old persistence.StoredTurn) bool { return old.ID == t.ID })] = t
}

// EndUnstarted ends a turn that does not run, and cancels its inputs. t has its report.
func (d *Draft) EndUnstarted(c *change.Change, t persistence.StoredTurn) {
	d.end(c, t)
	d.cancel(c, "", func(in protocol.QueuedInput) bool { return in.TurnID == t.ID })
}

func (d *Draft) end(c *change.Change, t persistence.StoredTurn) {
	c.Turns = append(c.Turns, t.Turn)
	d.turns = without(d.turns, t.ID)
}

func without(turns []persistence.StoredTurn, id protocol.TurnID) []persistence.StoredTurn {
	return slices.DeleteFunc(turns, func(t persistence.StoredTurn) bool { return t.ID == id })
}

// Withdraw cancels inputs that no turn has taken in, and the turns that are left without any. It returns these turns with their reports.
func (d *Draft) Withdraw(c *change.Change, gone map[protocol.InputID]bool) (ended []persistence.StoredTurn) {
	d.cancel(c, "", func(in protocol.QueuedInput) bool { return gone[in.ID] })
	ended = d.endEmptied(c, "its input was withdrawn")
	d.TellWaiting(c)
	return ended
}

// DropExpired cancels the wakes of a turn that is about to start which came too late, and the turn if nothing is left of it. some is
// false if there are none: then the change is as it was.
func (d *Draft) DropExpired(c *change.Change, id protocol.TurnID) (ended []persistence.StoredTurn, some bool) {
	if d.cancel(c, protocol.WakeExpired, func(in protocol.QueuedInput) bool { return in.TurnID == id && expired(in) }) == 0 {
		return nil, false
	}
	ended = d.endEmptied(c, "its wake has expired")
	d.TellWaiting(c)
	return ended, true
}

// cancel removes inputs that no turn answers any more, and returns how many these are.
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

// endEmptied ends the queued turns that have no input any more, and says why they have none.
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

// TellWaiting adds the event that says which inputs wait now.
func (d *Draft) TellWaiting(c *change.Change) {
	c.TellOf(protocol.Event{Type: protocol.EventQueueChanged, Queue: waiting(d.inputs, d.turns)})
}
