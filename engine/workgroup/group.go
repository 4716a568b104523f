// Package workgroup runs the work that the engine waits for at shutdown.
//
// The engine starts every actor, turn and call of foreign code in one Group. Turns are waited for until they return. A call may never
// return, so the Group stops waiting for calls after a limit.
package workgroup

import (
	"log/slog"
	"sync"
	"time"

	"lashd/engine/tip"
)

// Group starts goroutines and waits for them. All methods are safe for concurrent use.
type Group struct {
	log       *slog.Logger
	actors    sync.WaitGroup
	turns     sync.WaitGroup
	callEnded tip.Tip

	mu      sync.Mutex
	closed  bool
	running int // turns
	calls   int // calls that have not returned, including those that nobody waits for
}

// New returns an empty group, which reports panics and calls that do not return to log.
func New(log *slog.Logger) *Group { return &Group{log: log} }

// Close makes the group refuse new turns.
func (g *Group) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// Closed reports whether Close was called.
func (g *Group) Closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// IfOpen runs f unless the group is closed, and reports whether it did. Close waits for f, so f must be short.
func (g *Group) IfOpen(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		f()
	}
	return !g.closed
}

// GoTurn runs a turn unless the group is closed, and reports whether it does.
func (g *Group) GoTurn(f func()) bool {
	return g.IfOpen(func() {
		g.running++
		g.turns.Go(func() {
			f()
			g.add(&g.running, -1)
		})
	})
}

// Turns returns the number of running turns.
func (g *Group) Turns() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running
}

// WaitTurns waits for all turns. Call it after Close.
func (g *Group) WaitTurns() { g.turns.Wait() }

// GoActor runs an actor, or work for one that ends when the context of actors is done.
func (g *Group) GoActor(f func()) { g.actors.Go(f) }

// WaitActors waits for everything that GoActor started.
func (g *Group) WaitActors() { g.actors.Wait() }

// GoCall runs a call that may outlive its caller.
func (g *Group) GoCall(f func()) {
	g.add(&g.calls, 1)
	go func() {
		defer g.callEnded.Notify()
		defer g.add(&g.calls, -1)
		f()
	}()
}

// WaitCalls waits for all calls, but for no longer than limit.
func (g *Group) WaitCalls(limit time.Duration) {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for {
		ended := g.callEnded.Next()
		n := g.openCalls()
		if n == 0 {
			return
		}
		select {
		case <-ended:
		case <-timeout.C:
			g.log.Error("tool calls do not return although their context is done", "calls", n)
			return
		}
	}
}

func (g *Group) openCalls() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls
}

func (g *Group) add(count *int, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	*count += n
}
