package queue_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/change"
	"lashd/engine/queue"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// wake returns a wake with the text "[t] " and its name.
func wake(name, merge string) queue.Wake {
	return queue.Wake{Source: name, Merge: merge, Cause: protocol.TurnCause{ID: "c-" + name, Type: "t", Text: name}}
}

// wakes queues wakes in one change.
func (s *session) wakes(all ...queue.Wake) string {
	s.Helper()
	return s.change(func(d *queue.Draft, c *change.Change) {
		for _, w := range all {
			if in, refused, err := d.Wake(s.Context(), c, s.past, w); refused != "" || err != nil || in.Source != w.Source {
				s.Errorf("wake %s: input %+v, refused as %q, %v", w.Source, in, refused, err)
			}
		}
	})
}

func TestWake(t *testing.T) {
	t.Run("runtime/B06 a wake gets a turn; one for the earliest boundary enters the running turn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := load(t, "A running")
			s.Running = "A"
			s.is("after a turn", s.wakes(wake("one", "")), "turn new1 queued", "input [t] one@new1 queued", "accepted new1: 1 inputs, [t] one for c-one",
				"waiting [t] one", "now A running, new1 queued, [t] one@new1 queued")
			early := wake("two", "")
			early.Delivery = protocol.DeliverEarliest
			s.Running = ""
			s.wakes(early)
			s.Running = "gone"
			early.Source = "three"
			s.wakes(early)
			if got := s.q.Turns(); len(got) != 4 {
				t.Errorf("where nothing runs, or what runs has ended, %d turns, want 4", len(got))
			}
			s.Running = "A"
			early.Source = "four"
			got := strings.Split(s.wakes(early), "\n")
			if want := "input [t] two@A pendingActive afterWork"; got[0] != want || len(got) != 3 {
				t.Errorf("%q, want %q first", got, want)
			}
			if !s.q.TakeWake() || s.q.TakeWake() {
				t.Error("that wakes came is not told once")
			}
			s.change(func(*queue.Draft, *change.Change) {})
			if s.q.TakeWake() {
				t.Error("no wake came since")
			}
			s.wakes(wake("five", ""))
			s.change(func(*queue.Draft, *change.Change) {})
			if !s.q.TakeWake() {
				t.Error("a change without wakes makes one forgotten")
			}
		})
	})
	t.Run("runtime/B06 the input of a wake has all fields of the wake, with its text once and as valid UTF-8", func(t *testing.T) {
		s := load(t)
		cause := protocol.TurnCause{ID: "c", Type: "task/completed", Origin: "tsk_1", Text: "bad \xff"}
		w := queue.Wake{
			Source: "s", Merge: "m", Delivery: protocol.DeliverAfterTurn, Cause: cause, Expires: 1 << 60, Stream: "st", Ordinal: 3,
			Ceiling: &protocol.Ceiling{ReadOnly: true},
		}
		s.wakes(w)
		in := s.q.Inputs()[0]
		cause.Text = ""
		want := protocol.QueuedWake{Cause: cause, Delivery: protocol.DeliverAfterTurn, Merge: "m", ExpiresAtMs: 1 << 60, Stream: "st", Ordinal: 3}
		if *in.Wake != want || in.Source != "s" || in.Ceiling != w.Ceiling || in.Input[0].Type != protocol.InputText || words(in.Input) != "[task/completed tsk_1] bad \uFFFD" {
			t.Errorf("input %+v of %+v", in, *in.Wake)
		}
		if w.Size() != len("[task/completed tsk_1] bad \uFFFD") {
			t.Errorf("size %d", w.Size())
		}
	})
}

