package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/change"
	"lashd/engine/queue"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// session is a queue with the state of its session.
type session struct {
	testing.TB
	queue.Policy
	q    *queue.Queue
	past past
	made []protocol.TurnID // by the queue, called new1, new2 … in results
}

// past is a Past with fixed answers.
type past struct {
	sources  map[string]protocol.QueuedInput
	ordinals map[string]int64
	err      error
}

func (p past) SourceInput(_ context.Context, key int64, source string) (protocol.QueuedInput, error) {
	in, ok := p.sources[source]
	switch {
	case p.err != nil:
		return in, p.err
	case key != 7 || !ok:
		return in, fmt.Errorf("look for it: %w", persistence.ErrNotFound)
	}
	return in, nil
}

func (p past) NewestOrdinal(_ context.Context, key int64, stream string) (int64, error) {
	if stream == "broken" || key != 7 {
		return 0, errLost
	}
	return p.ordinals[stream], nil
}

var errLost = errors.New("the store is lost")

// startMs is the time at which each test starts in synctest.
var startMs = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// load returns a session from lines such as "A running" for a turn and "one@A queued" for an input. One more word makes the input a wake with
// this merge key.
func load(t testing.TB, lines ...string) *session {
	var turns []persistence.StoredTurn
	var inputs []protocol.QueuedInput
	for _, l := range lines {
		words := strings.Fields(l)
		text, id, isInput := strings.Cut(words[0], "@")
		if !isInput {
			turns = append(turns, turn(words[0], protocol.TurnState(words[1])))
			continue
		}
		in := input(text)
		in.ID, in.TurnID, in.State = protocol.InputID(text), protocol.TurnID(id), protocol.InputState(words[1])
		if len(words) > 2 {
			in.Wake = &protocol.QueuedWake{Merge: words[2], Cause: protocol.TurnCause{ID: "c-" + text}}
		}
		inputs = append(inputs, in)
	}
	return &session{
		TB: t, q: queue.New(turns, inputs),
		Policy: queue.Policy{Session: "ses_a", Key: 7, Incarnation: "now", Room: 1000},
	}
}

func turn(id string, state protocol.TurnState) persistence.StoredTurn {
	return persistence.StoredTurn{Session: "ses_a", Turn: persistence.Turn{ID: protocol.TurnID(id), State: state, AcceptedMs: 5}}
}

func input(text string) protocol.QueuedInput {
	return protocol.QueuedInput{Input: []protocol.InputPart{{Type: protocol.InputText, Text: text}}, AtMs: startMs}
}

// change runs f on a draft and stores it. It returns the rows and events of the change and the resulting queue, in lines.
func (s *session) change(f func(*queue.Draft, *change.Change)) string {
	s.Helper()
	before := s.now()
	c := change.New(change.Base{}, persistence.Commit{})
	d := s.q.In(c, s.Policy)
	f(d, c)
	if s.q.In(c, s.Policy) != d {
		s.Error("the change has two drafts of the queue")
	}
	if now := s.now(); now != before {
		s.Errorf("the draft changed the stored queue to %s, was %s", now, before)
	}
	if err := c.Finish(); err != nil {
		s.Fatal(err)
	}
	c.Land(persistence.Result{})
	var out []string
	for _, t := range c.Turns {
		out = append(out, "turn "+s.turn(t))
	}
	for _, in := range c.Inputs {
		out = append(out, "input "+s.input(in))
	}
	for _, e := range c.Told() {
		out = append(out, s.event(e.Event))
	}
	return strings.Join(append(out, "now "+s.now()), "\n")
}

// now returns the queue in one line.
func (s *session) now() string {
	var all []string
	for _, t := range s.q.Turns() {
		all = append(all, s.turn(t.Turn))
	}
	for _, in := range s.q.Inputs() {
		all = append(all, s.input(in))
	}
	return strings.Join(all, ", ")
}

func (s *session) turn(t persistence.Turn) string {
	text := s.name(t.ID) + " " + string(t.State)
	if r := t.Report; r != nil {
		text += fmt.Sprintf(" (report of %s %s %s %d, %s)", s.name(r.TurnID), r.SessionID, r.State, r.AcceptedAtMs, outcome(r.Outcome))
	}
	return text
}

func outcome(o *protocol.TurnOutcome) string {
	return fmt.Sprintf("%s by %s: %s", o.Kind, o.Cancel.RequestID, o.Cancel.Reason)
}

func (s *session) name(id protocol.TurnID) string {
	if !strings.HasPrefix(string(id), "trn_") {
		return string(id)
	}
	if !slices.Contains(s.made, id) {
		s.made = append(s.made, id)
	}
	return fmt.Sprint("new", 1+slices.Index(s.made, id))
}

