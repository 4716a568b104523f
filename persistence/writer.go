package persistence

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
)

const (
	groupLimit   = 128              // commits of one transaction
	groupBytes   = 4 << 20          // a group that has reached this takes no more
	writeTimeout = 10 * time.Second // of what may wait for another process
)

// Run writes until ctx is done, then writes what was already asked for and returns. It returns early, with ErrPoisoned,
// when nothing more can be promised; the process should then exit without closing the store.
func (s *Store) Run(ctx context.Context) error {
	defer close(s.ended)
	s.checkSmall(context.WithoutCancel(ctx))
	if err := s.poison(); err != nil {
		s.drain(ctx)
		return err
	}
	s.takeBallast()
	defer s.beside(ctx)()
	k := newUpkeep(s)
	defer k.timer.Stop()
	for {
		select {
		case r := <-s.requests:
			group := s.gather(r)
			s.writeGroup(ctx, group)
			k.wrote(ctx, group)
		case <-k.timer.C:
			k.tick(ctx)
		case <-s.look:
			s.checkFiles(context.WithoutCancel(ctx)) // what it finds is seen below
		case <-ctx.Done():
			s.drain(ctx)
			return s.poison()
		}
		if err := s.poison(); err != nil {
			s.drain(ctx)
			return err
		}
	}
}

// beside starts what the first answers do not wait for: to check a large database that was not closed properly, and to remove
// backups that were cut off. wait ends the check, and returns when both are over.
func (s *Store) beside(ctx context.Context) (wait func()) {
	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	working.Go(func() {
		if err := removeRecorded(s.cutOff); err != nil {
			s.cfg.Log.Warn("backups that were cut off not removed", "error", err)
		}
	})
	if s.uncheckedLarge {
		working.Go(func() { s.checkLarge(ctx) })
	}
	return func() {
		cancel()
		working.Wait()
	}
}

// poison is the error that Run ends with, nil if there is none. A store found corrupt goes on refusing writes one by
// one, as its reads may still serve.
func (s *Store) poison() error {
	if err := s.stopped(); errors.Is(err, ErrPoisoned) {
		return err
	}
	return nil
}

func (s *Store) drain(ctx context.Context) {
	for {
		select {
		case r := <-s.requests:
			s.writeGroup(ctx, s.gather(r))
		default:
			s.stop(ErrClosed)
			return
		}
	}
}

// gather takes whatever else is waiting into the same transaction.
func (s *Store) gather(first *request) []*request {
	group, size := []*request{first}, first.size
	for len(group) < groupLimit && size < groupBytes {
		select {
		case r := <-s.requests:
			group, size = append(group, r), size+r.size
		default:
			return group
		}
	}
	return group
}

// writeGroup writes a group and answers everybody after COMMIT.
func (s *Store) writeGroup(ctx context.Context, group []*request) {
	s.tryGroup(ctx, group)
	for _, r := range group {
		if r.err == nil {
			for _, b := range r.change.Blobs {
				s.blobs.settled(b.Digest)
			}
		}
		close(r.done)
	}
}

// tryGroup gives each request of a group its result. For want of space each is tried alone, and one that ends
// something is given the ballast.
func (s *Store) tryGroup(ctx context.Context, group []*request) {
	err := s.transact(ctx, group)
	switch {
	case err == nil:
		return
	case errors.Is(err, ErrFull) && len(group) > 1:
		for _, r := range group {
			s.tryGroup(ctx, []*request{r})
		}
		return
	case errors.Is(err, ErrFull) && !group[0].change.begins() && s.ballast.giveUp():
		s.cfg.Log.Error(fullDisk, "error", err)
		s.turned.Notify()
		s.tryGroup(ctx, group)
		return
	}
	for _, r := range group {
		r.result, r.err = Result{}, err
	}
}

// failed classifies an error and, if the database can't be trusted any more, stops all further writing: after a failed
// fsync nobody knows what is on disk.
func (s *Store) failed(err error) error {
	err = classify(err)
	if errors.Is(err, ErrPoisoned) || errors.Is(err, errDamaged) {
		s.stop(err)
	}
	return err
}

// stop lets no more writes through. The first reason stays.
func (s *Store) stop(err error) {
	if s.state.CompareAndSwap(nil, &err) && !errors.Is(err, ErrClosed) {
		s.cfg.Log.Error("store stopped", "error", err)
		s.turned.Notify()
	}
}

func (s *Store) stopped() error {
	if p := s.state.Load(); p != nil {
		return *p
	}
	return nil
}

// Healthy is nil, or why nothing is written any more.
func (s *Store) Healthy() error { return s.stopped() }

// Condition is nil, or what the store does not do at present: see Healthy and Space.
func (s *Store) Condition() error { return cmp.Or(s.stopped(), s.Space()) }

// Turned returns a channel that is closed when the condition may have changed.
func (s *Store) Turned() <-chan struct{} { return s.turned.Next() }
