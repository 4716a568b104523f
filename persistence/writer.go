package persistence

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"
)

const (
	groupLimit   = 128              // commits of one transaction
	groupBytes   = 4 << 20          // a group that has reached this takes no more
	writeTimeout = 10 * time.Second // of what may wait for another process
)

// writer is the only one that changes the database. After Open it belongs to the goroutine of Run, except for the channels, through
// which commits come to it, and the condition.
type writer struct {
	*condition
	path           string  // of the database
	db             *sql.DB // of one connection
	stmts          *statements
	blobs          *blobFiles
	witness        *witness
	meta           meta
	uncounted      int64 // commits since the database has counted them
	heads          heads
	requests       chan *request
	ended          chan struct{} // closed when Run has answered its last request
	look           chan struct{} // has a value when the writer should look at the files
	dbFile, wal    openFile      // the database and its log, as they were opened
	unchecked      bool          // the structure, as the database is small and was closed properly
	uncheckedLarge bool          // the structure, as the database is large and was not closed properly
}

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
	k := newUpkeep(s.writer)
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
			s.log.Warn("backups that were cut off not removed", "error", err)
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

func (w *writer) drain(ctx context.Context) {
	for {
		select {
		case r := <-w.requests:
			w.writeGroup(ctx, w.gather(r))
		default:
			w.stop(ErrClosed)
			return
		}
	}
}

// gather takes whatever else is waiting into the same transaction.
func (w *writer) gather(first *request) []*request {
	group, size := []*request{first}, first.size
	for len(group) < groupLimit && size < groupBytes {
		select {
		case r := <-w.requests:
			group, size = append(group, r), size+r.size
		default:
			return group
		}
	}
	return group
}

// writeGroup writes a group and answers everybody after COMMIT.
func (w *writer) writeGroup(ctx context.Context, group []*request) {
	w.tryGroup(ctx, group)
	for _, r := range group {
		if r.err == nil {
			for _, b := range r.change.Blobs {
				w.blobs.settled(b.Digest)
			}
		}
		close(r.done)
	}
}

// tryGroup gives each request of a group its result. For want of space each is tried alone, and one that ends
// something is given the ballast.
func (w *writer) tryGroup(ctx context.Context, group []*request) {
	err := w.transact(ctx, group)
	switch {
	case err == nil:
		return
	case errors.Is(err, ErrFull) && len(group) > 1:
		for _, r := range group {
			w.tryGroup(ctx, []*request{r})
		}
		return
	case errors.Is(err, ErrFull) && !group[0].change.begins() && w.giveUpBallast(err):
		w.tryGroup(ctx, group)
		return
	}
	for _, r := range group {
		r.result, r.err = Result{}, err
	}
}
