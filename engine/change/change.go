// Package change builds a change of a session before it is durable: the rows of its commit, the events that observers get, and what
// memory does once it is stored or if it is not. The session's actor makes one change at a time, lets the parts of the session add to
// it, and commits it once. A change belongs to one goroutine.
package change

import (
	"errors"
	"fmt"

	"lashd/engine/feed"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Change is a change of a session that is not stored yet. Its Commit says what is stored, except for the fields that Seal sets:
// Session, AtMs, Fence.Seq and Events.
type Change struct {
	persistence.Commit
	Shown []*feed.Item // open items that Tell's events complete; those without an event are withdrawn

	base     Base
	events   []Event
	drafts   []drafted
	stored   []func(persistence.Result)
	failed   []func()
	finished int // drafts whose Finish was called
	sealed   bool
}

// Draft is what a part of the session's memory becomes once the change is stored.
type Draft interface {
	// Finish adds what must come last in the change. It is called once.
	Finish(*Change) error
	// Land makes the part what the draft says. It is called once, after the change is stored.
	Land()
}

// Base is where a session was when a change of it was begun.
type Base struct {
	Seq     protocol.Seq // of the newest event
	Commits int          // how many the session's actor has made
}

type drafted struct {
	part  any
	draft Draft
}

// ErrMoved means that the session was changed after a change of it was begun: what the change says may be wrong by now.
var ErrMoved = errors.New("the session was changed while another change of it was made")

// ErrSealed means that a change was committed before.
var ErrSealed = errors.New("a change is committed twice")

// New begins a change of a session with some rows of its commit.
func New(base Base, rows persistence.Commit) *Change {
	return &Change{Commit: rows, base: base}
}

// DraftOf returns the draft of a part. The first call in a change begins it; later calls get the same draft, so that everyone sees
// what was changed before.
func DraftOf[D Draft](c *Change, part any, begin func() D) D {
	if d, ok := Drafted[D](c, part); ok {
		return d
	}
	d := begin()
	c.drafts = append(c.drafts, drafted{part, d})
	return d
}

// Drafted returns the draft of a part if the change has one.
func Drafted[D Draft](c *Change, part any) (d D, ok bool) {
	for _, known := range c.drafts {
		if known.part == part {
			return known.draft.(D), true
		}
	}
	return d, false
}

// Tell adds events, in the order in which observers get them.
func (c *Change) Tell(events ...Event) { c.events = append(c.events, events...) }

// TellOf adds an event that refers to no item.
func (c *Change) TellOf(e protocol.Event) { c.Tell(Event{Event: e}) }

// Told are the events so far. The slice is the change's own.
func (c *Change) Told() []Event { return c.events }

// Seq is the number of the newest event: the last one told, or, if none was, the session's.
func (c *Change) Seq() protocol.Seq { return c.base.Seq + protocol.Seq(len(c.events)) }

// Then has f called once the change is stored, after all drafts have landed, in the order of the calls.
func (c *Change) Then(f func()) { c.ThenWith(func(persistence.Result) { f() }) }

// ThenWith is Then for what needs the store's answer.
func (c *Change) ThenWith(f func(persistence.Result)) { c.stored = append(c.stored, f) }

// Undo has f called if the change is not stored.
func (c *Change) Undo(f func()) { c.failed = append(c.failed, f) }

// Finish lets the drafts add what must come last, each once. A draft that another one's Finish begins is finished, too.
func (c *Change) Finish() error {
	for c.finished < len(c.drafts) {
		c.finished++
		if err := c.drafts[c.finished-1].draft.Finish(c); err != nil {
			return err
		}
	}
	return nil
}

// Seal makes the commit complete: it belongs to a session that is at now, and is made at a time in ms since 1970. It fails with
// ErrMoved if the session was elsewhere when the change was begun.
func (c *Change) Seal(session protocol.SessionID, now Base, atMs int64) error {
	switch {
	case c.sealed:
		return ErrSealed
	case now != c.base:
		return fmt.Errorf("%w: it was begun at event %d after %d commits, and the session is at event %d after %d commits",
			ErrMoved, c.base.Seq, c.base.Commits, now.Seq, now.Commits)
	}
	c.sealed = true
	c.Session, c.AtMs, c.Fence.Seq = session, atMs, &now.Seq
	for i := range c.events {
		if c.events[i].AtMs == 0 {
			c.events[i].AtMs = atMs
		}
		c.Events = append(c.Events, c.events[i].Stored())
	}
	return nil
}

// Wire returns the events as observers get them, once the change is stored.
func (c *Change) Wire() [][]byte {
	wires := make([][]byte, len(c.events))
	for i := range c.events {
		wires[i] = c.events[i].wire(c.Session, c.base.Seq+protocol.Seq(i)+1, c.Events[i].Body)
	}
	return wires
}

// Land has memory follow a change that is stored.
func (c *Change) Land(res persistence.Result) {
	for _, d := range c.drafts {
		d.draft.Land()
	}
	for _, f := range c.stored {
		f(res)
	}
}

// Drop undoes what was prepared for a change that is not stored.
func (c *Change) Drop() {
	for _, f := range c.failed {
		f()
	}
	c.failed = nil
}
