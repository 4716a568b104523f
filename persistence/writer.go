package persistence

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"
)

// Limits of the writer.
const (
	groupLimit   = 128              // commits in one transaction
	groupBytes   = 4 << 20          // a group of this size accepts no more commits
	writeTimeout = 10 * time.Second // for maintenance that may wait for another process's lock
)

// writer is the only part that changes the database. After Open its fields belong to the goroutine
// of Run, except requests, ended and look, through which other goroutines reach it, and the
// condition.
//
// It combines all waiting commits into one transaction (gather), so that many sessions share one
// fsync. Each commit of a group has a savepoint; one that fails is rolled back alone.
type writer struct {
	*condition
	path           string  // database file
	db             *sql.DB // a pool of one connection
	stmts          *statements
	blobs          *blobFiles
	witness        *witness
	meta           meta
	uncounted      int64         // commits since the count in meta was last updated
	heads          heads         // sessions as last written
	changes        *Changes      // that of the reader for searches
	requests       chan *request // commits that wait for the writer
	ended          chan struct{} // closed by Run after its last result
	look           chan struct{} // receives a value when the writer should check that its files still exist
	dbFile, wal    openFile      // the database and its log, as they were when opened
	unchecked      bool          // a small database that was closed properly; Run checks its structure first
	uncheckedLarge bool          // a large database that was not closed properly; its structure is checked in the background
}

// Run serves commits until ctx is done. It then writes the commits that are already queued and
// returns nil. It returns early with ErrPoisoned after an I/O error; the process should then exit
// without closing the store. Call it once.
func (s *Store) Run(ctx context.Context) error {
	defer close(s.ended)
	s.checkSmall(context.WithoutCancel(ctx))
	if err := s.poison(); err != nil {
		s.drain(ctx)
		return err
	}
	s.reserveBallast()
	defer s.startBackground(ctx)()
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
			s.checkFiles(context.WithoutCancel(ctx)) // a missing file poisons the store, which is checked below
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

// startBackground starts the work that the first results do not wait for: it checks a large database that
// was not closed properly, and removes interrupted backups. The returned wait cancels the check and
// returns when both have ended.
func (s *Store) startBackground(ctx context.Context) (wait func()) {
	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	working.Go(func() {
		if err := removeRecorded(s.abandoned); err != nil {
			s.log.Warn("interrupted backups not removed", "error", err)
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

// drain writes the queued commits and then rejects all later ones with ErrClosed.
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

// gather adds other queued commits to the transaction of first, up to groupLimit and groupBytes. It
// does not wait for more.
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

// writeGroup writes a group of commits and wakes their callers after COMMIT.
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

// tryGroup sets the result of each request in a group. If the disk is full it tries each commit
// alone, and releases the ballast for a commit that finishes work.
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
	case errors.Is(err, ErrFull) && !group[0].change.begins() && w.releaseBallast(err):
		w.tryGroup(ctx, group)
		return
	}
	for _, r := range group {
		r.result, r.err = Result{}, err
	}
}
