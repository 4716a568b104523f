package persistence

import (
	"cmp"
	"errors"
	"log/slog"
	"sync/atomic"

	"lashd/engine/tip"
)

// condition says whether the store takes writes, and whether there is space to begin something new.
type condition struct {
	log     *slog.Logger
	ballast *ballast
	state   atomic.Pointer[error] // why nothing is written any more; nil while all is well
	turned  tip.Tip               // at each change
}

// failed classifies an error and, if the database can't be trusted any more, stops all further writing: after a failed
// fsync nobody knows what is on disk.
func (c *condition) failed(err error) error {
	err = classify(err)
	if errors.Is(err, ErrPoisoned) || errors.Is(err, errDamaged) {
		c.stop(err)
	}
	return err
}

// damage has a database that is corrupt written to no more. It returns other errors.
func (c *condition) damage(err error) error {
	if errors.Is(err, ErrCorrupt) {
		c.stop(err)
		return nil
	}
	return err
}

// stop lets no more writes through. The first reason stays.
func (c *condition) stop(err error) {
	if c.state.CompareAndSwap(nil, &err) && !errors.Is(err, ErrClosed) {
		c.log.Error("store stopped", "error", err)
		c.turned.Notify()
	}
}

func (c *condition) stopped() error {
	if p := c.state.Load(); p != nil {
		return *p
	}
	return nil
}

// poison is the error that Run ends with, nil if there is none. A store found corrupt goes on refusing writes one by
// one, as its reads may still serve.
func (c *condition) poison() error {
	if err := c.stopped(); errors.Is(err, ErrPoisoned) {
		return err
	}
	return nil
}

// takeBallast comes before the first write, as what is acknowledged relies on the space. Without it nothing new is begun. A store
// that is not written to is left as it is.
func (c *condition) takeBallast() {
	if c.ballast.away.Load() || c.stopped() != nil {
		return // given up when the store was opened: upkeep takes it again
	}
	if err := c.ballast.restore(); err != nil {
		c.ballast.away.Store(true)
		c.full(err)
	}
}

// giveUpBallast frees the space that is kept back, and tells whether that changed anything; err is why it is needed.
func (c *condition) giveUpBallast(err error) bool {
	if !c.ballast.giveUp() {
		return false
	}
	c.full(err)
	return true
}

func (c *condition) full(err error) {
	c.log.Error(fullDisk, "error", err)
	c.turned.Notify()
}

// retakeBallast tries to take the space again.
func (c *condition) retakeBallast() {
	if c.ballast.away.Load() && c.ballast.restore() == nil {
		c.log.Info("the disk has space again")
		c.turned.Notify()
	}
}

// Healthy is nil, or why nothing is written any more.
func (c *condition) Healthy() error { return c.stopped() }

// Space is nil, or ErrFull as long as the disk is so full that nothing new may be begun: no session, no turn, no call of
// a tool. What ends a turn is still written.
func (c *condition) Space() error {
	if c.ballast.away.Load() {
		return ErrFull
	}
	return nil
}

// Condition is nil, or what the store does not do at present: see Healthy and Space.
func (c *condition) Condition() error { return cmp.Or(c.stopped(), c.Space()) }

// Turned returns a channel that is closed when the condition may have changed.
func (c *condition) Turned() <-chan struct{} { return c.turned.Next() }
