package engine

import (
	"context"
	"slices"

	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// composed is what an iteration works in, or why that is not known.
type composed struct {
	env    turn.Response
	err    error
	memo   rendered  // as it is then
	shared *rendered // that it was made from
}

// prefetchPrompt makes the run of a turn whose acceptance is about to be written, and has its plugins asked for the prompt while it
// is: that costs no time then. Nothing has begun, and discard undoes it. It is nil if the turn cannot be made: whoever drives
// it finds out why.
func (st *state) prefetchPrompt(turn persistence.StoredTurn, in protocol.QueuedInput) *run {
	r := st.newRun(turn, false)
	if st.prepare(r, append(slices.Clip(st.queue.Inputs()), in)) != nil {
		r.discard()
		return nil
	}
	if r.machine == nil || r.plugins.Transforms() || !r.plugins.HasPromptHooks() {
		return r
	}
	s, err := st.scene(r)
	if err != nil {
		return r // it is found out once more in its place
	}
	r.ahead = make(chan composed, 1)
	c := composed{err: errStopped, memo: *s.memo, shared: s.memo} // one that is left alone disturbs no turn
	s.memo = &c.memo
	go func(done chan composed) {
		defer func() {
			if p := recover(); p != nil {
				c.err = st.eng.panicked("turn", r.id, p)
			}
			done <- c
		}()
		c.env, c.err = r.compose(r.ctx, s)
	}(r.ahead)
	return r
}

// prefetched is the prompt that was composed ahead.
func (r *run) prefetched() (turn.Response, error) {
	c := <-r.ahead
	r.ahead = nil
	*c.shared = c.memo
	return c.env, c.err
}

// discard ends a run that was made ahead and never began. Nil is nothing to call off.
func (r *run) discard() {
	if r == nil {
		return
	}
	r.halt(nil)
	r.dropPrefetch(r.life)
	r.lease.back()
}

// dropPrefetch does without what was asked ahead, once ctx is done. Who was asked gets a moment to return, as anybody whose context
// ends.
func (r *run) dropPrefetch(ctx context.Context) {
	if r.ahead != nil {
		inTime(ctx, r.ahead)
		r.ahead = nil
	}
}
