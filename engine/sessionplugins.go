package engine

import (
	"sync/atomic"
	"time"
)

// sessionPlugins are the plugins that a session has open, and the lock of whoever opens, replaces, changes or captures them. The set changes
// on the session's actor for the holder of the lock, so both may ask for it. Of the session it needs its context, whether it still takes
// functions, and the actor to go on while it waits for the plugins to end.
type sessionPlugins struct {
	owner  *state
	set    *pluginSet    // nil: no plugins are open
	locked chan struct{} // holds one value while the lock is held
	tasks  atomic.Int32  // number of tasks that plugins work on; unloading the session would lose them
}

func newSessionPlugins(owner *state) *sessionPlugins {
	return &sessionPlugins{owner: owner, locked: make(chan struct{}, 1)}
}

// opened returns the plugins that the session has open; nil: none.
func (p *sessionPlugins) opened() *pluginSet { return p.set }

// install gives the session plugins that were just opened.
func (p *sessionPlugins) install(t *pluginSet) { p.set = t }

// remove takes the plugins from the session, and returns them for the holder of the lock to close.
func (p *sessionPlugins) remove() *pluginSet {
	t := p.set
	p.set = nil
	return t
}

// inUse reports whether the session's plugins are lent to a turn or a call.
func (p *sessionPlugins) inUse() bool { return p.set != nil && p.set.leases.inUse() }

// beginTask notes that plugins work at a task, until end is called.
func (p *sessionPlugins) beginTask() (end func()) {
	p.tasks.Add(1)
	return func() { p.tasks.Add(-1) }
}

// haveTasks reports whether plugins work at tasks.
func (p *sessionPlugins) haveTasks() bool { return p.tasks.Load() > 0 }

// unused reports whether nothing would be lost if the plugins were closed.
func (p *sessionPlugins) unused() bool { return !p.inUse() && len(p.locked) == 0 && !p.haveTasks() }

// end waits for the last use of the plugins, but no longer than stopPatience, and closes them. It never releases the lock.
func (p *sessionPlugins) end() {
	st, free := p.owner, make(chan struct{})
	go func() {
		defer close(free)
		p.locked <- struct{}{}
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

// closeSoon closes plugins, and waits a moment for that. The next state of the session does not wait longer, but the engine does.
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