func TestRefusals(t *testing.T) {
	known := protocol.QueuedInput{ID: "known", Source: "known"}
	for _, c := range []struct {
		name   string
		change func(*queue.Wake)
		want   protocol.WakeRefusal
		input  protocol.InputID
	}{
		{"a valid wake is accepted", func(*queue.Wake) {}, "", ""},
		{"its source is known", func(w *queue.Wake) { w.Source = "known" }, protocol.WakeDuplicate, "known"},
		{"its source is known from the change", func(w *queue.Wake) { w.Source = "same" }, protocol.WakeDuplicate, "same, newer"},
		{"its source is known from the first input of the change", func(w *queue.Wake) { w.Source = "oldest" }, protocol.WakeDuplicate, "oldest"},
		{"it has no source, like others", func(w *queue.Wake) { w.Source = "" }, "", ""},
		{"it expires now", func(w *queue.Wake) { w.Expires = startMs }, protocol.WakeExpired, ""},
		{"it expires later", func(w *queue.Wake) { w.Expires = startMs + 1 }, "", ""},
		{"it fits", func(w *queue.Wake) { w.Cause.Text = strings.Repeat("x", 996) }, "", ""},
		{"it is too large", func(w *queue.Wake) { w.Cause.Text = strings.Repeat("x", 997) }, protocol.WakeTooLarge, ""},
		{"it is the next of its stream", func(w *queue.Wake) { w.Stream, w.Ordinal = "stored", 5 }, "", ""},
		{"it is not the next of its stream", func(w *queue.Wake) { w.Stream, w.Ordinal = "stored", 4 }, protocol.WakeRewound, ""},
		{"it is the next of a stream in the change", func(w *queue.Wake) { w.Stream, w.Ordinal = "changed", 7 }, "", ""},
		{"it is not the next of a stream in the change", func(w *queue.Wake) { w.Stream, w.Ordinal = "changed", 6 }, protocol.WakeRewound, ""},
		{"other streams do not matter", func(w *queue.Wake) { w.Stream, w.Ordinal = "new", 1 }, "", ""},
		{"it is older than the newest of its stream in the change", func(w *queue.Wake) { w.Stream, w.Ordinal = "both", 9 }, protocol.WakeRewound, ""},
		{"without a stream its ordinal does not matter", func(w *queue.Wake) { w.Ordinal = -1 }, "", ""},
	} {
		t.Run("runtime/B06 "+c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := load(t)
				s.past = past{sources: map[string]protocol.QueuedInput{"known": known}, ordinals: map[string]int64{"stored": 4, "both": 9}}
				s.change(func(d *queue.Draft, c2 *change.Change) {
					c2.Inputs = []protocol.QueuedInput{
						{ID: "oldest", Source: "oldest"}, {ID: "same", Source: "same"}, {ID: "same, newer", Source: "same"}, {ID: "no source"},
						{ID: "x", Wake: &protocol.QueuedWake{Stream: "changed", Ordinal: 6}}, {ID: "y", Wake: &protocol.QueuedWake{Stream: "changed", Ordinal: 2}},
						{ID: "z", Wake: &protocol.QueuedWake{Stream: "both", Ordinal: 3}},
					}
					rows := len(c2.Inputs)
					w := wake("w", "")
					c.change(&w)
					in, refused, err := d.Wake(t.Context(), c2, s.past, w)
					if refused != c.want || err != nil || c.input != "" && in.ID != c.input {
						t.Errorf("refused as %q with input %q, want %q, %q: %v", refused, in.ID, c.want, c.input, err)
					}
					if taken := len(c2.Inputs) > rows; taken != (c.want == "") || taken != (len(c2.Told()) > 0) {
						t.Errorf("%d rows more, %d events", len(c2.Inputs)-rows, len(c2.Told()))
					}
				})
				if s.q.TakeWake() != (c.want == "") {
					t.Error("a refused wake starts a turn, or one that was taken does not")
				}
			})
		})
	}
	t.Run("runtime/B06 an error of the store is returned", func(t *testing.T) {
		s := load(t)
		s.past.err = errLost
		s.change(func(d *queue.Draft, c *change.Change) {
			if _, refused, err := d.Wake(t.Context(), c, s.past, wake("w", "")); !errors.Is(err, errLost) || refused != "" {
				t.Errorf("looking for its source: %q, %v", refused, err)
			}
			if in, err := d.Same(t.Context(), c, s.past, ""); in != nil || err != nil {
				t.Errorf("without a source there is nothing to look for: %+v, %v", in, err)
			}
			w := wake("", "")
			w.Stream, w.Ordinal = "broken", 1
			if _, refused, err := d.Wake(t.Context(), c, s.past, w); !errors.Is(err, errLost) || refused != "" {
				t.Errorf("looking for its stream: %q, %v", refused, err)
			}
			if len(c.Inputs) != 0 {
				t.Errorf("inputs %+v", c.Inputs)
			}
		})
	})
}

