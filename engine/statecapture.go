package engine

import (
	"context"
	"fmt"
	"strings"

	"lashd/engine/change"
	"lashd/engine/plugin"
	"lashd/engine/workgroup"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// captured is what plugins keep, on its way into the store.
type captured struct {
	state      *pluginState            // nil: unchanged since it was stored
	components []persistence.Component // the rows of state that changed
	execution  *plugin.Execution       // nil: unchanged, or there is no executor
}

// capture asks plugins what they keep, unless that is what is stored: then there is nothing to keep. What is stored of
// plugins that are not there now stays.
func (e *Engine) capture(ctx context.Context, plugins *plugin.Session, stored *pluginState) (*captured, error) {
	if sum, err := plugins.Fingerprint(ctx); err != nil || stored != nil && stored.Fingerprint == sum {
		return nil, err
	}
	snap, err := workgroup.CallPlugin(ctx, e.group, plugins.Capture)
	if err != nil {
		return nil, err
	}
	next, bulk := freeze(snap)
	k := &captured{state: next}
	if stored != nil {
		for id, entry := range stored.Entries {
			if _, ok := next.Entries[id]; !ok {
				next.Entries[id] = entry
			}
		}
	}
	if stored != nil || len(next.Entries) > 0 {
		k.components = changedParts(stored, next, bulk)
	}
	return k, k.check()
}

func (k *captured) check() error {
	size := 0
	for _, c := range k.components {
		size += len(c.Body)
	}
	if size > maxPluginState {
		return fmt.Errorf("%d bytes of plugin state changed, at most %d can be stored at once", size, maxPluginState)
	}
	return nil
}

// captureExecution asks the code executor what it keeps, and adds that to what was captured of the plugins.
func (e *Engine) captureExecution(ctx context.Context, plugins *plugin.Session, k *captured) (*captured, error) {
	if !plugins.Executes() {
		return k, nil
	}
	x, err := workgroup.CallPlugin(ctx, e.group, plugins.CaptureExecution)
	if err != nil || x == nil {
		return k, err
	}
	if len(x.State) > maxPluginState {
		return k, fmt.Errorf("the state of the code executor is %d bytes, at most %d can be stored", len(x.State), maxPluginState)
	}
	if k == nil {
		k = &captured{}
	}
	k.execution = x
	return k, nil
}

// captureAll captures what plugins and the code executor keep. Of what fails what was stored stays, and is tried again; it
// is an issue.
func (e *Engine) captureAll(ctx context.Context, id protocol.SessionID, plugins *plugin.Session, stored *pluginState) (*captured, []protocol.Issue) {
	var issues []protocol.Issue
	failed := func(code string, err error) {
		e.Log.Error("cannot capture plugin state", "session", id, "code", code, "error", err)
		issues = append(issues, protocol.Issue{Kind: "plugin", Code: code, Message: err.Error()})
	}
	k, err := e.capture(ctx, plugins, stored)
	if err != nil {
		failed("plugin_snapshot", err)
		k = nil
	} else if left := plugins.Abandoned(); len(left) > 0 {
		failed("plugin_snapshot", fmt.Errorf("did not capture the state of %s: an abandoned call still runs in each of them", strings.Join(left, ", ")))
	}
	if k, err = e.captureExecution(ctx, plugins, k); err != nil {
		failed("execution_snapshot", err)
	}
	return k, issues
}

// idleCapture is what plugins keep that nothing works with, and where the session was when they were asked.
type idleCapture struct {
	captured *captured // nil: the stored state is current
	at       change.Base
}

// captureIdle captures what plugins keep while nothing works with them; otherwise what is stored is what counts.
func (k *pluginLock) captureIdle() (c idleCapture, err error) {
	if t := k.owner.plugins.opened(); t != nil && t.hasAbandoned() && !t.leases.inUse() {
		if _, err := k.open(k.row().Config); err != nil {
			return c, err
		}
	}
	var plugins *plugin.Session
	stored, err := onState(k.owner, func(_ context.Context, st *state) (*pluginState, error) {
		if t := st.plugins.opened(); t != nil && st.idle() == nil {
			plugins, c.at = t.plugins, st.base()
		}
		return st.stored.pluginState(), nil
	})
	if err != nil || plugins == nil {
		return c, err
	}
	if c.captured, err = k.eng.capture(k.ctx, plugins, stored); err != nil {
		return idleCapture{}, err
	}
	c.captured, err = k.eng.captureExecution(k.ctx, plugins, c.captured)
	return c, err
}

// addTo adds what was captured to a change of a session, unless something has worked with the plugins since, or may have.
func (k idleCapture) addTo(c *change.Change, st *state) {
	if k.at == st.base() && st.idle() == nil {
		st.stored.keep(c, k.captured)
	}
}

// captureIdle is captureIdle of a lock for a commit that does not fail for want of it: what cannot be captured is stored later.
func (p *sessionPlugins) captureIdle(ctx context.Context) (c idleCapture) {
	k, err := p.lock(context.WithoutCancel(ctx)) // also if the turn is suspended because the daemon stops
	if err == nil {
		defer k.unlock()
		c, err = k.captureIdle()
	}
	if err != nil {
		p.owner.eng.Log.Error("cannot capture state of idle plugins", "session", p.owner.id, "error", err)
	}
	return c
}

// capture captures what plugins keep for the commit of the turn.
func (r *run) capture() {
	k, issues := r.eng.captureAll(r.life, r.session.id, r.hooks.plugins, r.owner.stored.pluginState())
	r.result.captured = k
	r.result.note(issues...)
}
