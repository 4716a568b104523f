package engine

import (
	"cmp"
	"time"

	"lashd/engine/decision"
	"lashd/rpc/protocol"
)

// defaultDeadline is how long a decision stays open if neither a plugin nor the session sets a
// deadline.
const defaultDeadline = 10 * time.Minute

// deadline returns how long the approval of a call stays open. The plugin that requested the
// approval comes first, then the session's approval.deadlineMs, then defaultDeadline.
func (j *judge) deadline(s *toolCall) time.Duration {
	var plugin int64
	if s.approval != nil {
		plugin = s.approval.DeadlineMs
	}
	return cmp.Or(time.Duration(cmp.Or(plugin, j.config.Approval.DeadlineMs))*time.Millisecond, defaultDeadline)
}

// expireDue runs on the actor and gives each overdue decision its default answer. If an answer
// cannot be stored, it tries again after spaceCheck. It stops when the state breaks, since the next
// state reads the decisions from the store.
func (ds *sessionDecisions) expireDue(now time.Time) {
	for _, o := range ds.Due(now) {
		if ds.st.broken != nil {
			break
		}
		if err := ds.expire(o); err != nil {
			ds.st.eng.Log.Error("could not store the default answer of an overdue decision; retrying", "decision", o.ID, "error", err)
			ds.Postpone(o, now.Add(spaceCheck))
		}
	}
}

// expire answers one decision with its default, in the name of "deadline".
func (ds *sessionDecisions) expire(o *decision.Open) error {
	return ds.resolve(ds.st.ctx, o, protocol.DecisionAnswer{Choice: o.Default, By: "deadline", AtMs: now()}, nil)
}

// onAlarm runs on the actor when the alarm rings. It gives overdue decisions their default answers,
// arms the alarm again, and starts the next turn, which may have waited for space.
func (st *state) onAlarm() {
	now := time.Now()
	st.alarm.EndRetry(now)
	st.decisions.expireDue(now)
	st.alarm.Set()
	st.turns.startNext()
}
