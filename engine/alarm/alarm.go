// Package alarm wakes the owner of a session when something is due.
package alarm

import (
	"time"

	"lashd/engine/decision"
)

// Alarm rings when something is due: the deadline of a decision, or the retry of a commit that found no space. It belongs to
// the actor of a session.
type Alarm struct {
	decisions *decision.Book
	timer     *time.Timer
	// retryAt is when the commit is retried; zero if no retry is scheduled.
	retryAt time.Time
}

// New returns an Alarm that is set to the first deadline.
func New(decisions *decision.Book) *Alarm {
	a := &Alarm{decisions: decisions, timer: time.NewTimer(time.Hour)}
	a.Set()
	return a
}

// Rings returns the channel that receives when something is due. The receiver then calls Set, and EndRetry before that.
func (a *Alarm) Rings() <-chan time.Time { return a.timer.C }

// Stop releases the timer when the state is unloaded.
func (a *Alarm) Stop() { a.timer.Stop() }

// Set arms the timer for the earliest due time, or stops it if nothing is due. The actor calls it
// after each change of decisions.
func (a *Alarm) Set() {
	next := a.decisions.Next()
	if a.Retrying() && (next.IsZero() || a.retryAt.Before(next)) {
		next = a.retryAt
	}
	if next.IsZero() {
		a.timer.Stop()
		return
	}
	a.timer.Reset(time.Until(next))
}

// RetryAfter schedules a retry, for a commit that found no space.
func (a *Alarm) RetryAfter(wait time.Duration) {
	a.retryAt = time.Now().Add(wait)
	a.Set()
}

// Retrying reports whether a retry is scheduled. No turn starts before it.
func (a *Alarm) Retrying() bool { return !a.retryAt.IsZero() }

// EndRetry clears a retry that is due at now.
func (a *Alarm) EndRetry(now time.Time) {
	if !a.retryAt.After(now) {
		a.retryAt = time.Time{}
	}
}
