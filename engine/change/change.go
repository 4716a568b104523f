// Package change builds a change of a session before it is durable: the rows of its commit, the events for observers, and what
// happens in memory after the commit or after its failure. The session's actor makes one change at a time. The parts of the
// session add to it, and then the actor calls Finish, Seal, commits, and calls Land or Drop. A change belongs to one goroutine.
package change

import (
	"errors"
	"fmt"

	"lashd/engine/feed"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Change is a change of a session that is not stored yet. Its Commit describes what is stored; Seal sets the fields
// Session, AtMs, Fence.Seq and Events.
type Change struct {
	persistence.Commit
	// Shown are open items of the live view that the events complete. Those without an event are withdrawn.
	Shown []*feed.Item

	base     Base // state of the session when the change was begun
	events   []Event
	drafts   []drafted                  // in the order of their first use
	stored   []func(persistence.Result) // run by Land
	failed   []func()                   // run by Drop
	finished int                        // number of drafts whose Finish was called
	sealed   bool
}

// Draft is the state that a part of the session's memory will have once the change is stored.
type Draft interface {
	// Finish adds what must come last in the change. It is called once, before the commit.
	Finish(*Change) error
	// Land updates the part from the draft. It is called once, after the commit, and must not fail.
	Land()
}

// Base identifies the state of a session in which a change was begun.
type Base struct {
	Seq     protocol.Seq // of the latest event
	Commits int          // number of commits that the session's actor has made
}

// drafted is a draft with the part it belongs to.
type drafted struct {
	part  any
	draft Draft
}

// ErrMoved means that the session changed after the change was begun, so the change may be based on outdated values.
var ErrMoved = errors.New("the session changed while this change was being made")

// ErrSealed means that Seal was called twice.
var ErrSealed = errors.New("a change was committed twice")

// New begins a change of a session with the given rows.
func New(base Base, rows persistence.Commit) *Change {
	return &Change{Commit: rows, base: base}
}

// DraftOf returns the draft of a part. The first call in a change creates it with begin; later calls return the same
// draft, so that each caller sees the changes of the others.
func DraftOf[D Draft](c *Change, part any, begin func() D) D {
	if d, ok := Drafted[D](c, part); ok {
		return d
	}
	d := begin()
	c.drafts = append(c.drafts, drafted{part, d})
	return d
}

// Drafted returns the draft of a part, if the change has one.
func Drafted[D Draft](c *Change, part any) (d D, ok bool) {
	for _, known := range c.drafts {
		if known.part == part {
			return known.draft.(D), true
		}
	}
	return d, false
}

// Tell adds events in the order in which observers receive them.
func (c *Change) Tell(events ...Event) { c.events = append(c.events, events...) }

// TellOf adds an event that refers to no item.
func (c *Change) TellOf(e protocol.Event) { c.Tell(Event{Event: e}) }

// Told returns the events so far. The slice must not be modified.
func (c *Change) Told() []Event { return c.events }

// Seq returns the number of the latest event: the last one added, or the session's if none was added.
func (c *Change) Seq() protocol.Seq { return c.base.Seq + protocol.Seq(len(c.events)) }

// Then calls f after the change is stored and all drafts have landed. Functions run in the order of the calls.
func (c *Change) Then(f func()) { c.ThenWith(func(persistence.Result) { f() }) }

// ThenWith is Then for functions that need the result of the commit.
func (c *Change) ThenWith(f func(persistence.Result)) { c.stored = append(c.stored, f) }

// Undo calls f if the change is not stored.
func (c *Change) Undo(f func()) { c.failed = append(c.failed, f) }

// Finish calls Finish of every draft once, including drafts that are created while it runs.
func (c *Change) Finish() error {
	for c.finished < len(c.drafts) {
		c.finished++
		if err := c.drafts[c.finished-1].draft.Finish(c); err != nil {
			return err
		}
	}
	return nil
}

// Seal completes the commit. now is the session's current state, and atMs the time in milliseconds since 1970. It fails
// with ErrMoved if the session has changed since New.
func (c *Change) Seal(session protocol.SessionID, now Base, atMs int64) error {
	switch {
	case c.sealed:
		return ErrSealed
	case now != c.base:
		return fmt.Errorf("%w: begun at event %d after %d commits, but the session is at event %d after %d commits",
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

// Wire returns the events in the form for observers. Call it after Seal.
func (c *Change) Wire() [][]byte {
	wires := make([][]byte, len(c.events))
	for i := range c.events {
		wires[i] = c.events[i].wire(c.Session, c.base.Seq+protocol.Seq(i)+1, c.Events[i].Body)
	}
	return wires
}

// Land applies a stored change to memory: first the drafts, then the functions of Then.
func (c *Change) Land(res persistence.Result) {
	for _, d := range c.drafts {
		d.draft.Land()
	}
	for _, f := range c.stored {
		f(res)
	}
}

// Drop runs the functions of Undo for a change that was not stored. A second call does nothing.
func (c *Change) Drop() {
	for _, f := range c.failed {
		f()
	}
	c.failed = nil
}