// TestMerging queues a wake with key m and 300 bytes. The wake "old" with key m already waits in turn B.
func TestMerging(t *testing.T) {
	ceiling := &protocol.Ceiling{ReadOnly: true}
	full := func(n int) (lines []string) {
		for i := range n {
			lines = append(lines, fmt.Sprintf("%d@B queued m", i))
		}
		return append(lines, "A running", "B queued")
	}
	first := func(s *session) *protocol.QueuedInput { return &s.q.Inputs()[0] }
	for _, c := range []struct {
		name   string
		loaded []string
		change func(*session, *queue.Wake)
		want   bool
	}{
		{"waiting wakes with the same key share a turn", nil, nil, true},
		{"up to 64 share a turn", full(63), nil, true},
		{"not more than 64", full(64), nil, false},
		{"within half a minute", nil, func(s *session, _ *queue.Wake) { first(s).AtMs = startMs - 30_000 }, true},
		{"not later", nil, func(s *session, _ *queue.Wake) { first(s).AtMs = startMs - 30_001 }, false},
		{"within half of the model's room", nil, func(s *session, _ *queue.Wake) { first(s).Input[0].Text = strings.Repeat("x", 200) }, true},
		{"not beyond it", nil, func(s *session, _ *queue.Wake) { first(s).Input[0].Text = strings.Repeat("x", 201) }, false},
		{"not without a key", []string{"A running", "B queued", "old@B queued"}, func(s *session, w *queue.Wake) {
			first(s).Wake, w.Merge = &protocol.QueuedWake{}, ""
		}, false},
		{"not with another key", nil, func(_ *session, w *queue.Wake) { w.Merge = "n" }, false},
		{"not with another delivery", nil, func(_ *session, w *queue.Wake) { w.Delivery = protocol.DeliverAfterTurn }, false},
		{"not with another ceiling", nil, func(_ *session, w *queue.Wake) { w.Ceiling = ceiling }, false},
		{"with an equal ceiling", nil, func(s *session, w *queue.Wake) {
			first(s).Ceiling, w.Ceiling = &protocol.Ceiling{ReadOnly: true}, ceiling
		}, true},
		{"not with input of a person", []string{"A running", "B queued", "old@B queued m", "me@B queued"}, nil, false},
		{"not in a turn without inputs", []string{"A running", "B queued"}, nil, false},
		{"not in a turn that has begun", []string{"B running", "old@B queued m"}, nil, false},
		{"not past another turn", []string{"B queued", "C queued", "old@B queued m", "me@C queued"}, nil, false},
		{"not if the session drains one wake per turn", nil, func(s *session, _ *queue.Wake) { s.Drain = protocol.DrainOne }, false},
		{"if the session merges wakes", nil, func(s *session, _ *queue.Wake) { s.Drain = protocol.DrainMerge }, true},
		{"not in an empty queue", []string{"one@gone queued m"}, nil, false},
	} {
		t.Run("runtime/P08 "+c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c.loaded == nil {
					c.loaded = []string{"A running", "B queued", "old@B queued m"}
				}
				s := load(t, c.loaded...)
				w := wake(strings.Repeat("x", 296), "m")
				if c.change != nil {
					c.change(s, &w)
				}
				turns := len(s.q.Turns())
				s.wakes(w)
				last := s.q.Inputs()[len(s.q.Inputs())-1]
				if shared := last.TurnID == "B"; shared != c.want || shared != (len(s.q.Turns()) == turns) {
					t.Errorf("it is in turn %s of %d, want it shared: %t", s.name(last.TurnID), len(s.q.Turns()), c.want)
				}
			})
		})
	}
}

func TestEntering(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy protocol.DrainPolicy
		loaded []string
		expire []protocol.InputID
		want   string
	}{
		{"all inputs of people, and wakes that share a turn", "", []string{"me@A pendingActive", "one@A pendingActive m", "two@A pendingActive m", "too@A pendingActive"}, nil, "me one two too"},
		{"no wake after one that does not share", "", []string{"one@A pendingActive m", "two@A pendingActive n", "three@A pendingActive m", "me@A pendingActive"}, nil, "one me"},
		{"one wake if the session drains one per turn", protocol.DrainOne, []string{"one@A pendingActive m", "two@A pendingActive m", "me@A pendingActive"}, nil, "one me"},
		{"none that has expired", "", []string{"one@A pendingActive n", "two@A pendingActive m", "three@A pendingActive m"}, []protocol.InputID{"one"}, "two three"},
		{"none that has already entered, and none of another turn", "", []string{"me@A accepted", "too@A pendingActive", "other@B pendingActive"}, nil, "too"},
		{"people's inputs beside each other", protocol.DrainOne, []string{"me@A pendingActive", "too@A pendingActive"}, nil, "me too"},
	} {
		t.Run("runtime/P08 "+c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := load(t, c.loaded...)
				for _, id := range c.expire {
					s.expiring(map[protocol.InputID]time.Duration{id: 0})
				}
				var got []string
				for _, in := range s.q.Entering("A", c.policy, func(protocol.Boundary) bool { return true }) {
					got = append(got, string(in.ID))
				}
				if got := strings.Join(got, " "); got != c.want {
					t.Errorf("%s enter, want %s", got, c.want)
				}
			})
		})
	}
}

var _ queue.Past = (*persistence.Store)(nil)
