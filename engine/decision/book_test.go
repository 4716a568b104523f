package decision_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/change"
	"lashd/engine/decision"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// question returns a decision of a turn, opened at a second of the test, with a deadline in seconds after the start of the test; 0: none.
func question(id protocol.DecisionID, turn protocol.TurnID, kind protocol.DecisionKind, opened, deadline int64) protocol.Decision {
	d := protocol.Decision{ID: id, TurnID: turn, Kind: kind, OpenedAtMs: opened}
	if deadline > 0 {
		d.DeadlineMs = time.Now().Add(time.Duration(deadline) * time.Second).UnixMilli()
	}
	return d
}

// store makes a change of a book and lands it.
func store(t *testing.T, f func(*change.Change)) *change.Change {
	t.Helper()
	c := change.New(change.Base{}, persistence.Commit{})
	f(c)
	if err := c.Finish(); err != nil {
		t.Fatal(err)
	}
	c.Land(persistence.Result{})
	return c
}

func ids(all []*decision.Open) (found []protocol.DecisionID) {
	for _, o := range all {
		found = append(found, o.ID)
	}
	return found
}

func isDone(o *decision.Open) bool {
	select {
	case <-o.Done():
		return true
	default:
		return false
	}
}

// told formats the events of a change: type, turn, decision and answer.
func told(c *change.Change) (all []string) {
	for _, e := range c.Told() {
		line := string(e.Type) + " " + string(e.TurnID) + " " + string(e.Decision.ID)
		if a := e.Decision.Answer; a != nil {
			line += " " + string(a.Choice) + " by " + a.By
		}
		all = append(all, line)
	}
	return all
}

func TestDecisionsAreOpenedAndAnswered(t *testing.T) {
	b := decision.New([]protocol.Decision{
		question("c", "A", protocol.DecisionApproval, 2, 0), question("b", "A", protocol.DecisionCompletion, 2, 0), question("a", "B", protocol.DecisionQuestion, 3, 0),
		question("e", "A", protocol.DecisionOutcome, 4, 0),
	})
	if got, want := ids(b.All()), []protocol.DecisionID{"b", "c", "a", "e"}; !slices.Equal(got, want) {
		t.Errorf("open in the order %v, want %v", got, want)
	}
	for turn, want := range map[protocol.TurnID]int{"A": 2, "B": 1, "C": 0} {
		if got := b.AskedBy(turn); got != want {
			t.Errorf("turn %s asks a person %d things, want %d", turn, got, want)
		}
	}

	var asked *decision.Open
	c := change.New(change.Base{}, persistence.Commit{})
	asked = b.Ask(c, question("d", "B", protocol.DecisionApproval, 1, 0))
	b.Answer(c, b.Find("c"), protocol.DecisionAnswer{Choice: protocol.ChooseReject, By: "me"})
	if b.Find("d") != nil || b.Find("c") == nil || isDone(b.Find("c")) {
		t.Error("decisions follow a change that is not stored")
	}
	old := b.Find("c")
	if err := c.Finish(); err != nil {
		t.Fatal(err)
	}
	c.Land(persistence.Result{})
	if b.Find("d") != asked || isDone(asked) || b.Find("c") != nil || !isDone(old) || old.Answer.By != "me" {
		t.Errorf("d is %v, c is %v with %+v", b.Find("d"), b.Find("c"), old.Answer)
	}
	if got, want := told(c), []string{"decision/opened B d", "decision/resolved A c reject by me"}; !slices.Equal(got, want) {
		t.Errorf("observers learn %q, want %q", got, want)
	}
	if len(c.Decisions) != 2 || c.Decisions[0].ID != "d" || c.Decisions[0].Answer != nil || c.Decisions[1].ID != "c" || c.Decisions[1].Answer.Choice != protocol.ChooseReject {
		t.Errorf("the store gets %+v", c.Decisions)
	}
	if got, want := ids(b.All()), []protocol.DecisionID{"d", "b", "a", "e"}; !slices.Equal(got, want) {
		t.Errorf("open are %v, want %v", got, want)
	}
	if !b.AskPerson() || decision.New([]protocol.Decision{question("b", "A", protocol.DecisionCompletion, 2, 0)}).AskPerson() {
		t.Error("a person is asked by completions, or not asked by questions")
	}
}

func TestTurnThatEndsCancelsItsDecisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := decision.New([]protocol.Decision{
			question("b", "A", protocol.DecisionApproval, 2, 0), question("a", "A", protocol.DecisionCompletion, 1, 0), question("c", "B", protocol.DecisionApproval, 1, 0),
		})
		all := b.All()
		c := store(t, func(c *change.Change) { b.TurnOver(c, "A") })
		want := []string{"decision/resolved A a cancelled by internal:turn", "decision/resolved A b cancelled by internal:turn"}
		if got := told(c); !slices.Equal(got, want) {
			t.Errorf("observers learn %q, want %q", got, want)
		}
		for _, o := range all {
			if over := o.TurnID == "A"; isDone(o) != over {
				t.Errorf("%s is answered: %t, want %t", o.ID, isDone(o), over)
			}
		}
		if got := c.Decisions[0].Answer.AtMs; got != time.Now().UnixMilli() {
			t.Errorf("answered at %d, want %d", got, time.Now().UnixMilli())
		}
	})
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		b := decision.New([]protocol.Decision{question("b", "A", protocol.DecisionApproval, 2, 30), question("a", "A", protocol.DecisionApproval, 5, 0)})
		if next := b.Next(); next.Sub(begin) != 30*time.Second {
			t.Errorf("the first deadline passes after %v, want 30s", next.Sub(begin))
		}
		store(t, func(c *change.Change) {
			b.Ask(c, question("c", "A", protocol.DecisionApproval, 3, 20))
			b.Ask(c, question("d", "A", protocol.DecisionApproval, 4, 40))
		})
		if next := b.Next(); next.Sub(begin) != 20*time.Second {
			t.Errorf("the first deadline passes after %v, want 20s", next.Sub(begin))
		}
		if got := ids(b.Due(time.Now())); got != nil {
			t.Errorf("%v are due at once", got)
		}
		time.Sleep(30 * time.Second)
		if got, want := ids(b.Due(time.Now())), []protocol.DecisionID{"b", "c"}; !slices.Equal(got, want) {
			t.Errorf("%v are due after 30 s, want %v", got, want)
		}
		b.Postpone(b.Find("c"), begin.Add(time.Minute))
		if got, want := ids(b.Due(time.Now())), []protocol.DecisionID{"b"}; !slices.Equal(got, want) {
			t.Errorf("%v are due once c is postponed, want %v", got, want)
		}
	})
	if next := decision.New([]protocol.Decision{question("a", "A", protocol.DecisionApproval, 1, 0)}).Next(); !next.IsZero() {
		t.Errorf("a decision without a deadline is due at %v", next)
	}
}

func TestAnsweredDecisionIsDone(t *testing.T) {
	o := decision.Answered(protocol.Decision{ID: "a", Kind: protocol.DecisionCompletion, Answer: &protocol.DecisionAnswer{Choice: protocol.ChooseAnswer}})
	if !isDone(o) || o.Answer.Choice != protocol.ChooseAnswer || o.ForPerson() {
		t.Errorf("%+v, done %t", o, isDone(o))
	}
}
