package engine

import (
	"time"

	"lashd/engine/decision"
)

// alarm wakes the actor of a session when something is due: the deadline of a decision, or another try of a commit that found no space.
type alarm struct {
	decisions *decision.Book
	timer     *time.Timer
	retryAt   time.Time // zero: there is nothing to try again
}

// newAlarm returns an alarm that is set to the first deadline.
func newAlarm(decisions *decision.Book) *alarm {
	a := &alarm{decisions: decisions, timer: time.NewTimer(time.Hour)}
	a.set()
	return a
}

// rings receives when something is due.
func (a *alarm) rings() <-chan time.Time { return a.timer.C }

// stop stops the alarm when the state is unloaded.
func (a *alarm) stop() { a.timer.Stop() }

// set sets the alarm to the first time that is due. It is called after each change of decisions.
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

// retryLater schedules another try of a commit that found no space.
func (a *alarm) retryLater() {
	a.retryAt = time.Now().Add(spaceCheck)
	a.set()
}

// retrying reports whether another try is scheduled. No turn starts before it.
func (a *alarm) retrying() bool { return !a.retryAt.IsZero() }

// endRetry ends the wait for another try whose time has come.
func (a *alarm) endRetry(now time.Time) {
	if !a.retryAt.After(now) {
		a.retryAt = time.Time{}
	}
}

// onAlarm does what is due.
func (st *state) onAlarm() {
	now := time.Now()
	st.alarm.endRetry(now)
	st.decisions.expireDue(now)
	st.alarm.set()
	st.turns.startNext()
}