func (s *session) input(in protocol.QueuedInput) string {
	if in.ID == "" {
		s.Errorf("%+v has no id", in)
	}
	return strings.Join(strings.Fields(fmt.Sprintf("%s@%s %s %s %s", words(in.Input), s.name(in.TurnID), in.State, in.Boundary, in.Refused)), " ")
}

func words(parts []protocol.InputPart) string {
	var all []string
	for _, p := range parts {
		all = append(all, p.Text)
	}
	return strings.Join(all, "+")
}

func (s *session) event(e protocol.Event) string {
	switch e.Type {
	case protocol.EventTurnAccepted:
		var causes []string
		for _, c := range e.Causes {
			causes = append(causes, " for "+c.ID)
		}
		return fmt.Sprintf("accepted %s: %d inputs, %s%s", s.name(e.TurnID), len(e.InputIDs), words(e.Input), strings.Join(causes, ""))
	case protocol.EventQueueChanged:
		var waiting []string
		for _, in := range e.Queue {
			waiting = append(waiting, words(in.Input))
		}
		return "waiting " + strings.Join(waiting, " ")
	case protocol.EventTurnCompleted:
		return fmt.Sprintf("completed %s: %s, usage %v", s.name(e.TurnID), outcome(e.Outcome), *e.Usage == protocol.Usage{})
	}
	return string(e.Type)
}

// is compares the result of a change with expected lines.
func (s *session) is(what, got string, want ...string) {
	s.Helper()
	if want := strings.Join(want, "\n"); got != want {
		s.Errorf("%s:\n%s\nwant:\n%s", what, got, want)
	}
}

func TestQueue(t *testing.T) {
	t.Run("runtime/P08 a turn that has started comes first, the others in order of acceptance", func(t *testing.T) {
		s := load(t, "A queued", "B running", "C queued", "one@A queued", "two@B accepted", "three@B pendingActive", "four@gone queued")
		s.is("loaded", s.now(), "B running, A queued, C queued, one@A queued, two@B accepted, three@B pendingActive, four@gone queued")
		if !s.q.Begun() || load(t, "A queued").q.Begun() || load(t).q.Begun() {
			t.Error("a queue has begun that has not, or the other way round")
		}
		for _, id := range []protocol.TurnID{"A", "B"} {
			if found, ok := s.q.Turn(id); !ok || found.ID != id {
				t.Errorf("turn %s is %+v, %t", id, found, ok)
			}
		}
		if b, ok := s.q.Turn("gone"); ok || b.ID != "" {
			t.Errorf("a turn that is unknown is %+v, %t", b, ok)
		}
		var waiting []string
		for _, in := range s.q.Waiting() {
			waiting = append(waiting, string(in.ID))
		}
		if want := []string{"one", "three"}; !slices.Equal(waiting, want) {
			t.Errorf("%v wait, want %v", waiting, want)
		}
		if load(t).q.Waiting() == nil {
			t.Error("an empty queue is reported as null")
		}
	})
	t.Run("runtime/P08 it accepts up to 256 inputs or 8 MiB", func(t *testing.T) {
		for _, c := range []struct {
			inputs, size int
			want         bool
		}{{255, 1, true}, {256, 1, false}, {2, 4<<20 - 1, true}, {2, 4 << 20, false}} {
			all := slices.Repeat([]protocol.QueuedInput{input(strings.Repeat("x", c.size))}, c.inputs)
			if err := queue.New(nil, all).CheckRoom(); (err == nil) != c.want {
				t.Errorf("with %d inputs of %d bytes: %v", c.inputs, c.size, err)
			}
		}
	})
	t.Run("runtime/P08 an input can be withdrawn until its turn reads it", func(t *testing.T) {
		s := load(t, "A running", "B queued", "one@A queued", "two@A pendingActive", "three@B queued", "four@gone queued")
		answers, gone := s.q.Withdrawable(s.q.Inputs())
		var statuses []protocol.CancelStatus
		for _, a := range answers {
			statuses = append(statuses, a.Status)
		}
		no, yes := protocol.CancelAlreadyClaimed, protocol.CancelDone
		if want := []protocol.CancelStatus{no, yes, yes, no}; !slices.Equal(statuses, want) || len(gone) != 2 || !gone["two"] || !gone["three"] {
			t.Errorf("%v, want %v; gone: %v", statuses, want, gone)
		}
	})
	t.Run("runtime/P08 a turn starts with the inputs that were not steered", func(t *testing.T) {
		s := load(t, "A running", "one@A queued", "two@A pendingActive", "three@A deferredNextTurn", "four@B queued")
		if ids := s.q.BeginsWith("A"); !slices.Equal(ids, []protocol.InputID{"one", "three"}) {
			t.Errorf("it begins with %v", ids)
		}
	})
	synctest.Test(t, testAccepting)
	t.Run("runtime/P08 a change of a turn or an input replaces it", func(t *testing.T) {
		s := load(t, "A queued", "B queued", "one@A queued", "two@B queued")
		s.is("changed", s.change(func(d *queue.Draft, c *change.Change) {
			in := s.q.Inputs()[1]
			in.State = protocol.InputAccepted
			d.SetInput(c, in)
			d.SetTurn(c, turn("B", protocol.TurnRunning))
		}), "turn B running", "input two@B accepted", "now A queued, B running, one@A queued, two@B accepted")
	})
	t.Run("runtime/P08 ending a queued turn cancels its inputs and no others", func(t *testing.T) {
		s := load(t, "A queued", "B queued", "one@A queued", "two@B queued")
		s.is("ended", s.change(func(d *queue.Draft, c *change.Change) { d.EndUnstarted(c, turn("A", protocol.TurnCancelled)) }),
			"turn A cancelled", "input one@A cancelled", "now B queued, two@B queued")
	})
	t.Run("runtime/P08 withdrawing the last input of a queued turn ends the turn", func(t *testing.T) {
		s := load(t, "A running", "B queued", "C queued", "zero@A pendingActive", "one@B queued", "two@C queued", "three@C queued")
		var ended []persistence.StoredTurn
		report := "cancelled by internal:queue: its input was withdrawn"
		s.is("withdrawn", s.change(func(d *queue.Draft, c *change.Change) {
			ended = d.Withdraw(c, map[protocol.InputID]bool{"zero": true, "one": true, "three": true})
		}),
			"turn B cancelled (report of B ses_a cancelled 5, "+report+")",
			"input zero@A cancelled", "input one@B cancelled", "input three@C cancelled",
			"completed B: "+report+", usage true", "waiting two", "now A running, C queued, two@C queued")
		if len(ended) != 1 || ended[0].ID != "B" {
			t.Errorf("turns that ended: %+v", ended)
		}
	})
}

