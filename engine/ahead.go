package engine

import (
	"slices"

	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// composed is what an iteration works in, or why that is not known.
type composed struct {
	env turn.Response
	err error
}

// ahead makes the run of a turn whose acceptance is about to be written, and has its plugins asked for the prompt while it
// is: that costs no time then. Nothing has begun, and callOff undoes it. It is nil if the turn cannot be made: whoever drives
// it finds out why.
func (st *state) ahead(turn persistence.StoredTurn, in protocol.QueuedInput) *run {
	before := st.inputs
	defer func() { st.inputs = before }()
	st.inputs = append(slices.Clip(st.inputs), in)
	r := st.newRun(turn, false)
	if st.prepare(r) != nil {
		r.halt(nil)
		return nil
	}
	if r.machine == nil || r.plugins.Transforms() || !r.asksForPrompts() {
		return r
	}
	s, err := st.scene(r)
	if err != nil {
		return r // it is found out once more in its place
	}
	r.ahead = make(chan composed, 1)
	go func() {
		c := composed{err: errStopped}
		defer func() {
			if p := recover(); p != nil {
				c.err = st.eng.panicked("turn", r.id, p)
			}
			r.ahead <- c
		}()
		c.env, c.err = r.compose(r.ctx, s)
	}()
	return r
}

// early is what was composed ahead.
func (r *run) early() (turn.Response, error) {
	c := <-r.ahead
	r.ahead = nil
	return c.env, c.err
}

// callOff ends a run that was made ahead and never began. Nil is nothing to call off.
func (r *run) callOff() {
	if r == nil {
		return
	}
	r.halt(errStopped)
	r.awaitAhead()
}

// awaitAhead waits for what was asked ahead and is not wanted any more.
func (r *run) awaitAhead() {
	if r.ahead != nil {
		<-r.ahead
		r.ahead = nil
	}
}
