package engine

import (
	"context"
	"fmt"
	"strings"

	"lashd/engine/change"
	"lashd/engine/plugin"
	"lashd/engine/pluginstate"
	"lashd/engine/workgroup"
	"lashd/rpc/protocol"
)

// capture asks plugins for their state. It returns nil if the plugins' fingerprint says that the
// stored state is current. State that is stored for plugins that are not open now is kept. It calls
// plugin code, so it must not run on the actor.
func (e *Engine) capture(ctx context.Context, plugins *plugin.Session, stored *pluginstate.State) (*pluginstate.Captured, error) {
	if sum, err := plugins.Fingerprint(ctx); err != nil || stored != nil && stored.Fingerprint == sum {
		return nil, err
	}
	snap, err := workgroup.CallPlugin(ctx, e.group, plugins.Capture)
	if err != nil {
		return nil, err
	}
	return pluginstate.Capture(snap, stored)
}

// captureExecution asks the code executor for its state and adds it to k, which may be nil. Without
// an executor it returns k.
func (e *Engine) captureExecution(ctx context.Context, plugins *plugin.Session, k *pluginstate.Captured) (*pluginstate.Captured, error) {
	if !plugins.Executes() {
		return k, nil
	}
	x, err := workgroup.CallPlugin(ctx, e.group, plugins.CaptureExecution)
	if err != nil || x == nil {
		return k, err
	}
	return k.With(x)
}

// captureAll captures the state of plugins and of the code executor for a commit that must not fail
// because of them. If one cannot be captured, its stored state stays, the next commit tries again,
// and the failure is returned as an issue. Plugins with an abandoned call are not asked, because a
// call may still run in them.
func (e *Engine) captureAll(ctx context.Context, id protocol.SessionID, plugins *plugin.Session, stored *pluginstate.State) (*pluginstate.Captured, []protocol.Issue) {
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

// idleCapture is plugin state that was captured while nothing used the plugins, and the point in
// the session's commits at which that was.
type idleCapture struct {
	captured *pluginstate.Captured // nil: the stored state is current
	at       change.Base
}

// captureIdle captures plugin state under the lock if the session is idle and has plugins open.
// Otherwise the stored state counts, because a turn stores its state when it ends. Plugins with an
// abandoned call are replaced first.
func (k *pluginLock) captureIdle() (c idleCapture, err error) {
	if t := k.owner.plugins.opened(); t != nil && t.hasAbandoned() && !t.leases.inUse() {
		if _, err := k.open(k.row().Config); err != nil {
			return c, err
		}
	}
	var plugins *plugin.Session
	stored, err := onState(k.owner, func(_ context.Context, st *state) (*pluginstate.State, error) {
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

// addTo adds the captured state to a change, unless the session has committed anything since the
// capture or is no longer idle: then the captured state may be outdated. It runs on the actor.
func (k idleCapture) addTo(c *change.Change, st *state) {
	if k.at == st.base() && st.idle() == nil {
		st.stored.keep(c, k.captured)
	}
}

// captureIdle takes the lock and captures idle plugin state for a commit that does not depend on
// it. After an error, which is logged, the state is stored with a later commit.
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

// capture captures plugin state for the commit that ends the turn.
func (r *run) capture() {
	k, issues := r.eng.captureAll(r.life, r.session.id, r.hooks.plugins, r.owner.stored.pluginState())
	r.result.captured = k
	r.result.note(issues...)
}
