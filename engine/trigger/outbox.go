package trigger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// maxDeliveries is the number of deliveries that run at the same time.
const maxDeliveries = 8

// outbox holds the outstanding deliveries in the order of their occurrences. A session gets
// one delivery at a time, in that order. The outbox belongs to the loop's goroutine.
type outbox struct {
	// waiting has the deliveries that have not started, oldest first. Failed ones return to
	// the front.
	waiting []persistence.Reserved
	// blocked has the sessions that get no delivery now: until the given time after a
	// failure, or while one is in progress (zero time).
	blocked map[protocol.SessionID]time.Time
	// busy is the number of deliveries in progress.
	busy int
}

// add queues the deliveries of a recorded occurrence.
func (o *outbox) add(occurred persistence.Occurred) {
	of := occurred.Occurrence
	of.Deliveries = nil
	for i, d := range occurred.Deliveries {
		o.waiting = append(o.waiting, persistence.Reserved{Occurrence: of, Delivery: d, Action: occurred.Actions[i]})
	}
}

// due returns when the next failed delivery is retried. Zero: none is.
func (o *outbox) due(now time.Time) (next time.Time) {
	for _, at := range o.blocked {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// take removes and returns the first delivery that may start now.
func (o *outbox) take(now time.Time) (r persistence.Reserved, ok bool) {
	for i, r := range o.waiting {
		id := r.Delivery.SessionID
		if until, blocked := o.blocked[id]; blocked && (until.IsZero() || until.After(now)) {
			continue
		}
		o.waiting = slices.Delete(o.waiting, i, i+1)
		o.blocked[id] = time.Time{}
		o.busy++
		return r, true
	}
	return r, false
}

// deliver starts deliveries until maxDeliveries are in progress.
func (l *loop) deliver() {
	for l.out.busy < maxDeliveries {
		r, ok := l.out.take(time.Now())
		if !ok {
			return
		}
		l.beside.Go(func() {
			settled, err := l.Host.Deliver(l.life, r)
			l.post(func(ctx context.Context) { l.delivered(ctx, r, settled, err) })
		})
	}
}

// delivered handles the outcome of a delivery. The session stores a successful delivery
// itself; delivered stores any other outcome. After an error the delivery returns to the
// front of the queue.
func (l *loop) delivered(ctx context.Context, r persistence.Reserved, d protocol.TriggerDelivery, err error) {
	l.out.busy--
	id := r.Delivery.SessionID
	delete(l.out.blocked, id)
	if err == nil && d.State != protocol.DeliveryDelivered {
		err = l.storeUndelivered(ctx, r.Occurrence.ID, d)
	}
	if err == nil || errors.Is(err, persistence.ErrExists) { // ErrExists: an outcome is already stored
		return
	}
	l.Log.Warn("delivery failed; retrying", "trigger", r.Delivery.TriggerID, "session", id, "error", err)
	l.out.blocked[id] = time.Now().Add(retryDelay)
	l.out.waiting = slices.Insert(l.out.waiting, 0, r)
}

// storeUndelivered stores the outcome of a delivery that was not made. If its session was
// deleted, the trigger is removed, or disabled if no session owns it.
func (l *loop) storeUndelivered(ctx context.Context, id protocol.OccurrenceID, d protocol.TriggerDelivery) error {
	c := &persistence.Commit{AtMs: now(), Triggers: persistence.TriggerChange{Settled: []persistence.Settled{{Occurrence: id, TriggerDelivery: d}}}}
	a := l.triggers[d.TriggerID]
	gone := a != nil && d.State == protocol.DeliveryTargetGone && a.Action.Kind == protocol.TriggerWakes
	if gone && a.SessionID == "" {
		row := a.Trigger
		row.Enabled, row.Problem, row.Revision, row.UpdatedAtMs = false, fmt.Sprintf("session %s was deleted", d.SessionID), row.Revision+1, c.AtMs
		c.Triggers.Put = append(c.Triggers.Put, row)
	}
	if err := l.commit(ctx, c); err != nil {
		return err
	}
	switch {
	case gone && a.SessionID != "":
		l.remove(func(o *active) bool { return o == a })
	case gone:
		a.Trigger = c.Triggers.Put[0]
		l.activate(a)
		l.postChanged(a.public())
	}
	return nil
}
