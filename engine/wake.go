package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// wake is work that something other than a person queues for a session.
type wake struct {
	Source   string // the session takes it once
	Merge    string // wakes of one merge key, delivery and authority that stand together in the queue become one turn; empty: never
	Delivery protocol.Delivery
	Cause    protocol.TurnCause
	Expires  int64 // ms since 1970; 0: never
}

// woken is what became of a wake.
type woken struct {
	Input   protocol.QueuedInput // the one that it is, or was when it came before
	Refused protocol.WakeRefusal // why it was not taken; empty: it was
	Events  []logEvent           // of the commit
	Done    func()               // once the commit is stored, at the end of what is done then: it may start a turn
}

// wake puts a wake into a commit. A refusal is not an error: the commit goes on without it. Of what one commit holds, this
// comes after all else that changes turns or inputs.
func (st *state) wake(c *persistence.Commit, w wake) (woken, error) {
	refused, known, err := st.refuseWake(c, w)
	if err != nil || refused != "" {
		return woken{Input: known, Refused: refused, Done: func() {}}, err
	}
	in := w.input()
	var events []logEvent
	var made []persistence.StoredTurn
	if st.current != nil && w.Delivery == protocol.DeliverEarliest {
		in.TurnID, in.State, in.Boundary = st.current.id, protocol.InputPendingActive, protocol.BoundaryAfterWork
	} else {
		t := st.newTurn()
		in.TurnID, made = t.ID, append(made, t)
		c.Turns = append(c.Turns, t.Turn)
		events = append(events, acceptedEvent(t.ID, in))
	}
	inputs := append(slices.Clip(st.inputs), in)
	c.Inputs = append(c.Inputs, in)
	events = append(events, queueChanged(waitingOf(inputs, append(slices.Clip(st.turns), made...))))
	done := func() {
		st.turns, st.inputs = append(slices.Clip(st.turns), made...), append(slices.Clip(st.inputs), in)
		st.kick()
	}
	return woken{Input: in, Events: events, Done: done}, nil
}

// wakeSession has a session take a wake in a commit of its own.
func (e *Engine) wakeSession(ctx context.Context, id protocol.SessionID, w wake) (woken, error) {
	got, err := do(ctx, e, id, func(ctx context.Context, st *state) (woken, error) {
		c := &persistence.Commit{}
		got, err := st.wake(c, w)
		if err != nil || got.Refused != "" {
			return got, err
		}
		if _, err := st.commit(ctx, c, got.Events...); err != nil {
			return woken{}, err
		}
		got.Done()
		return got, nil
	})
	if isMissing(err) || errors.Is(err, persistence.ErrDeleted) {
		return woken{Refused: protocol.WakeTargetGone}, nil
	}
	return got, err
}

// input is a wake as it stands in the queue.
func (w wake) input() protocol.QueuedInput {
	told := w.told()
	w.Cause.Text = ""
	return protocol.QueuedInput{
		ID: protocol.NewInputID(), State: protocol.InputQueued, Source: w.Source, AtMs: now(),
		Input: []protocol.InputPart{{Type: protocol.InputText, Text: told}},
		Wake:  &protocol.QueuedWake{Cause: w.Cause, Delivery: w.Delivery, Merge: w.Merge, ExpiresAtMs: w.Expires},
	}
}

// told is what the model reads of a wake.
func (w wake) told() string {
	who := strings.TrimSpace(w.Cause.Type + " " + w.Cause.Origin)
	return strings.ToValidUTF8(fmt.Sprintf("[%s] %s", who, w.Cause.Text), "\uFFFD")
}

// refuseWake tells why a wake is not taken, and which input it is if it came before.
func (st *state) refuseWake(c *persistence.Commit, w wake) (why protocol.WakeRefusal, known protocol.QueuedInput, err error) {
	if i := slices.IndexFunc(c.Inputs, func(in protocol.QueuedInput) bool { return w.Source != "" && in.Source == w.Source }); i >= 0 {
		return protocol.WakeDuplicate, c.Inputs[i], nil
	}
	same, err := st.sameInput(st.ctx, nil, w.Source)
	switch {
	case err != nil:
		return "", known, err
	case same != nil:
		return protocol.WakeDuplicate, *same, nil
	case w.Expires > 0 && w.Expires <= time.Now().UnixMilli():
		return protocol.WakeExpired, known, nil
	case len(w.told()) > st.roomForWake():
		return protocol.WakeTooLarge, known, nil
	}
	return "", known, nil
}

// roomForWake is how many bytes the model could be told at once.
func (st *state) roomForWake() int {
	window := cmp.Or(st.row.Config.Model.ContextWindow, maxInput)
	return int(min(maxInput, window*bytesPerToken))
}
