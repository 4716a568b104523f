package change_test

import (
	"errors"
	"slices"
	"testing"

	"lashd/engine/change"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// counter is a part of a session that counts.
type counter struct{ n int }

type counterDraft struct {
	of    *counter
	n     int
	calls *[]string
	err   error    // of Finish
	next  *counter // whose draft Finish begins
}

func (d *counterDraft) Finish(c *change.Change) error {
	*d.calls = append(*d.calls, "finish")
	c.TellOf(protocol.Event{Type: protocol.EventPluginCustom, Name: "last"})
	if d.next != nil {
		in(c, d.next, d.calls).n++
	}
	return d.err
}

func (d *counterDraft) Land() { d.of.n = d.n }

func in(c *change.Change, k *counter, calls *[]string) *counterDraft {
	return change.DraftOf(c, k, func() *counterDraft { return &counterDraft{of: k, n: k.n, calls: calls} })
}

// TestChange checks the order in which a change calls the parts of a session.
func TestChange(t *testing.T) {
	base := change.Base{Seq: 7, Commits: 3}
	t.Run("a stored change lands its drafts and runs no undo function", func(t *testing.T) {
		k, calls := &counter{}, []string(nil)
		c := change.New(base, persistence.Commit{})
		in(c, k, &calls).n++
		in(c, k, &calls).n++ // gets the same draft
		c.Then(func() { calls = append(calls, "then") })
		c.Undo(func() { calls = append(calls, "undo") })
		c.TellOf(protocol.Event{Type: protocol.EventPluginCustom, Name: "first"})
		if err := errors.Join(c.Finish(), c.Finish(), c.Seal("ses_a", base, 99)); err != nil {
			t.Fatal(err)
		}
		if k.n != 0 {
			t.Errorf("the part is %d before the change is stored", k.n)
		}
		c.Land(persistence.Result{})
		if want := []string{"finish", "then"}; k.n != 2 || !slices.Equal(calls, want) {
			t.Errorf("the part is %d after %v, want 2 after %v", k.n, calls, want)
		}
		if got := c.Seq(); got != 9 || len(c.Events) != 2 || *c.Fence.Seq != 7 || c.AtMs != 99 {
			t.Errorf("the newest event is %d of %d rows behind %d, want 9 of 2 behind 7", got, len(c.Events), *c.Fence.Seq)
		}
	})
	t.Run("a change that is not stored runs its undo functions", func(t *testing.T) {
		k, calls := &counter{}, []string(nil)
		c := change.New(base, persistence.Commit{})
		in(c, k, &calls).n++
		c.Then(func() { calls = append(calls, "then") })
		c.Undo(func() { calls = append(calls, "undo") })
		c.Drop()
		c.Drop()
		if want := []string{"undo"}; k.n != 0 || !slices.Equal(calls, want) {
			t.Errorf("the part is %d after %v, want 0 after %v", k.n, calls, want)
		}
	})
	t.Run("each part has its own draft, and the first failing Finish fails the change", func(t *testing.T) {
		k, other, calls := &counter{}, &counter{n: 5}, []string(nil)
		c := change.New(base, persistence.Commit{})
		first := in(c, k, &calls)
		if second := in(c, other, &calls); second == first || second.n != 5 {
			t.Errorf("the drafts of two parts are %p and %p", first, second)
		}
		if _, ok := change.Drafted[*counterDraft](c, &counter{n: 1}); ok {
			t.Error("a part that is not changed has a draft")
		}
		first.err = errors.New("it cannot be finished")
		if err := c.Finish(); !errors.Is(err, first.err) || len(calls) != 1 {
			t.Errorf("%v after %d drafts, want %v after 1", err, len(calls), first.err)
		}
	})
	t.Run("a draft that is created during Finish is finished and lands too", func(t *testing.T) {
		last, calls := &counter{}, []string(nil)
		c := change.New(base, persistence.Commit{})
		in(c, &counter{}, &calls).next = last
		if err := c.Finish(); err != nil {
			t.Fatal(err)
		}
		c.Land(persistence.Result{})
		if len(calls) != 2 || last.n != 1 {
			t.Errorf("%d drafts are finished, the last is %d, want 2 and 1", len(calls), last.n)
		}
	})
	t.Run("a change can be sealed once, and only in the state in which it was begun", func(t *testing.T) {
		for _, now := range []change.Base{{Seq: 8, Commits: 4}, {Seq: 7, Commits: 4}} {
			c := change.New(base, persistence.Commit{})
			if err := c.Seal("ses_a", now, 1); !errors.Is(err, change.ErrMoved) {
				t.Errorf("at %+v, begun at %+v: %v, want ErrMoved", now, base, err)
			}
		}
		c := change.New(base, persistence.Commit{})
		if err := errors.Join(c.Seal("ses_a", base, 1)); err != nil {
			t.Fatal(err)
		}
		if err := c.Seal("ses_a", base, 1); !errors.Is(err, change.ErrSealed) {
			t.Errorf("a second commit: %v, want ErrSealed", err)
		}
	})
}
