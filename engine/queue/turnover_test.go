package queue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/change"
	"lashd/engine/queue"
	"lashd/rpc/protocol"
)

// expiring sets the expiry of wakes relative to now.
func (s *session) expiring(at map[protocol.InputID]time.Duration) {
	for _, in := range s.q.Inputs() {
		if after, ok := at[in.ID]; ok {
			in.Wake.ExpiresAtMs = time.Now().Add(after).UnixMilli()
		}
	}
}

func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drop := func(s *session) (out string, ended int, some bool) {
			out = s.change(func(d *queue.Draft, c *change.Change) {
				turns, dropped := d.DropExpired(c, "A")
				ended, some = len(turns), dropped
			})
			return out, ended, some
		}
		s := load(t, "A queued", "B queued", "one@A queued m", "two@A queued m", "three@A queued m", "me@A queued", "other@B queued m")
		s.expiring(map[protocol.InputID]time.Duration{"one": -time.Millisecond, "two": 0, "three": time.Millisecond, "other": -time.Second})
		out, ended, some := drop(s)
		s.is("runtime/B06 only expired wakes are dropped from the turn that starts", out,
			"input one@A cancelled expired", "input two@A cancelled expired", "waiting three me other",
			"now A queued, B queued, three@A queued, me@A queued, other@B queued")
		if ended != 0 || !some {
			t.Errorf("%d turns ended, some %t, want none and true", ended, some)
		}
		out, ended, some = drop(s)
		s.is("runtime/B06 nothing more expires", out, "now A queued, B queued, three@A queued, me@A queued, other@B queued")
		if ended != 0 || some {
			t.Errorf("%d turns ended, some %t, want none and false", ended, some)
		}
		s = load(t, "A queued", "one@A queued m")
		s.expiring(map[protocol.InputID]time.Duration{"one": 0})
		report := "cancelled by internal:queue: its wake has expired"
		out, ended, some = drop(s)
		s.is("runtime/B06 a turn without remaining inputs ends", out, "turn A cancelled (report of A ses_a cancelled 5, "+report+")",
			"input one@A cancelled expired", "completed A: "+report+", usage true", "waiting ", "now ")
		if ended != 1 || !some {
			t.Errorf("%d turns ended, some %t, want one and true", ended, some)
		}
	})
}

func TestTurnOver(t *testing.T) {
	over := func(s *session) string {
		return s.change(func(d *queue.Draft, c *change.Change) { d.TurnOver(c, "A") })
	}
	for _, c := range []struct {
		name   string
		loaded []string
		change func(*session)
		want   []string
	}{
		{
			"runtime/P08 what it took in is completed, and what others wait for stays", []string{"A running", "B queued", "one@A accepted", "two@A queued", "three@B queued"}, nil,
			[]string{"input one@A completed", "input two@A completed", "now B queued, three@B queued"},
		},
		{
			"runtime/P08 what a person steered too late goes to the next turn, in its place", []string{"A running", "B queued", "C queued", "late@A pendingActive", "two@B queued"}, nil,
			[]string{"input late@B deferredNextTurn", "waiting late two", "now B queued, C queued, late@B deferredNextTurn, two@B queued"},
		},
		{
			"runtime/P08 without a next turn one is made, and it answers all that was late", []string{"A running", "late@A pendingActive", "later@A pendingActive"}, nil,
			[]string{"turn new1 queued", "input late@new1 deferredNextTurn", "input later@new1 deferredNextTurn", "accepted new1: 2 inputs, late+later", "waiting late later", "now new1 queued, late@new1 deferredNextTurn, later@new1 deferredNextTurn"},
		},
		{
			"runtime/P08 an input that is held to more than others gets a turn of its own", []string{"A running", "B queued", "late@A pendingActive", "two@B queued"},
			func(s *session) { s.q.Inputs()[0].Ceiling = &protocol.Ceiling{ReadOnly: true} },
			[]string{"turn new1 queued", "input late@new1 deferredNextTurn", "accepted new1: 1 inputs, late", "waiting late two", "now B queued, new1 queued, late@new1 deferredNextTurn, two@B queued"},
		},
		{
			"runtime/B06 late wakes share a turn as if they came now", []string{"A running", "B queued", "one@A pendingActive m", "two@A pendingActive m", "three@A pendingActive n"}, nil,
			[]string{
				"turn new1 queued", "turn new2 queued", "input one@new1 deferredNextTurn", "input two@new1 deferredNextTurn", "input three@new2 deferredNextTurn",
				"accepted new1: 2 inputs, one+two for c-one for c-two", "accepted new2: 1 inputs, three for c-three", "waiting one two three",
				"now B queued, new1 queued, new2 queued, one@new1 deferredNextTurn, two@new1 deferredNextTurn, three@new2 deferredNextTurn",
			},
		},
		{
			"runtime/B06 a late wake that has expired is cancelled", []string{"A running", "one@A pendingActive m"},
			func(s *session) { s.expiring(map[protocol.InputID]time.Duration{"one": 0}) },
			[]string{"input one@A cancelled expired", "waiting ", "now "},
		},
		{
			"runtime/B06 a wake that was taken in has not expired", []string{"A running", "one@A accepted m"},
			func(s *session) { s.expiring(map[protocol.InputID]time.Duration{"one": 0}) },
			[]string{"input one@A completed", "now "},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := load(t, c.loaded...)
				if c.change != nil {
					c.change(s)
				}
				s.is("over", over(s), c.want...)
			})
		})
	}
}

// TestGoOn checks the inputs of a turn that continues in another frame.
func TestGoOn(t *testing.T) {
	goOn := func(s *session) string {
		return s.change(func(d *queue.Draft, c *change.Change) {
			next := input("task")
			next.ID, next.TurnID, next.State = "task", "N", protocol.InputAccepted
			d.GoOn(c, "A", turn("N", protocol.TurnRunning), next)
		})
	}
	s := load(t, "A running", "B queued", "one@A accepted", "late@A pendingActive", "two@B queued")
	s.is("steered inputs move to the continuing turn, which comes first", goOn(s),
		"input one@A completed", "input late@N pendingActive", "accepted N: 1 inputs, task", "waiting late two",
		"now N running, B queued, late@N pendingActive, two@B queued, task@N accepted")
	s = load(t, "A running", "one@A accepted")
	s.is("nothing waits", goOn(s), "input one@A completed", "accepted N: 1 inputs, task", "now N running, task@N accepted")
}
