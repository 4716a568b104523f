package trigger

import (
	"slices"
	"testing"
	"time"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// occurred returns an occurrence with one delivery to each session.
func occurred(key string, sessions ...protocol.SessionID) persistence.Occurred {
	o := persistence.Occurred{Occurrence: protocol.Occurrence{Key: key}}
	for _, id := range sessions {
		o.Deliveries = append(o.Deliveries, protocol.TriggerDelivery{SessionID: id})
		o.Actions = append(o.Actions, protocol.TriggerAction{})
	}
	return o
}

// takeAll takes all deliveries that may start now.
func takeAll(o *outbox, now time.Time) (keys []string) {
	for {
		r, ok := o.take(now)
		if !ok {
			return keys
		}
		keys = append(keys, r.Occurrence.Key+string(r.Delivery.SessionID))
	}
}

func TestOutbox(t *testing.T) {
	now := time.Unix(1000, 0)
	filled := func() *outbox {
		o := &outbox{blocked: map[protocol.SessionID]time.Time{}}
		o.add(occurred("1", "a", "b"))
		o.add(occurred("2", "a", "c"))
		o.add(occurred("3", "b"))
		return o
	}
	check := func(t *testing.T, what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: took %q, want %q", what, got, want)
		}
	}
	t.Run("runtime/B14 each session gets one delivery at a time, in order", func(t *testing.T) {
		o := filled()
		check(t, "first", takeAll(o, now), "1a", "1b", "2c")
		delete(o.blocked, "b")
		check(t, "after b", takeAll(o, now), "3b")
		delete(o.blocked, "a")
		check(t, "after a", takeAll(o, now), "2a")
		if o.busy != 5 || len(o.waiting) != 0 {
			t.Errorf("%d are busy and %d wait, want 5 and none", o.busy, len(o.waiting))
		}
	})
	t.Run("runtime/B14 a session whose delivery failed gets the next one after the delay", func(t *testing.T) {
		o := filled()
		o.blocked["a"] = now.Add(2 * time.Second)
		o.blocked["b"] = now.Add(time.Second)
		check(t, "at once", takeAll(o, now), "2c")
		if at := o.due(now); !at.Equal(now.Add(time.Second)) {
			t.Errorf("the next is due at %s, want one second later", at)
		}
		check(t, "after a second", takeAll(o, now.Add(time.Second)), "1b")
		check(t, "after two seconds", takeAll(o, now.Add(2*time.Second)), "1a")
		if at := o.due(now.Add(2 * time.Second)); !at.IsZero() {
			t.Errorf("the next is due at %s, want none", at)
		}
	})
}
