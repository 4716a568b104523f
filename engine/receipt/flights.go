package receipt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"lashd/persistence"
)

// Flights tracks the requests with an idempotency key that Once is running, by key. Safe for concurrent use.
type Flights struct {
	store *persistence.Store
	mu    sync.Mutex
	open  map[string]*flight
}

// NewFlights returns Flights without requests. Receipts are looked up in store.
func NewFlights(store *persistence.Store) *Flights {
	return &Flights{store: store, open: map[string]*flight{}}
}

// flight is a request in progress.
type flight struct {
	hash []byte        // of the method and params, to detect another request with the key
	done chan struct{} // closed when the request ends
}

// begin registers the request as mine, or returns theirs if one with the key is in progress. The caller of a registered
// request must call end.
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

// end removes a request and wakes its repetitions.
func (f *Flights) end(key string, mine *flight) {
	f.mu.Lock()
	delete(f.open, key)
	f.mu.Unlock()
	close(mine.done)
}

// Once runs f for a request that no actor serializes, or that takes long. At most one f per key runs at a time. A
// repetition waits for the first request and returns its answer. A different request with the same key fails with
// persistence.ErrReceiptConflict before it does anything. f must store the receipt with its commit. Without a key, Once
// just runs f.
func Once[T any, P Result[T]](ctx context.Context, fl *Flights, method, key string, params any, f func(Request) (*T, error)) (*T, error) {
	rc, err := For(method, key, params)
	if err != nil {
		return nil, err
	}
	if key == "" {
		return f(rc)
	}
	for {
		// ErrBegun may be from a request that is still in progress.
		if result, hit, err := Find[T, P](ctx, fl.store, rc); hit || err != nil && !errors.Is(err, ErrBegun) {
			return result, err
		}
		mine, theirs := fl.begin(rc)
		if mine == nil {
			if !bytes.Equal(theirs.hash, rc.Hash) {
				return nil, fmt.Errorf("key %s: %w", key, persistence.ErrReceiptConflict)
			}
			select {
			case <-theirs.done: // then look for its answer
				continue
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		return once[T, P](ctx, fl, rc, mine, f)
	}
}

// once runs f for a registered request.
func once[T any, P Result[T]](ctx context.Context, fl *Flights, rc Request, mine *flight, f func(Request) (*T, error)) (*T, error) {
	defer fl.end(rc.Key, mine)
	if result, hit, err := Find[T, P](ctx, fl.store, rc); hit || err != nil { // the previous request may have ended just now
		return result, err
	}
	result, err := f(rc)
	return First[T, P](ctx, fl.store, rc, result, err)
}