func testAccepting(t *testing.T) {
	s := load(t, "A running")
	s.Running = "A"
	var queued protocol.QueuedInput
	s.is("runtime/P08 an input gets its own turn at the end of the queue", s.change(func(d *queue.Draft, c *change.Change) { queued, _ = d.Start(c, "", input("one"), false) }),
		"turn new1 queued", "input one@new1 queued", "accepted new1: 1 inputs, one", "waiting one", "now A running, new1 queued, one@new1 queued")
	if last := s.q.Turns()[1]; queued.AtMs != startMs || last.AcceptedMs != startMs || last.Incarnation != "now" || last.Session != "ses_a" {
		t.Errorf("input %+v, turn %+v", queued, last)
	}
	s.is("runtime/P08 a steered input waits for the running turn", s.change(func(d *queue.Draft, c *change.Change) {
		in := d.Steer(c, input("two"))
		if in.AtMs != startMs || !strings.HasPrefix(string(in.ID), "inp_") {
			t.Errorf("%+v", in)
		}
	}), "input two@A pendingActive afterWork", "waiting one two", "now A running, new1 queued, one@new1 queued, two@A pendingActive afterWork")
	s = load(t)
	s.is("runtime/P08 the turn of an idle session runs at once with the requested id", s.change(func(d *queue.Draft, c *change.Change) {
		d.Start(c, "B", input("x"), true)
	}), "turn B running", "input x@B queued", "accepted B: 1 inputs, x", "now B running, x@B queued")
	if s.q.TakeWake() {
		t.Error("none of this was a wake")
	}
}

func TestBegin(t *testing.T) {
	for _, c := range []struct {
		name, state, incarnation string
		asks                     bool
		want                     []string
	}{
		{"a queued turn runs, and its inputs no longer wait", "queued", "now", false, []string{"turn A running", "waiting "}},
		{"a turn of an earlier daemon is taken over", "running", "before", false, []string{"turn A running"}},
		{"a turn with an open decision waits", "running", "now", true, []string{"turn A waiting"}},
		{"a running turn does not change", "running", "now", false, nil},
	} {
		t.Run("runtime/P08 "+c.name, func(t *testing.T) {
			stored := turn("A", protocol.TurnState(c.state))
			stored.Incarnation = c.incarnation
			s := &session{TB: t, q: queue.New([]persistence.StoredTurn{stored}, nil), Policy: queue.Policy{Incarnation: "now"}}
			state := protocol.TurnRunning
			if c.asks {
				state = protocol.TurnWaiting
			}
			s.is("begun", s.change(func(d *queue.Draft, ch *change.Change) {
				if next := d.Begin(ch, stored, c.asks); next.State != state || next.Incarnation != "now" || next.StartedMs == 0 {
					t.Errorf("%+v", next)
				}
			}), append(c.want, "now A "+string(state))...)
		})
	}
}
