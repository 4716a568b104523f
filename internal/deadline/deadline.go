// Package deadline limits the time of calls to a file system that may hang, such as a network mount
// whose server is gone.
//
// No system call can be cancelled. Work that exceeds its limit continues in the background until
// the file system responds. Do is for work that changes nothing. Work that changes something asks
// its Gate immediately before the change. All functions are safe for concurrent use.
package deadline

import (
	"context"
	"sync"
	"time"
)

// Do runs work on another goroutine and returns its result. After limit it returns cause instead,
// and when ctx ends the cause of ctx. work must not change anything that others use, because it may
// still be running then. A panic of work is raised in the caller.
func Do[T any](ctx context.Context, limit time.Duration, cause error, work func(context.Context) (T, error)) (T, error) {
	return Change(ctx, limit, cause, nil, func(ctx context.Context, _ *Gate) (T, error) { return work(ctx) })
}

// Gate decides whether work may still change something. It closes when the caller stops waiting.
type Gate struct {
	mu     sync.Mutex
	passed bool
	shut   bool
}

// Pass reports whether the work may make its changes now. Call it immediately before the first
// change. It returns false if the caller no longer waits; once it has returned true, the caller
// waits for the result.
func (g *Gate) Pass() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passed = !g.shut
	return g.passed
}

// close closes the gate, and reports whether the work had not passed it.
func (g *Gate) close() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	return !g.passed
}

// Change is Do for work that changes something after its gate has let it pass.
//
// If limit or ctx ends before that, the work changes nothing any more, and Change returns cause or
// the cause of ctx. If the gate was passed, Change ignores ctx and waits until limit. It then
// returns the error unknown: the work may or may not have made its change. Change does not start if
// ctx has ended.
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

// outcome is the result of work, or its panic.
type outcome[T any] struct {
	v     T
	err   error
	panic any
}

// get returns the result, or raises the panic in the caller.
func (o outcome[T]) get() (T, error) {
	if o.panic != nil {
		panic(o.panic)
	}
	return o.v, o.err
}
