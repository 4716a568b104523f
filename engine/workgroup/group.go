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

// Group starts goroutines and waits for them. At shutdown the engine calls Close, WaitTurns, WaitCalls and WaitActors,
// in this order. All methods are safe for concurrent use.
type Group struct {
	log       *slog.Logger
	actors    sync.WaitGroup // started by GoActor
	turns     sync.WaitGroup // started by GoTurn
	callEnded tip.Tip        // notified when a call returns

	mu      sync.Mutex
	closed  bool
	running int // turns
	// calls counts the calls that have not returned, including abandoned ones.
	calls int
}

// New returns an empty group that logs panics and calls that do not return.
func New(log *slog.Logger) *Group { return &Group{log: log} }

// Close makes the group refuse new turns. Running turns continue.
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

// IfOpen runs f unless the group is closed, and reports whether it did. f runs under the lock of the group: keep it
// short, and do not call other methods in it.
func (g *Group) IfOpen(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		f()
	}
	return !g.closed
}

// GoTurn starts a turn in a goroutine unless the group is closed, and reports whether it did.
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

// WaitTurns waits until all turns have returned. Call it after Close.
func (g *Group) WaitTurns() { g.turns.Wait() }

// GoActor starts an actor, or work of one, that ends when the actors' context is done.
func (g *Group) GoActor(f func()) { g.actors.Go(f) }

// WaitActors waits for everything that GoActor started.
func (g *Group) WaitActors() { g.actors.Wait() }

// GoCall starts a call of foreign code, which may outlive its caller.
func (g *Group) GoCall(f func()) {
	g.add(&g.calls, 1)
	go func() {
		defer g.callEnded.Notify()
		defer g.add(&g.calls, -1)
		f()
	}()
}

// WaitCalls waits for all calls, at most for limit. It logs how many have not returned then.
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
			g.log.Error("calls did not return after their context was done", "calls", n)
			return
		}
	}
}

// openCalls returns the number of calls that have not returned.
func (g *Group) openCalls() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls
}

// add adds n to a counter of the group under its lock.
func (g *Group) add(count *int, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	*count += n
}
