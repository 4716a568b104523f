package engine

import (
	"context"
	"errors"
	"time"

	"lashd/persistence"
)

// unused tells whether nothing would be lost if the session left memory.
func (st *state) unused() bool {
	return len(st.queue.Turns()) == 0 && !st.overlay.awaitsClient() && len(st.decisions.All()) == 0 && st.clientServers == nil && st.plugins.unused() && !st.feed.Watched()
}

// unload gives the state up. Its turn stops where it can be resumed, and takes nothing of what comes later for its own.
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
	st.alarm.stop()
	st.plugins.end()
}

// refusalDelay is how long who wants something of a state that is given up waits for the next one.
const refusalDelay = time.Second

// await waits for work that uses the state to end, or for the limit, and tells whether it has ended. That work may itself wait
// for an answer of the actor: if it takes longer than a moment, what comes in is refused.
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

// refusal is why a state that was given up takes nothing any more.
func (st *state) refusal() error { return refusal(context.Cause(st.ctx)) }

// leaving is why the turn of a state that is given up is left.
func (st *state) leaving() error {
	if errors.Is(st.broken, persistence.ErrDeleted) {
		return errDeleted
	}
	return errStopped
}
