package engine

import (
	"context"
	"errors"
	"time"

	"lashd/persistence"
)

// endUnused reports whether the session can leave memory without losing anything: no turns, decisions,
// client tool calls, client MCP servers, plugin work or subscribers. If so, it takes the lock of the plugins, and the caller
// must end the state.
func (st *state) endUnused() bool {
	return len(st.queue.Turns()) == 0 && !st.overlay.awaitsClient() && len(st.decisions.All()) == 0 && st.clientServers.Load() == nil && !st.feed.Watched() && st.plugins.endUnused()
}

// unload ends the state, before the session leaves memory or is loaded again. A running turn is
// suspended, to be resumed from its journal, and cannot commit anything more. The order matters:
// the context ends first, then functions for this state are rejected, then the turn's goroutine and
// the plugins end. It runs on the actor.
func (st *state) unload() {
	st.end(st.leaving()) // first, so that the causes below are seen as the end of the state, not as failures
	st.refusalErr = st.refusal()
	st.live.Store(nil)
	close(st.closed)
	if r := st.turns.running(); r != nil {
		st.await(r.ended, nil)
	}
	if st.turnMu.Lock(); st.turn != nil {
		st.awaitResumeLocked()
	}
	st.turn, st.session.activity = nil, ""
	st.turnMu.Unlock()
	st.alarm.Stop()
	st.plugins.end()
}

// refusalDelay is how long requests to an ended state wait for the next state before they are
// rejected.
const refusalDelay = time.Second

// await waits until work that uses the state has ended, or until limit fires, and reports whether
// it ended. The work may itself wait for the actor. So after refusalDelay await serves the mailbox,
// and the functions in it are rejected. A nil limit never fires.
func (st *state) await(ended <-chan struct{}, limit <-chan time.Time) bool {
	moment := time.NewTimer(refusalDelay)
	defer moment.Stop()
	var mail <-chan func(*state)
	for {
		select {
		case <-moment.C:
			mail = st.mail
		case f := <-mail:
			f(st)
		case <-ended:
			return true
		case <-limit:
			return false
		}
	}
}

// refusal returns the error for functions of a state that has ended.
func (st *state) refusal() error { return refusal(context.Cause(st.ctx)) }

// leaving returns the cause with which the turn of a state that ends is suspended.
func (st *state) leaving() error {
	if errors.Is(st.broken, persistence.ErrDeleted) {
		return errDeleted
	}
	return errStopped
}
