package trigger

import (
	"context"
	"time"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// plan sets the time at which the schedule is due next. If the clock was set back, the same
// times are due again, but their occurrences already exist and are not recorded twice.
func (a *active) plan(now time.Time) {
	a.next = time.Time{}
	if a.schedule == nil || !a.Enabled {
		return
	}
	if a.since.After(now) {
		a.since = now
	}
	a.next = a.schedule.Next(a.since)
}

// setTimer sets the timer to the next due schedule or delivery retry. While there are
// schedules it fires at least every maxTimer, to notice a changed clock. It stops the timer
// if nothing is due.
func (l *loop) setTimer() {
	now := time.Now()
	next := l.out.due(now)
	sooner := func(at time.Time) {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for _, a := range l.triggers {
		if a.since.After(now) {
			a.plan(now)
		}
		if !a.next.IsZero() {
			sooner(now.Add(maxTimer))
			sooner(later(a.next, l.retry))
		}
	}
	if next.IsZero() {
		l.timer.Stop()
		return
	}
	l.timer.Reset(next.Sub(now))
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// tick records the occurrences of all schedules that are due. After a failure all schedules
// wait for retryDelay.
func (l *loop) tick(ctx context.Context) {
	now := time.Now()
	if l.retry.After(now) {
		return
	}
	l.retry = time.Time{}
	for _, a := range l.inOrder() {
		if a.next.IsZero() || a.next.After(now) {
			continue
		}
		if err := l.recordTicks(ctx, a, now); err != nil {
			l.Log.Error("cannot record a due schedule; retrying", "trigger", a.ID, "key", a.Key, "error", err)
			l.retry = now.Add(retryDelay)
			return
		}
	}
}

// cronPayload is the payload of cron.tick.
type cronPayload struct {
	ScheduledAtMs int64 `json:"scheduledAtMs"`
	// Late means that lashd was not running at the scheduled time.
	Late bool `json:"late,omitempty"`
	// LeftOut means that earlier missed times were skipped because there were too many.
	LeftOut bool `json:"leftOut,omitempty"`
}

// recordTicks records one occurrence for each time that is due, and stores up to which time
// the schedule was handled. Both are one commit. The time is the key of the occurrence, so
// it is recorded once even if the clock is set back.
func (l *loop) recordTicks(ctx context.Context, a *active, now time.Time) error {
	ticks, newest := a.schedule.Due(a.since, now)
	if newest.IsZero() {
		a.since = now
		a.plan(now)
		return nil
	}
	row := a.Trigger
	row.TickedMs = newest.UnixMilli()
	if len(ticks) > 0 {
		var events []event
		for _, t := range ticks {
			events = append(events, event{
				typ: protocol.TypeCronTick, sourceKey: string(a.ID), key: t.At.UTC().Format(time.RFC3339), only: a,
				payload: encode(cronPayload{t.At.UnixMilli(), t.Late, t.LeftOut}),
			})
		}
		if err := l.record(ctx, &persistence.Commit{Triggers: persistence.TriggerChange{Put: []persistence.Trigger{row}}}, events...); err != nil {
			return err
		}
	}
	a.Trigger, a.since = row, newest
	a.plan(now)
	return nil
}
