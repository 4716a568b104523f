package engine

import (
	"time"

	"lashd/engine/decision"
)

// alarm wakes the actor of a session when something is due: the deadline of a decision, or the
// retry of a commit that found no space. It belongs to the actor.
type alarm struct {
	decisions *decision.Book
	timer     *time.Timer
	// retryAt is when the commit is retried; zero if no retry is scheduled.
	retryAt time.Time
}

// newAlarm returns an alarm that is set to the first deadline.
func newAlarm(decisions *decision.Book) *alarm {
	a := &alarm{decisions: decisions, timer: time.NewTimer(time.Hour)}
	a.set()
	return a
}

// rings returns the channel that receives when something is due. The receiver calls state.onAlarm.
func (a *alarm) rings() <-chan time.Time { return a.timer.C }

// stop releases the timer when the state is unloaded.
func (a *alarm) stop() { a.timer.Stop() }

// set arms the timer for the earliest due time, or stops it if nothing is due. The actor calls it
// after each change of decisions.
func (a *alarm) set() {
	next := a.decisions.Next()
	if a.retrying() && (next.IsZero() || a.retryAt.Before(next)) {
		next = a.retryAt
	}
	if next.IsZero() {
		a.timer.Stop()
		return
	}
	a.timer.Reset(time.Until(next))
}

// retryLater schedules a retry in one spaceCheck, for a commit that found no space.
func (a *alarm) retryLater() {
	a.retryAt = time.Now().Add(spaceCheck)
	a.set()
}

// retrying reports whether a retry is scheduled. No turn starts before it.
func (a *alarm) retrying() bool { return !a.retryAt.IsZero() }

// endRetry clears a retry that is due at now.
func (a *alarm) endRetry(now time.Time) {
	if !a.retryAt.After(now) {
		a.retryAt = time.Time{}
	}
}

// onAlarm runs on the actor when the alarm rings. It gives overdue decisions their default answers,
// arms the alarm again, and starts the next turn, which may have waited for space.
func (st *state) onAlarm() {
	now := time.Now()
	st.alarm.endRetry(now)
	st.decisions.expireDue(now)
	st.alarm.set()
	st.turns.startNext()
}
