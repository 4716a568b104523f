// Package search finds messages, titles and earlier inputs in all sessions. Its methods read the store and an index that is
// derived from it, so they never wait for a session.
package search

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"lashd/engine/tip"
	"lashd/persistence"
	"lashd/persistence/textindex"
)

// Searches is the API of searches in the sessions of a store. Its methods are safe for concurrent
// use.
//
// Run keeps the index. There is none until the first search. From then on Run adds what commits add,
// and removes what they delete.
type Searches struct {
	store *persistence.Store
	log   *slog.Logger
	want  chan struct{} // has a value if a search waits for the index

	mu      sync.RWMutex // held for reading while the index is used, and for writing while it is opened or closed
	index   *textindex.Index
	scanned bool // all that the store had when the index was opened is in it; only Run uses it

	progress tip.Tip // notified when one of the fields below has changed
	stateMu  sync.Mutex
	asked    int64 // number of searches that asked for the newest commits
	served   int64 // number of those whose commits are in the index
	pending  int64 // nodes that are known to be missing in the index
	err      error // why the index cannot be updated; nil: it can
	damage   error // that a search found; nil: none
}

// New returns searches of a store. They need Run.
func New(store *persistence.Store, log *slog.Logger) *Searches {
	return &Searches{store: store, log: log, want: make(chan struct{}, 1)}
}

// Times of Run.
const (
	firstUpdate = 10 * time.Second       // after the start, if there is an index
	settle      = 500 * time.Millisecond // after a commit, so that several are indexed together
)

// Run keeps the index until ctx is done. Call it once.
func (s *Searches) Run(ctx context.Context) {
	defer s.close()
	next := time.NewTimer(firstUpdate)
	defer next.Stop()
	if !textindex.Exists(s.store.Dir()) {
		next.Stop()
	}
	for {
		var changed <-chan struct{}
		if s.index != nil {
			changed = s.store.Search.Changes.Tip.Next()
		}
		select {
		case <-ctx.Done():
			return
		case <-s.want:
		case <-next.C:
		case <-changed:
			next.Reset(settle)
			continue
		}
		s.update(ctx)
	}
}

// update brings the index up to date and tells the searches that wait for it. A damaged index is
// made again.
func (s *Searches) update(ctx context.Context) {
	s.stateMu.Lock()
	asked, err := s.asked, s.damage
	s.damage = nil
	s.stateMu.Unlock()
	if err == nil {
		err = s.catchUp(ctx)
	}
	if textindex.Damaged(err) {
		s.log.Warn("the search index is damaged; lashd makes it again", "error", err)
		if err = errors.Join(s.close(), textindex.Remove(s.store.Dir())); err == nil {
			err = s.catchUp(ctx)
		}
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("the search index cannot be updated", "error", err)
	}
	s.stateMu.Lock()
	s.served, s.err = asked, err
	s.stateMu.Unlock()
	s.progress.Notify()
}

// open opens the index. Changes are noted from before the first read on, so that none is lost.
func (s *Searches) open(ctx context.Context) error {
	facts := s.store.Facts()
	s.store.Search.Changes.Start()
	x, err := textindex.Open(ctx, s.store.Dir(), textindex.Source{StoreID: facts.StoreID, Epoch: facts.Epoch})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index, s.scanned = x, false
	return nil
}

// close closes the index, if it is open.
func (s *Searches) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index == nil {
		return nil
	}
	err := s.index.Close()
	s.index = nil
	return err
}

// patience is how long a search waits for the index to contain all commits before it. A search must
// not wait for an index that is made from a large store.
const patience = time.Second

// ready waits until the index contains all commits before the call, or for patience. It returns the
// number of nodes that are missing in the index, and fails if there is no index.
func (s *Searches) ready(ctx context.Context) (pending int64, err error) {
	s.stateMu.Lock()
	s.asked++
	mine := s.asked
	s.stateMu.Unlock()
	select {
	case s.want <- struct{}{}:
	default:
	}
	enough := time.NewTimer(patience)
	defer enough.Stop()
	for {
		changed := s.progress.Next()
		served, pending, err := s.state()
		if served >= mine {
			return pending, err
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-enough.C:
			return max(pending, 1), nil
		case <-changed:
		}
	}
}

// renew has Run make the index again after a search found damage, and waits like ready.
func (s *Searches) renew(ctx context.Context, damage error) (pending int64, err error) {
	s.stateMu.Lock()
	s.damage = damage
	s.stateMu.Unlock()
	return s.ready(ctx)
}

// state returns how far the index is. An index that can be read but not updated is no error.
func (s *Searches) state() (served, pending int64, err error) {
	s.stateMu.Lock()
	served, pending, err = s.served, s.pending, s.err
	s.stateMu.Unlock()
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.index != nil {
		err = nil
	}
	return served, pending, err
}

// setPending publishes the number of nodes that are missing in the index.
func (s *Searches) setPending(n int64) {
	s.stateMu.Lock()
	s.pending = n
	s.stateMu.Unlock()
	s.progress.Notify()
}
