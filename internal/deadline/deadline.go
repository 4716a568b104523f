// Package deadline gives up on calls of a file system that may hang, such as a network mount whose server is gone.
//
// No call of the system can be taken back: what is given up goes on in the background until the file system answers. Do is for work
// that changes nothing. Work that changes something asks its Gate at the last moment before it does. Functions can be used concurrently.
package deadline

import (
	"context"
	"sync"
	"time"
)

// Do runs work, which must not change anything that others use, and gives up on it after limit, with cause, or when ctx ends. A panic of work goes
// on in the caller.
func Do[T any](ctx context.Context, limit time.Duration, cause error, work func(context.Context) (T, error)) (T, error) {
	return Change(ctx, limit, cause, nil, func(ctx context.Context, _ *Gate) (T, error) { return work(ctx) })
}

// Gate is what work goes through at the last moment before it changes something.
type Gate struct {
	mu     sync.Mutex
	passed bool
	shut   bool
}

// Pass tells whether the work may change things now. It may not once it was given up.
func (g *Gate) Pass() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passed = !g.shut
	return g.passed
}

// close shuts the gate, and tells whether that was in time.
func (g *Gate) close() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	return !g.passed
}

// Change is Do for work that changes something after it has passed its gate. If it is given up before that, it changes nothing any more,
// and the error is cause or that of ctx. Work of a ctx that has ended is not begun. After that only limit ends the wait for it, with unknown: nobody knows what it has done or still does.
func Change[T any](ctx context.Context, limit time.Duration, cause, unknown error, work func(context.Context, *Gate) (T, error)) (T, error) {
	if ctx.Err() != nil {
		var zero T
		return zero, context.Cause(ctx)
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, cause)
	defer cancel()
	late := time.NewTimer(limit)
	defer late.Stop()
	gate, done := &Gate{}, make(chan outcome[T], 1)
	go func() {
		var o outcome[T]
		defer func() {
			o.panic = recover()
			done <- o
		}()
		o.v, o.err = work(limited, gate)
	}()
	select {
	case o := <-done:
		return o.get()
	case <-limited.Done():
	}
	var zero T
	if gate.close() {
		return zero, context.Cause(limited)
	}
	select {
	case o := <-done:
		return o.get()
	case <-late.C:
		return zero, unknown
	}
}

// outcome is what work comes to.
type outcome[T any] struct {
	v     T
	err   error
	panic any
}

func (o outcome[T]) get() (T, error) {
	if o.panic != nil {
		panic(o.panic)
	}
	return o.v, o.err
}
