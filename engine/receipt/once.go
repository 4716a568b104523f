package receipt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"lashd/persistence"
)

// Flights are the requests with a key that are in progress under Once.
type Flights struct {
	store *persistence.Store
	mu    sync.Mutex
	open  map[string]*flight
}

// NewFlights returns no requests in progress.
func NewFlights(store *persistence.Store) *Flights {
	return &Flights{store: store, open: map[string]*flight{}}
}

type flight struct {
	hash []byte
	done chan struct{}
}

func (f *Flights) begin(rc Request) (mine, theirs *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if other, ok := f.open[rc.Key]; ok {
		return nil, other
	}
	mine = &flight{hash: rc.Hash, done: make(chan struct{})}
	f.open[rc.Key] = mine
	return mine, nil
}

func (f *Flights) end(key string, mine *flight) {
	f.mu.Lock()
	delete(f.open, key)
	f.mu.Unlock()
	close(mine.done)
}

// Once runs f for a request that no actor serialises, or that takes long: one f of a key at a time. A repetition waits for the first, and gets
// its answer; another request with the same key is refused before it does anything.
func Once[T any, P Result[T]](ctx context.Context, fl *Flights, method, key string, params any, f func(Request) (*T, error)) (*T, error) {
	rc, err := For(method, key, params)
	if err != nil {
		return nil, err
	}
	if key == "" {
		return f(rc)
	}
	for {
		// What has begun may be in progress.
		if result, hit, err := Find[T, P](ctx, fl.store, rc); hit || err != nil && !errors.Is(err, ErrBegun) {
			return result, err
		}
		mine, theirs := fl.begin(rc)
		if mine == nil {
			if !bytes.Equal(theirs.hash, rc.Hash) {
				return nil, fmt.Errorf("key %s: %w", key, persistence.ErrReceiptConflict)
			}
			select {
			case <-theirs.done: // look again
				continue
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		return once[T, P](ctx, fl, rc, mine, f)
	}
}

func once[T any, P Result[T]](ctx context.Context, fl *Flights, rc Request, mine *flight, f func(Request) (*T, error)) (*T, error) {
	defer fl.end(rc.Key, mine)
	if result, hit, err := Find[T, P](ctx, fl.store, rc); hit || err != nil { // the flight before this one may just have ended
		return result, err
	}
	result, err := f(rc)
	return First[T, P](ctx, fl.store, rc, result, err)
}
