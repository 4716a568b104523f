package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/queue"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// couriers is how many deliveries are made at once.
const couriers = 8

// outbox is what is still to be delivered, in the order in which it occurred. What comes to one session comes in order.
type outbox struct {
	waiting []persistence.Reserved
	lanes   map[protocol.SessionID]time.Time // of each session that is being delivered to: zero; or not before when it is tried again
	busy    int
}

func (o *outbox) add(occurred persistence.Occurred) {
	of := occurred.Occurrence
	of.Deliveries = nil
	for i, d := range occurred.Deliveries {
		o.waiting = append(o.waiting, persistence.Reserved{Occurrence: of, Delivery: d, Action: occurred.Actions[i]})
	}
}

// due is when something that waits for its time is tried again; zero: nothing does.
func (o *outbox) due(now time.Time) (next time.Time) {
	for _, at := range o.lanes {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// take gives the first that can be delivered now.
func (o *outbox) take(now time.Time) (r persistence.Reserved, ok bool) {
	seen := map[protocol.SessionID]bool{}
	for i, r := range o.waiting {
		id := r.Delivery.SessionID
		until, held := o.lanes[id]
		if seen[id] || held && (until.IsZero() || until.After(now)) {
			seen[id] = true
			continue
		}
		o.waiting = slices.Delete(o.waiting, i, i+1)
		o.lanes[id] = time.Time{}
		o.busy++
		return r, true
	}
	return r, false
}

// send has deliveries made, as many as may be at once.
func (t *triggers) send() {
	for t.out.busy < couriers {
		r, ok := t.out.take(time.Now())
		if !ok {
			return
		}
		t.beside.Go(func() {
			settled, err := t.eng.deliver(t.life, r)
			t.tell(func(ctx context.Context) { t.sent(ctx, r, settled, err) })
		})
	}
}

// sent takes the outcome of a delivery. One that is not settled yet is settled here; after an error that passes it is tried again.
func (t *triggers) sent(ctx context.Context, r persistence.Reserved, d protocol.TriggerDelivery, err error) {
	t.out.busy--
	id := r.Delivery.SessionID
	delete(t.out.lanes, id)
	if err == nil && d.State != protocol.DeliveryDelivered {
		err = t.storeUndelivered(ctx, r.Occurrence.ID, d)
	}
	if err == nil || errors.Is(err, persistence.ErrExists) { // somebody has settled it
		return
	}
	t.eng.Log.Warn("delivery is tried again", "trigger", r.Delivery.TriggerID, "session", id, "error", err)
	t.out.lanes[id] = time.Now().Add(spaceCheck)
	t.out.waiting = slices.Insert(t.out.waiting, 0, r)
}

// storeUndelivered stores that a delivery was not made. A trigger whose session is gone is not at work any more.
func (t *triggers) storeUndelivered(ctx context.Context, id protocol.OccurrenceID, d protocol.TriggerDelivery) error {
	c := &persistence.Commit{AtMs: now(), Triggers: persistence.TriggerChange{Settled: []persistence.Settled{{Occurrence: id, TriggerDelivery: d}}}}
	w := t.known[d.TriggerID]
	gone := w != nil && d.State == protocol.DeliveryTargetGone && w.Action.Kind == protocol.TriggerWakes
	if gone && w.SessionID == "" {
		row := w.Trigger
		row.Enabled, row.Problem, row.Revision, row.UpdatedAtMs = false, fmt.Sprintf("session %s is deleted", d.SessionID), row.Revision+1, c.AtMs
		c.Triggers.Put = append(c.Triggers.Put, row)
	}
	if err := t.commit(ctx, c); err != nil {
		return err
	}
	switch {
	case gone && w.SessionID != "":
		t.drop(func(o *trigger) bool { return o == w })
	case gone:
		w.Trigger = c.Triggers.Put[0]
		t.adopt(w)
		t.eng.postTrigger(w.public())
	}
	return nil
}

// deliver brings an occurrence to its session, once: the session's row and the outcome are one commit. An outcome other than
// delivered is still to be stored. An error passes: it can be tried again.
func (e *Engine) deliver(ctx context.Context, r persistence.Reserved) (protocol.TriggerDelivery, error) {
	d := r.Delivery
	if r.Action.Kind == protocol.TriggerStarts {
		if err := e.beginFor(ctx, r); err != nil {
			return ended(d, err)
		}
	}
	got, err := do(ctx, e, d.SessionID, func(ctx context.Context, st *state) (protocol.TriggerDelivery, error) {
		return st.takeDelivery(ctx, r)
	})
	if err != nil {
		return ended(d, err)
	}
	return got, nil
}

// beginFor makes the session of a delivery, unless it was made before.
func (e *Engine) beginFor(ctx context.Context, r persistence.Reserved) error {
	s := r.Action.Session
	_, err := e.NewSession(ctx, sessionFor(s, r.Delivery.SessionID, cmp.Or(s.Title, r.Delivery.Key)))
	if errors.Is(err, persistence.ErrExists) {
		return nil
	}
	return err
}

// takeDelivery is a wake of the session.
func (st *state) takeDelivery(ctx context.Context, r persistence.Reserved) (protocol.TriggerDelivery, error) {
	d := r.Delivery
	d.AtMs = now()
	source := "trigger:" + string(d.TriggerID) + ":" + string(r.Occurrence.ID)
	c := st.change(persistence.Commit{})
	in, refused, err := st.queueIn(c).Wake(ctx, c, st.eng.store, queue.Wake{
		Source: source, Merge: cmp.Or(r.Action.Merge, "trigger:"+string(d.TriggerID)), Delivery: cmp.Or(r.Action.Delivery, protocol.DeliverAfterTurn),
		Cause: protocol.TurnCause{ID: source, Type: "trigger", Origin: d.Key, Text: told(r)},
	})
	switch {
	case err != nil:
		return d, err
	case refused != "" && refused != protocol.WakeDuplicate:
		d.State, d.Reason = protocol.DeliveryRefused, string(refused)
		return d, nil
	}
	d.State, d.TurnID = protocol.DeliveryDelivered, in.TurnID
	c.Triggers.Settled = []persistence.Settled{{Occurrence: r.Occurrence.ID, TriggerDelivery: d}}
	return d, st.commit(ctx, c)
}

// maxTold is how many bytes of a payload the model is told.
const maxTold = 16 << 10

func told(r persistence.Reserved) string {
	payload := string(r.Occurrence.Payload)
	if len(payload) > maxTold {
		payload = strings.ToValidUTF8(payload[:maxTold], "") + "... (cut off)"
	}
	return fmt.Sprintf("%s\n\n%s: %s", r.Action.Text, r.Occurrence.Type, payload)
}

// ended is what has come of a delivery that was not made; an error if it can be tried again.
func ended(d protocol.TriggerDelivery, err error) (protocol.TriggerDelivery, error) {
	d.AtMs = now()
	switch {
	case errors.Is(err, persistence.ErrDeleted), isMissing(err):
		d.State, d.Reason = protocol.DeliveryTargetGone, "the session is deleted"
	case refuses(err):
		d.State, d.Reason = protocol.DeliveryRefused, err.Error()
	case passes(err):
		return d, err
	default:
		d.State, d.Reason = protocol.DeliveryFailed, err.Error()
	}
	return d, nil
}

// refuses tells whether the settings of a session are why it is not made.
func refuses(err error) bool {
	return errors.Is(err, ErrModelNotFound) || errors.Is(err, plugin.ErrNoDriver) || errors.As(err, new(*ParamError)) ||
		errors.As(err, new(*plugin.BuildError)) || errors.As(err, new(*plugin.HookError))
}

// passes tells whether an error has nothing to do with what was asked for.
func passes(err error) bool {
	for _, other := range []error{
		ErrShuttingDown, ErrReloaded, ErrSlowPlugin, persistence.ErrFull, persistence.ErrBusy, persistence.ErrExists, persistence.ErrPoisoned,
		persistence.ErrClosed, context.Canceled, errReplayed, errStopped,
	} {
		if errors.Is(err, other) {
			return true
		}
	}
	return false
}

// sessionFor are the params that make the session of a trigger.
func sessionFor(s *protocol.TriggerSession, id protocol.SessionID, title string) *protocol.SessionNewParams {
	return &protocol.SessionNewParams{
		SessionID: id, Cwd: s.Cwd, Title: title, Driver: s.Driver, Model: s.Model, Prompt: s.Prompt, Budget: s.Budget, Approval: s.Approval, Options: s.Options,
	}
}
