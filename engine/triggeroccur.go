package engine

import (
	"context"
	"encoding/json"
	"time"

	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// happening is something that happened, before it is known to whom it is something.
type happening struct {
	typ, sourceKey, key string
	payload             json.RawMessage
	only                *trigger // to it alone; nil: to all that wait for it
}

func (h happening) id() protocol.OccurrenceID {
	return protocol.DeriveOccurrenceID(h.typ, h.sourceKey, h.key)
}

// record adds to a commit what happened, unless it is known already, with a delivery reserved for each trigger that waits for
// it. Once that is stored the deliveries are made. It gives what is new.
func (t *triggers) record(ctx context.Context, c *persistence.Commit, all ...happening) ([]protocol.Occurrence, error) {
	c.AtMs = now()
	for _, h := range all {
		_, err := t.eng.store.Occurrence(ctx, h.id())
		if err == nil {
			continue
		}
		if !isMissing(err) {
			return nil, err
		}
		c.Triggers.Occurred = append(c.Triggers.Occurred, t.occurred(h, c.AtMs))
	}
	if err := t.commit(ctx, c); err != nil {
		return nil, err
	}
	var news []protocol.Occurrence
	for _, o := range c.Triggers.Occurred {
		news = append(news, o.Occurrence)
		t.out.add(o)
	}
	return news, nil
}

// commit makes a change durable. One that is known by its receipt is errReplayed.
func (t *triggers) commit(ctx context.Context, c *persistence.Commit) error {
	res, err := t.eng.store.Commit(ctx, c)
	if err == nil && res.Replayed {
		err = errReplayed
	}
	return err
}

func (t *triggers) occurred(h happening, atMs int64) persistence.Occurred {
	o := persistence.Occurred{Occurrence: protocol.Occurrence{
		ID: h.id(), Type: h.typ, SourceKey: h.sourceKey, Key: h.key, Payload: h.payload, AtMs: atMs, Deliveries: []protocol.TriggerDelivery{},
	}}
	for _, w := range t.inOrder() {
		if !w.waitsFor(h) {
			continue
		}
		o.Actions = append(o.Actions, w.Action)
		o.Deliveries = append(o.Deliveries, protocol.TriggerDelivery{
			TriggerID: w.ID, Key: w.Key, State: protocol.DeliveryReserved, SessionID: w.target(o.ID), AtMs: atMs,
		})
	}
	return o
}

func (w *trigger) waitsFor(h happening) bool {
	switch {
	case !w.Enabled || w.Source.Type != h.typ, h.only != nil && h.only != w:
		return false
	case h.only == nil && w.Source.Key != "" && w.Source.Key != h.sourceKey:
		return false
	}
	return tool.CheckValue(w.Filter, h.payload) == nil
}

// plan finds out when a schedule is due. A clock that was set back makes times come again; they are known by then.
func (w *trigger) plan(now time.Time) {
	w.next = time.Time{}
	if w.schedule == nil || !w.Enabled {
		return
	}
	if w.since.After(now) {
		w.since = now
	}
	w.next = w.schedule.Next(w.since)
}

// arm sets the timer to what is due first.
func (t *triggers) arm() {
	now := time.Now()
	next := t.out.due(now)
	sooner := func(at time.Time) {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for _, w := range t.known {
		if w.since.After(now) {
			w.plan(now)
		}
		if !w.next.IsZero() {
			sooner(now.Add(tickPatience))
			sooner(later(w.next, t.retry))
		}
	}
	if next.IsZero() {
		t.timer.Stop()
		return
	}
	t.timer.Reset(next.Sub(now))
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// tick does what schedules are due for.
func (t *triggers) tick(ctx context.Context) {
	now := time.Now()
	if t.retry.After(now) {
		return
	}
	t.retry = time.Time{}
	for _, w := range t.inOrder() {
		if w.next.IsZero() || w.next.After(now) {
			continue
		}
		if err := t.fire(ctx, w, now); err != nil {
			t.eng.Log.Error("schedule is due, and tried again", "trigger", w.ID, "key", w.Key, "error", err)
			t.retry = now.Add(spaceCheck)
			return
		}
	}
}

// cronPayload is what comes with cron.tick.
type cronPayload struct {
	ScheduledAtMs int64 `json:"scheduledAtMs"`
	Late          bool  `json:"late,omitempty"`    // it was missed then
	LeftOut       bool  `json:"leftOut,omitempty"` // so many were missed before it that these are not made up for
}

// fire makes occurrences of the times that are due. Each has the time as its key, so it comes once, whatever the clock does.
func (t *triggers) fire(ctx context.Context, w *trigger, now time.Time) error {
	ticks, newest := w.schedule.Due(w.since, now)
	if newest.IsZero() {
		w.since = now
		w.plan(now)
		return nil
	}
	row := w.Trigger
	row.TickedMs = newest.UnixMilli()
	if len(ticks) > 0 {
		var all []happening
		for _, k := range ticks {
			all = append(all, happening{
				typ: protocol.TypeCronTick, sourceKey: string(w.ID), key: k.At.UTC().Format(time.RFC3339), only: w,
				payload: encode(cronPayload{k.At.UnixMilli(), k.Late, k.LeftOut}),
			})
		}
		if _, err := t.record(ctx, &persistence.Commit{Triggers: persistence.TriggerChange{Put: []persistence.Trigger{row}}}, all...); err != nil {
			return err
		}
	}
	w.Trigger, w.since = row, newest
	w.plan(now)
	return nil
}
