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

// Wake is work that something other than a person queues for a session.
type Wake struct {
	Source   string // the session takes it once
	Merge    string // wakes of one merge key, delivery and ceiling that stand together in the queue become one turn; empty: never
	Delivery protocol.Delivery
	Cause    protocol.TurnCause
	Expires  int64  // ms since 1970; 0: never
	Stream   string // its wakes come in the order of Ordinal, from 1; empty: in any
	Ordinal  int64
	Ceiling  *protocol.Ceiling // of who causes it, beside that of the session; nil: none
}

// Past is what the store knows of inputs that came before. The store implements it.
type Past interface {
	// SourceInput is the input that a source has brought, or persistence.ErrNotFound.
	SourceInput(ctx context.Context, session int64, source string) (protocol.QueuedInput, error)
	// NewestOrdinal is the highest ordinal of a stream's wakes; 0: none came.
	NewestOrdinal(ctx context.Context, session int64, stream string) (int64, error)
}

// Wake adds a wake, after whatever else the change says of turns and inputs. It returns the input that the wake is, or was when it came
// before, and why it was refused; empty: it was not. A refusal is not an error: the change goes on without the wake.
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
	d.woken = true // a turn starts later, as a change may hold more wakes of it
	return in, "", nil
}

// refuse decides why a wake is refused, and which input it is if it came before.
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

// Same is the input that a source has brought before, also in the change itself; nil: none.
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

// input is a wake as it stands in the queue.
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

// Size is how many bytes of the wake the model reads.
func (w Wake) Size() int { return len(w.text()) }

// text is what the model reads of a wake.
func (w Wake) text() string {
	who := strings.TrimSpace(w.Cause.Type + " " + w.Cause.Origin)
	return strings.ToValidUTF8(fmt.Sprintf("[%s] %s", who, w.Cause.Text), "\uFFFD")
}
