// Package decision keeps the open decisions of a session: questions to people, and tool calls that are completed from outside.
// A Book belongs to the session's actor, and only the actor may call it. Code that waits for an answer uses Open.Done on its
// own goroutine.
package decision

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"lashd/engine/change"
	"lashd/rpc/protocol"
)

// Open is a decision without an answer. If no client answers before its deadline, lashd stores its default answer.
type Open struct {
	protocol.Decision // Answer is set before Done is closed
	done              chan struct{}
	due               time.Time // when the deadline passes; zero: never
	attended          chan struct{}
	review            atomic.Pointer[Review] // set before attended is closed
}

// Done returns a channel that is closed once the answer is stored and set in Answer.
func (o *Open) Done() <-chan struct{} { return o.done }

// ForPerson reports whether a person must answer. If not, the decision waits for the completion of a tool call.
func (o *Open) ForPerson() bool { return ForPerson(o.Decision) }

// ForPerson reports whether a decision is a question to a person, as opposed to the completion of a tool call.
func ForPerson(d protocol.Decision) bool { return d.Kind != protocol.DecisionCompletion }

// newOpen returns an open decision with its deadline on the monotonic clock.
func newOpen(d protocol.Decision) *Open {
	o := &Open{Decision: d, done: make(chan struct{}), attended: make(chan struct{})}
	if d.DeadlineMs > 0 {
		o.due = time.Now().Add(time.Until(time.UnixMilli(d.DeadlineMs))) // immune to changes of the wall clock from here on
	}
	return o
}

// Answered returns a decision that has its answer. Its Done is closed.
func Answered(d protocol.Decision) *Open {
	o := &Open{Decision: d, done: make(chan struct{}), attended: make(chan struct{})}
	close(o.done)
	return o
}

// Book holds the open decisions of a session, by id. Changes take effect when the change.Change is stored.
type Book struct {
	open map[protocol.DecisionID]*Open
}

// New returns a book with the open decisions from the store.
func New(stored []protocol.Decision) *Book {
	b := &Book{open: map[protocol.DecisionID]*Open{}}
	for _, d := range stored {
		b.open[d.ID] = newOpen(d)
	}
	return b
}

// Find returns an open decision; nil if it is answered or unknown.
func (b *Book) Find(id protocol.DecisionID) *Open { return b.open[id] }

// All returns the open decisions, oldest first.
func (b *Book) All() []*Open {
	return slices.SortedFunc(maps.Values(b.open), func(x, y *Open) int {
		return cmp.Or(cmp.Compare(x.OpenedAtMs, y.OpenedAtMs), cmp.Compare(x.ID, y.ID))
	})
}

// AskPerson reports whether any open decision waits for a person.
func (b *Book) AskPerson() bool { return slices.ContainsFunc(b.All(), (*Open).ForPerson) }

// AskedBy returns the number of decisions of a turn that wait for a person.
func (b *Book) AskedBy(turn protocol.TurnID) (n int) {
	for _, o := range b.open {
		if o.TurnID == turn && o.ForPerson() {
			n++
		}
	}
	return n
}

// Next returns when the next deadline passes; zero if there is none.
func (b *Book) Next() (next time.Time) {
	for _, o := range b.All() {
		if !o.due.IsZero() && (next.IsZero() || o.due.Before(next)) {
			next = o.due
		}
	}
	return next
}

// Due returns the open decisions whose deadline has passed at the given time.
func (b *Book) Due(at time.Time) []*Open {
	return slices.DeleteFunc(b.All(), func(o *Open) bool { return o.due.IsZero() || o.due.After(at) })
}

// Postpone moves the deadline of a decision whose default answer could not be stored, so that it is retried.
func (b *Book) Postpone(o *Open, until time.Time) { o.due = until }

// draft collects the decisions that a change opens and answers.
type draft struct {
	of       *Book
	asked    []*Open
	answered []*Open
	answers  []protocol.DecisionAnswer // parallel to answered
}

// in returns the draft of the book in a change.
func (b *Book) in(c *change.Change) *draft {
	return change.DraftOf(c, b, func() *draft { return &draft{of: b} })
}

// Ask opens a decision as part of a change. The caller may wait for the result once the change is stored.
func (b *Book) Ask(c *change.Change, d protocol.Decision) *Open {
	o, next := newOpen(d), b.in(c)
	next.asked = append(next.asked, o)
	c.Decisions = append(c.Decisions, d)
	c.TellOf(protocol.Event{Type: protocol.EventDecisionOpened, TurnID: d.TurnID, Decision: &d})
	return o
}

// Answer answers an open decision as part of a change. A decision must be answered only once.
func (b *Book) Answer(c *change.Change, o *Open, a protocol.DecisionAnswer) {
	next := b.in(c)
	next.answered, next.answers = append(next.answered, o), append(next.answers, a)
	d := o.Decision
	d.Answer = &a
	c.Decisions = append(c.Decisions, d)
	c.TellOf(protocol.Event{Type: protocol.EventDecisionResolved, TurnID: d.TurnID, Decision: &d})
}

// TurnOver cancels all open decisions of a turn that ends.
func (b *Book) TurnOver(c *change.Change, turn protocol.TurnID) {
	for _, o := range b.All() {
		if o.TurnID == turn {
			b.Answer(c, o, protocol.DecisionAnswer{Choice: protocol.ChooseCancelled, By: "internal:turn", AtMs: time.Now().UnixMilli()})
		}
	}
}

// Finish implements change.Draft.
func (d *draft) Finish(*change.Change) error { return nil }

// Land implements change.Draft. It wakes the code that waits for answers.
func (d *draft) Land() {
	for _, o := range d.asked {
		d.of.open[o.ID] = o
	}
	for i, o := range d.answered {
		o.Answer = &d.answers[i]
		delete(d.of.open, o.ID)
		close(o.done)
	}
}

// CountDown sets how much time is left for decisions that are sent to a client at the given time.
func CountDown(all []protocol.Decision, at time.Time) []protocol.Decision {
	for i := range all {
		if all[i].DeadlineMs > 0 {
			all[i].RemainingMs = max(0, all[i].DeadlineMs-at.UnixMilli())
		}
	}
	return all
}
