package engine

import (
	"sync/atomic"
	"time"
)

// sessionPlugins holds the plugins that a session has open and their lock. The lock serializes
// opening, replacing, reconfiguring and capturing plugins. Its holder works on a goroutine beside
// the actor, because plugin code may be slow. The set itself changes only on the actor, in a
// function that the holder sends, so both the actor and the holder may read it. It uses the state
// for its context and for the actor, which keeps serving while end waits.
type sessionPlugins struct {
	owner  *state
	set    *pluginSet    // nil: no plugins are open
	locked chan struct{} // holds one value while the lock is held
	ending bool          // the lock is held until the state has ended; only the actor uses it
	tasks  atomic.Int32  // number of tasks that plugins work on; unloading the session would lose them
}

// newSessionPlugins returns the part for a new state, with no plugins open and the lock free.
func newSessionPlugins(owner *state) *sessionPlugins {
	return &sessionPlugins{owner: owner, locked: make(chan struct{}, 1)}
}

// opened returns the plugins that the session has open, or nil.
func (p *sessionPlugins) opened() *pluginSet { return p.set }

// install makes a set that was just opened the session's plugins.
func (p *sessionPlugins) install(t *pluginSet) { p.set = t }

// remove takes the plugins out of the session and returns them. The holder of the lock closes them.
func (p *sessionPlugins) remove() *pluginSet {
	t := p.set
	p.set = nil
	return t
}

// inUse reports whether the session's plugins are lent to a turn or a call.
func (p *sessionPlugins) inUse() bool { return p.set != nil && p.set.leases.inUse() }

// beginTask counts a task that plugins work on, which keeps the session in memory until end is
// called. Any goroutine may call both.
func (p *sessionPlugins) beginTask() (end func()) {
	p.tasks.Add(1)
	return func() { p.tasks.Add(-1) }
}

// haveTasks reports whether plugins work on tasks. Such work does not count as a use of the
// plugins: it survives their replacement, but not the end of the state.
func (p *sessionPlugins) haveTasks() bool { return p.tasks.Load() > 0 }

// endUnused takes the lock for end, if the plugins can be closed without losing anything: no use, no holder of
// the lock, no tasks. Then a request that comes before the state ends waits for the next state.
func (p *sessionPlugins) endUnused() bool {
	select {
	case p.locked <- struct{}{}:
	default:
		return false
	}
	if p.ending = !p.inUse() && !p.haveTasks(); !p.ending {
		<-p.locked
	}
	return p.ending
}

// end waits up to stopTimeout for the last use of the plugins and closes them. It never releases
// the lock, so that nothing opens plugins of a state that is being unloaded. Plugins in use after
// the timeout are closed once their last lease returns.
func (p *sessionPlugins) end() {
	st, free := p.owner, make(chan struct{})
	go func() {
		defer close(free)
		if !p.ending {
			p.locked <- struct{}{}
		}
		if p.set != nil {
			<-p.set.leases.retire()
		}
	}()
	limit := time.NewTimer(stopTimeout)
	defer limit.Stop()
	ended := st.await(free, limit.C)
	switch {
	case !ended:
		st.eng.Log.Error("plugins still work after their context ended", "session", st.id)
		if p.set != nil {
			st.closeLater(p.set, free)
		}
	case p.set != nil:
		p.closeSoon(p.set)
	}
}

// closeSoon closes plugins and waits up to refusalDelay for that. If it takes longer, the session's
// next state does not wait, but the engine waits for it when it stops.
func (p *sessionPlugins) closeSoon(t *pluginSet) {
	done := make(chan struct{})
	p.owner.eng.group.GoActor(func() {
		defer close(done)
		p.owner.closeSet(t)
	})
	moment := time.NewTimer(refusalDelay)
	defer moment.Stop()
	select {
	case <-done:
	case <-moment.C:
	}
}
