// Package trigger wakes or starts sessions when events occur outside them: a schedule is due, files change, or a client emits an
// event. The engine owns one Registry, whose methods are safe for concurrent use and wait until it is started. A method that
// changes something returns when the change is durable.
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

// Config is what a Registry needs. All of it is required but StateDir.
type Config struct {
	Host     Host
	Store    *persistence.Store
	Receipts *receipt.Flights
	Log      *slog.Logger
	StateDir string // the daemon's own directory, in which no file is watched
	Stopped  error  // the error of requests that come after the end
}

// Host is what triggers need of the engine. Post and Panicked return at once; the others may wait for plugins or sessions, and the
// goroutine that owns the triggers calls none of them.
type Host interface {
	// Deliver queues an occurrence in its session, which it creates first if the action starts one. It delivers once: the input
	// and the outcome are one commit. The caller stores an outcome other than delivered. After an error the caller retries.
	Deliver(ctx context.Context, r persistence.Reserved) (protocol.TriggerDelivery, error)
	// CheckSession returns the error with which a session of these settings could not be created now.
	CheckSession(ctx context.Context, s *protocol.TriggerSession) error
	// Plugins returns the plugins of sessions in a directory. Another host means that plugins have changed.
	Plugins(ctx context.Context, cwd string) (*plugin.Host, error)
	// Events builds the plugins of a directory and returns the events that they declare.
	Events(ctx context.Context, cwd string) ([]plugin.TriggerEvent, error)
	// Post publishes a change of a trigger to the daemon's watchers.
	Post(protocol.ServerEvent)
	// Panicked logs a panic and returns it as an error.
	Panicked(p any) error
}

// Registry holds the triggers of the user and of all sessions.
type Registry struct {
	Config
	loop  *loop
	types eventTypes
}

// New makes a registry that does nothing until Start is called.
func New(cfg Config) *Registry { return &Registry{Config: cfg, loop: newLoop(cfg)} }

// Start loads the triggers and runs them until ctx is done or stop is called. Stop waits until nothing is left running. If the
// triggers cannot be loaded, none runs, and requests get the error.
func (r *Registry) Start(ctx context.Context) (stop func()) { return r.loop.start(ctx) }

// Forget removes the triggers of a session that is deleted; the store has removed them already.
func (r *Registry) Forget(ctx context.Context, id protocol.SessionID) {
	_, err := on(ctx, r, func(_ context.Context, l *loop) (struct{}, error) {
		l.remove(func(a *active) bool { return a.SessionID == id })
		return struct{}{}, nil
	})
	if err != nil && !errors.Is(err, r.Stopped) { // a trigger that stays finds its session gone when it is next due
		r.Log.Debug("triggers of a deleted session stay for now", "session", id, "error", err)
	}
}

type answer[T any] struct {
	v   T
	err error
}

// on runs f on the goroutine that owns the triggers. Once f runs, it runs to its end whatever happens to ctx.
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
	select { // an answer that is there by then counts
	case a := <-done:
		return a.v, a.err
	default:
		return zero, context.Cause(ctx)
	}
}

func contained[T any](ctx context.Context, l *loop, f func(context.Context, *loop) (T, error)) (a answer[T]) {
	defer func() {
		if p := recover(); p != nil {
			a.err = l.Host.Panicked(p)
		}
	}()
	a.v, a.err = f(ctx, l)
	return a
}
