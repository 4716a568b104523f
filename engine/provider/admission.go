package provider

import (
	"context"
	"iter"
)

// Admission bounds how many calls of a Provider run at once; the others wait in the order they came. It belongs inside
// Retry, so that a call which waits for its next attempt holds no place.
type Admission struct {
	provider Provider
	places   chan struct{}
}

// NewAdmission lets at most limit calls run at once.
func NewAdmission(p Provider, limit int) *Admission {
	return &Admission{provider: p, places: make(chan struct{}, limit)}
}

// Stream implements Provider. The place is given back when the sequence ends or its reader leaves.
func (a *Admission) Stream(ctx context.Context, req *Request) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		if ctx.Err() != nil {
			yield(Chunk{}, Cancelled(ctx))
			return
		}
		select {
		case a.places <- struct{}{}:
		case <-ctx.Done():
			yield(Chunk{}, Cancelled(ctx))
			return
		}
		defer func() { <-a.places }()
		a.provider.Stream(ctx, req)(yield)
	}
}
