// Package trigger wakes or starts sessions on external events: a schedule is due, files
// change, or a client emits an event.
//
// The engine owns one Registry. Its methods are safe for concurrent use and block until it
// is started. A method that changes something returns after the change is durable. An event
// is recorded as an occurrence together with a reserved delivery for each matching trigger,
// so that a crash loses no delivery and makes none twice.
package trigger

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"lashd/engine/plugin"
	"lashd/engine/receipt"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Config configures a Registry. All fields except StateDir are required.
type Config struct {
	Host     Host
	Store    *persistence.Store
	Receipts *receipt.Flights
	Log      *slog.Logger
	// StateDir is the daemon's own directory. Files in it are not watched.
	StateDir string
	// Stopped is the error of requests after the end.
	Stopped error
}

// Host is the part of the engine that triggers use. Post and Panicked return at once. The
// other methods may wait for plugins or sessions, so the loop's goroutine never calls them.
type Host interface {
	// Deliver queues an occurrence in its session, which it first creates if the action
	// starts one. It delivers once, because it commits the input together with the outcome.
	// The caller stores any outcome other than delivered, and retries after an error.
	Deliver(ctx context.Context, r persistence.Reserved) (protocol.TriggerDelivery, error)
	// CheckSession returns the error with which creating a session with these settings
	// would fail.
	CheckSession(ctx context.Context, s *protocol.TriggerSession) error
	// Plugins returns the plugins of sessions in a directory. A different host means that
	// plugins have changed.
	Plugins(ctx context.Context, cwd string) (*plugin.Host, error)
	// Events loads the plugins of a directory and returns the events that they declare.
	Events(ctx context.Context, cwd string) ([]plugin.TriggerEvent, error)
	// Post notifies clients of a changed trigger.
	Post(protocol.ServerEvent)
	// Panicked logs a panic and returns it as an error.
	Panicked(p any) error
}

// Registry holds the triggers of the user and of all sessions. Its state is in loop.
type Registry struct {
	Config
	loop  *loop
	types eventTypes
}

// New returns a registry. Its methods block until Start.
func New(cfg Config) *Registry { return &Registry{Config: cfg, loop: newLoop(cfg)} }

// Start loads the triggers and runs them until ctx is done or stop is called. stop waits
// until all goroutines have ended. If the triggers cannot be loaded, none runs, and
// requests return the error.
func (r *Registry) Start(ctx context.Context) (stop func()) { return r.loop.start(ctx) }

// Forget removes the triggers of a deleted session from memory. The store has already
// deleted them.
func (r *Registry) Forget(ctx context.Context, id protocol.SessionID) {
	_, err := on(ctx, r, func(_ context.Context, l *loop) (struct{}, error) {
		l.remove(func(a *active) bool { return a.SessionID == id })
		return struct{}{}, nil
	})
	if err != nil && !errors.Is(err, r.Stopped) { // a remaining trigger is removed when its next delivery finds the session deleted
		r.Log.Debug("cannot remove the triggers of a deleted session yet", "session", id, "error", err)
	}
}

// answer is the result of a function that ran on the loop's goroutine.
type answer[T any] struct {
	v   T
	err error
}

// on runs f on the loop's goroutine and returns its result. If ctx ends first, on returns
// its cause, but a function that has started runs to its end.
func on[T any](ctx context.Context, r *Registry, f func(context.Context, *loop) (T, error)) (T, error) {
	var zero T
	done := make(chan answer[T], 1)
	select {
	case r.loop.mail <- func(ctx context.Context) { done <- contained(ctx, r.loop, f) }:
	case <-r.loop.gone:
		return zero, cmp.Or(r.loop.err, r.Stopped)
	case <-ctx.Done():
		return zero, context.Cause(ctx)
	}
	select {
	case a := <-done:
		return a.v, a.err
	case <-ctx.Done():
	}
	select { // prefer an answer that has arrived
	case a := <-done:
		return a.v, a.err
	default:
		return zero, context.Cause(ctx)
	}
}

// contained calls f and converts a panic to an error.
func contained[T any](ctx context.Context, l *loop, f func(context.Context, *loop) (T, error)) (a answer[T]) {
	defer func() {
		if p := recover(); p != nil {
			a.err = l.Host.Panicked(p)
		}
	}()
	a.v, a.err = f(ctx, l)
	return a
}
