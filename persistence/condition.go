package persistence

import (
	"cmp"
	"errors"
	"log/slog"
	"sync/atomic"

	"lashd/engine/tip"
)

// condition says whether the store accepts writes, and whether there is space to start new work.
// Both can change at any time. Its methods are safe for concurrent use.
type condition struct {
	log     *slog.Logger
	ballast *ballast
	// state holds the reason why the store no longer writes; nil while it does. It is set once.
	state   atomic.Pointer[error]
	changes tip.Tip // notified at each change
}

// failed classifies err. If the database can no longer be trusted, failed also stops all writing:
// after a failed fsync, the contents of the disk are unknown.
func (c *condition) failed(err error) error {
	err = classify(err)
	if errors.Is(err, ErrPoisoned) || errors.Is(err, errDamaged) {
		c.stop(err)
	}
	return err
}

// damage stops all writing if err is ErrCorrupt, and returns nil then. It returns other errors
// unchanged.
func (c *condition) damage(err error) error {
	if errors.Is(err, ErrCorrupt) {
		c.stop(err)
		return nil
	}
	return err
}

// stop rejects all later writes with err. Only the first reason counts. A proper end (ErrClosed) is
// not logged.
func (c *condition) stop(err error) {
	if c.state.CompareAndSwap(nil, &err) && !errors.Is(err, ErrClosed) {
		c.log.Error("store stopped", "error", err)
		c.changes.Notify()
	}
}

// stopped returns the reason why the store does not write, or nil.
func (c *condition) stopped() error {
	if p := c.state.Load(); p != nil {
		return *p
	}
	return nil
}

// poison returns the error that makes Run return, or nil. A damaged store is not poisoned: it
// rejects writes and still serves reads.
func (c *condition) poison() error {
	if err := c.stopped(); errors.Is(err, ErrPoisoned) {
		return err
	}
	return nil
}

// reserveBallast reserves the space before the first write, because finishing acknowledged work may
// need it. If that fails, the store starts no new work. reserveBallast leaves a store alone that does
// not write.
func (c *condition) reserveBallast() {
	if c.ballast.released.Load() || c.stopped() != nil {
		return // released when the store was opened; upkeep takes it again
	}
	if err := c.ballast.restore(); err != nil {
		c.ballast.released.Store(true)
		c.full(err)
	}
}

// releaseBallast releases the reserved space, and reports whether that freed any. err says why the
// space is needed and is logged.
func (c *condition) releaseBallast(err error) bool {
	if !c.ballast.release() {
		return false
	}
	c.full(err)
	return true
}

// full logs that the disk is full and notifies subscribers of the condition.
func (c *condition) full(err error) {
	c.log.Error(fullDisk, "error", err)
	c.changes.Notify()
}

// restoreBallast tries to reserve the space again if it was released.
func (c *condition) restoreBallast() {
	if c.ballast.released.Load() && c.ballast.restore() == nil {
		c.log.Info("the disk has space again")
		c.changes.Notify()
	}
}

// Healthy returns nil while the store writes, else the reason why it stopped. A stopped store does
// not recover; the daemon must restart.
func (c *condition) Healthy() error { return c.stopped() }

// Space returns ErrFull while the disk is too full to start new work: a session, a turn or a tool
// call. Commits that finish work are still accepted.
func (c *condition) Space() error {
	if c.ballast.released.Load() {
		return ErrFull
	}
	return nil
}

// Condition returns the more serious error of Healthy and Space, or nil.
func (c *condition) Condition() error { return cmp.Or(c.stopped(), c.Space()) }

// Changed returns a channel that is closed at the next change of the condition. Get the channel
// before reading the condition, so that no change is missed.
func (c *condition) Changed() <-chan struct{} { return c.changes.Next() }
