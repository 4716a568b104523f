// Package decision keeps the open decisions of a session: what people are asked, and what calls wait for that are completed later. The
// session's actor owns them: only it may call a Book. Whoever waits for an answer waits on its own goroutine.
package decision

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"lashd/engine/change"
	"lashd/rpc/protocol"
)

// Open is a decision that waits for its answer, which its deadline gives if nobody else does.
type Open struct {
	protocol.Decision // its Answer is set before Done is closed
	done              chan struct{}
	due               time.Time // when its deadline answers it; zero: never
}

// Done is closed once the decision has its answer, in the store and in Answer.
func (o *Open) Done() <-chan struct{} { return o.done }

// ForPerson tells whether a person is asked, not the completion of a call.
func (o *Open) ForPerson() bool { return ForPerson(o.Decision) }

// ForPerson tells whether a decision asks a person, not the completion of a call.
func ForPerson(d protocol.Decision) bool { return d.Kind != protocol.DecisionCompletion }

func newOpen(d protocol.Decision) *Open {
	o := &Open{Decision: d, done: make(chan struct{})}
	if d.DeadlineMs > 0 {
		o.due = time.Now().Add(time.Until(time.UnixMilli(d.DeadlineMs))) // from here on it is monotonic
	}
	return o
}

// Answered is a decision that has its answer: its Done is closed.
func Answered(d protocol.Decision) *Open {
	o := &Open{Decision: d, done: make(chan struct{})}
	close(o.done)
	return o
}

// Book holds the open decisions of a session.
type Book struct {
	open map[protocol.DecisionID]*Open
}

// New makes a Book of the decisions that the store has open.
func New(stored []protocol.Decision) *Book {
	b := &Book{open: map[protocol.DecisionID]*Open{}}
	for _, d := range stored {
		b.open[d.ID] = newOpen(d)
	}
	return b
}

// Find returns an open decision; nil: it is answered, or unknown.
func (b *Book) Find(id protocol.DecisionID) *Open { return b.open[id] }

// All returns the open decisions in the order in which they were opened.
func (b *Book) All() []*Open {
	return slices.SortedFunc(maps.Values(b.open), func(x, y *Open) int {
		return cmp.Or(cmp.Compare(x.OpenedAtMs, y.OpenedAtMs), cmp.Compare(x.ID, y.ID))
	})
}

// AskPerson tells whether a person is asked anything.
func (b *Book) AskPerson() bool { return slices.ContainsFunc(b.All(), (*Open).ForPerson) }

// AskedBy counts what a turn waits to be told by a person.
func (b *Book) AskedBy(turn protocol.TurnID) (n int) {
	for _, o := range b.open {
		if o.TurnID == turn && o.ForPerson() {
			n++
		}
	}
	return n
}

// Next is when the first deadline passes; zero: none does.
func (b *Book) Next() (next time.Time) {
	for _, o := range b.All() {
		if !o.due.IsZero() && (next.IsZero() || o.due.Before(next)) {
			next = o.due
		}
	}
	return next
}

// Due returns the open decisions whose deadline has passed at a time.
func (b *Book) Due(at time.Time) []*Open {
	return slices.DeleteFunc(b.All(), func(o *Open) bool { return o.due.IsZero() || o.due.After(at) })
}

// Postpone moves the deadline of a decision whose answer could not be stored.
func (b *Book) Postpone(o *Open, until time.Time) { o.due = until }

// draft is what becomes of the open decisions with a change.
type draft struct {
	of       *Book
	asked    []*Open
	answered []*Open
	answers  []protocol.DecisionAnswer
}

func (b *Book) in(c *change.Change) *draft {
	return change.DraftOf(c, b, func() *draft { return &draft{of: b} })
}

// Ask opens a decision once the change is stored.
func (b *Book) Ask(c *change.Change, d protocol.Decision) *Open {
	o, next := newOpen(d), b.in(c)
	next.asked = append(next.asked, o)
	c.Decisions = append(c.Decisions, d)
	c.TellOf(protocol.Event{Type: protocol.EventDecisionOpened, TurnID: d.TurnID, Decision: &d})
	return o
}

// Answer gives an open decision its answer once the change is stored. A decision is answered once.
func (b *Book) Answer(c *change.Change, o *Open, a protocol.DecisionAnswer) {
	next := b.in(c)
	next.answered, next.answers = append(next.answered, o), append(next.answers, a)
	d := o.Decision
	d.Answer = &a
	c.Decisions = append(c.Decisions, d)
	c.TellOf(protocol.Event{Type: protocol.EventDecisionResolved, TurnID: d.TurnID, Decision: &d})
}

// TurnOver cancels what a turn that ends still asks: nobody needs the answer any more.
func (b *Book) TurnOver(c *change.Change, turn protocol.TurnID) {
	for _, o := range b.All() {
		if o.TurnID == turn {
			b.Answer(c, o, protocol.DecisionAnswer{Choice: protocol.ChooseCancelled, By: "internal:turn", AtMs: time.Now().UnixMilli()})
		}
	}
}

// Finish implements change.Draft.
func (d *draft) Finish(*change.Change) error { return nil }

// Land implements change.Draft: whoever waits for an answer goes on.
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
