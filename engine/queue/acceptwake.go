package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lashd/engine/change"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Wake is an input that lashd itself queues for a session, because a task ended, a monitor
// printed a line, or a trigger fired.
type Wake struct {
	// Source identifies the wake. A session accepts each source once. Empty: no check.
	Source string
	// Merge lets wakes share a turn: those with the same key, delivery and ceiling that are
	// next to each other in the queue. Empty: never.
	Merge string
	// Delivery is after the running turn, or at its next checkpoint.
	Delivery protocol.Delivery
	// Cause is the event that wakes the session. Its text is what the model reads.
	Cause protocol.TurnCause
	// Expires is a time in milliseconds since 1970 after which the wake is useless. 0:
	// never.
	Expires int64
	// Stream names a sequence of wakes that must arrive in the order of Ordinal, which
	// starts at 1. Empty: no order.
	Stream  string
	Ordinal int64
	// Ceiling is the authority of the cause. The turn is limited by it and by the session's
	// own. Nil: no limit.
	Ceiling *protocol.Ceiling
}

// Past gives access to earlier inputs in the store.
type Past interface {
	// SourceInput returns the input with a source, or persistence.ErrNotFound.
	SourceInput(ctx context.Context, session int64, source string) (protocol.QueuedInput, error)
	// NewestOrdinal returns the highest ordinal of a stream, or 0.
	NewestOrdinal(ctx context.Context, session int64, stream string) (int64, error)
}

// Wake queues a wake. It must come after all other changes of turns and inputs. It returns
// the new input, or with WakeDuplicate the earlier one.
//
// refused is the reason for a rejection, or empty. A rejection is no error: the change
// continues without the wake.
func (d *Draft) Wake(ctx context.Context, c *change.Change, past Past, w Wake) (in protocol.QueuedInput, refused protocol.WakeRefusal, err error) {
	if in, refused, err = d.refuse(ctx, c, past, w); err != nil || refused != "" {
		return in, refused, err
	}
	in = w.input()
	running := func(t persistence.StoredTurn) bool { return t.ID == d.policy.Running }
	if w.Delivery == protocol.DeliverEarliest && slices.ContainsFunc(d.turns, running) {
		in.TurnID, in.State, in.Boundary = d.policy.Running, protocol.InputPendingActive, protocol.BoundaryAfterWork
	} else if t := d.place(&in); t != nil {
		d.addTurn(c, *t)
		c.Tell(accepted(t.ID, in))
	}
	d.addInput(c, in)
	d.TellWaiting(c)
	d.woken = true // Finish starts the turn, because the change may add more wakes to it
	return in, "", nil
}

// refuse returns the reason to reject a wake, and the earlier input if it is a duplicate.
func (d *Draft) refuse(ctx context.Context, c *change.Change, past Past, w Wake) (known protocol.QueuedInput, why protocol.WakeRefusal, err error) {
	same, err := d.Same(ctx, c, past, w.Source)
	switch {
	case err != nil:
		return known, "", err
	case same != nil:
		return *same, protocol.WakeDuplicate, nil
	case w.Expires > 0 && w.Expires <= time.Now().UnixMilli():
		return known, protocol.WakeExpired, nil
	case w.Size() > d.policy.Room:
		return known, protocol.WakeTooLarge, nil
	case w.Stream == "":
		return known, "", nil
	}
	newest, err := past.NewestOrdinal(ctx, d.policy.Key, w.Stream)
	if err != nil {
		return known, "", err
	}
	for _, in := range c.Inputs {
		if in.Wake != nil && in.Wake.Stream == w.Stream {
			newest = max(newest, in.Wake.Ordinal)
		}
	}
	if w.Ordinal <= newest {
		return known, protocol.WakeRewound, nil
	}
	return known, "", nil
}

// Same returns the input that a source has brought earlier, in this change or before, or
// nil.
func (d *Draft) Same(ctx context.Context, c *change.Change, past Past, source string) (*protocol.QueuedInput, error) {
	if source == "" {
		return nil, nil
	}
	for i := len(c.Inputs) - 1; i >= 0; i-- {
		if c.Inputs[i].Source == source {
			return &c.Inputs[i], nil
		}
	}
	in, err := past.SourceInput(ctx, d.policy.Key, source)
	switch {
	case errors.Is(err, persistence.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &in, nil
}

// input returns the wake as a queued input.
func (w Wake) input() protocol.QueuedInput {
	text := w.text()
	w.Cause.Text = ""
	return protocol.QueuedInput{
		ID: protocol.NewInputID(), State: protocol.InputQueued, Source: w.Source, AtMs: time.Now().UnixMilli(), Ceiling: w.Ceiling,
		Input: []protocol.InputPart{{Type: protocol.InputText, Text: text}},
		Wake: &protocol.QueuedWake{
			Cause: w.Cause, Delivery: w.Delivery, Merge: w.Merge, ExpiresAtMs: w.Expires, Stream: w.Stream, Ordinal: w.Ordinal,
		},
	}
}

// Size returns the number of bytes of the wake that the model reads.
func (w Wake) Size() int { return len(w.text()) }

// text returns the wake as the model reads it.
func (w Wake) text() string {
	origin := strings.TrimSpace(w.Cause.Type + " " + w.Cause.Origin)
	return strings.ToValidUTF8(fmt.Sprintf("[%s] %s", origin, w.Cause.Text), "\uFFFD")
}
