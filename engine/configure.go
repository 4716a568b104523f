package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/receipt"
	"lashd/engine/trace"
	"lashd/engine/workgroup"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Configure changes a session's settings. A running turn keeps the settings that it began with.
// Plugins can adjust the change before it is stored, and are notified after it. They run off the
// actor, so the session stays usable. If another request changed the settings at the same time,
// Configure starts over with the new ones.
func (ss *Sessions) Configure(ctx context.Context, p *protocol.SessionConfigureParams) (*protocol.HeadResult, error) {
	for {
		c, err := ss.propose(ctx, p)
		if err != nil {
			return receipt.Repeated[protocol.HeadResult](ctx, ss.eng.store, "session/configure", p.Key(), p, err)
		}
		result, err := c.apply(ctx, p)
		if !errors.Is(err, errConfigChanged) {
			return result, err
		}
	}
}

// errConfigChanged means that the settings changed since the change was proposed, so Configure
// proposes it again.
var errConfigChanged = errors.New("the session's settings changed in the meantime")

// configChange is a change of a session's settings from its proposal until plugins are notified.
// One goroutine owns it. If it has a lease, apply returns it.
type configChange struct {
	eng *Engine
	id  protocol.SessionID
	// plugins are the session's plugins; nil if they could not be opened. Then the change is stored
	// without asking them, because the old settings may be what keeps them from opening.
	plugins *plugin.Session
	// lease keeps plugins open; nil if plugins is.
	lease *lease
	// previous are the settings that the change is based on, and current those that it leads to.
	previous, current protocol.Config
	// issues are failures of plugins. Those before the commit are published with the change, later
	// ones in an event of their own.
	issues []protocol.Issue
	// stored is set by the actor once the change is committed.
	stored bool
}

// propose checks a request and returns the change that it leads to, before plugins adjust it. The
// caller must call apply, which returns the lease.
func (ss *Sessions) propose(ctx context.Context, p *protocol.SessionConfigureParams) (*configChange, error) {
	row, err := do(ctx, ss.eng, p.SessionID, func(_ context.Context, st *state) (protocol.Session, error) { return st.row, nil })
	if err != nil {
		return nil, err
	}
	c := &configChange{eng: ss.eng, id: row.ID, previous: row.Config}
	if c.current, err = ss.changed(row.Config, p); err != nil {
		return nil, err
	}
	if err := ss.checkOptions(ctx, row.Cwd, p.Options, row.Config.Options); err != nil {
		return nil, err
	}
	if c.lease, err = ss.eng.lend(ctx, row.ID); err == nil {
		c.plugins = c.lease.plugins
	} else { // the present settings may be the cause
		ss.eng.Log.Warn("changing settings without asking the session's plugins, because they cannot be opened", "session", row.ID, "error", err)
	}
	if err := c.buildOnce(ctx, buildContextOf(ss.eng, &row, c.current)); err != nil {
		c.lease.release()
		return nil, err
	}
	return c, nil
}

// buildOnce builds the plugins with the new options, off to the side, and closes them again. It
// runs only if plugin options changed. An option that its plugin rejects fails the request here;
// stored, it would fail every turn of the session.
func (c *configChange) buildOnce(ctx context.Context, bc plugin.BuildContext) error {
	if bytes.Equal(settingsOf(c.previous), settingsOf(c.current)) {
		return nil
	}
	_, err := workgroup.CallPlugin(ctx, c.eng.group, func(ctx context.Context) (struct{}, error) {
		plugins, err := c.eng.build(ctx, c.current, bc, (*plugin.Host).Isolated)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, errors.Join(context.Cause(ctx), plugins.Close())
	})
	return err
}

// apply lets the plugins adjust the change, stores it, notifies the plugins, and returns the lease.
func (c *configChange) apply(ctx context.Context, p *protocol.SessionConfigureParams) (*protocol.HeadResult, error) {
	if c.plugins == nil {
		return c.store(ctx, p)
	}
	defer c.lease.release()
	c.mutate(c.lease.ctx)
	if c.lease.ctx.Err() != nil {
		return nil, context.Cause(c.lease.ctx)
	}
	result, err := c.store(ctx, p)
	if err == nil && c.stored {
		c.announce(ctx)
	}
	return result, err
}

// mutate sets current to the settings as the plugins adjusted them. A failing plugin is skipped and
// noted as an issue. If the result is invalid, all adjustments are discarded.
func (c *configChange) mutate(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, hookTime)
	defer cancel()
	cfg, failed := c.plugins.MutateConfig(ctx, c.previous, c.current, c.eng.capabilities(c.id, c.trace))
	for _, f := range failed {
		c.addIssue("config_mutator_failed", f)
	}
	if err := c.check(cfg); err != nil {
		c.addIssue("config_mutator_failed", plugin.Failure{Plugin: "config mutators", Err: err})
		return
	}
	c.current = cfg
}

var errDriverFixed = errors.New("the driver of a session cannot be changed")

// check reports whether settings adjusted by plugins are valid. Plugins cannot change the driver.
func (c *configChange) check(cfg protocol.Config) error {
	if _, err := json.Marshal(cfg); err != nil {
		return err
	}
	if cfg.Driver != c.current.Driver {
		return errDriverFixed
	}
	return param.CheckConfig(cfg)
}

// addIssue logs the failure of a plugin and adds it to the issues.
func (c *configChange) addIssue(code string, f plugin.Failure) {
	c.eng.Log.Warn("plugin failed during a change of settings", "session", c.id, "plugin", f.Plugin, "error", f.Err)
	c.issues = append(c.issues, protocol.Issue{Kind: "plugin", Code: code, Message: f.Plugin + ": " + f.Err.Error()})
}

// trace records a trace entry of a plugin that handles the change.
func (c *configChange) trace(kind trace.Kind, body any) {
	c.eng.Trace.Add(kind, trace.Record{SessionID: c.id}, body)
}

// store commits the change on the actor. It returns errConfigChanged if the settings are no longer
// previous.
func (c *configChange) store(ctx context.Context, p *protocol.SessionConfigureParams) (*protocol.HeadResult, error) {
	return mutate(ctx, c.eng, c.id, "session/configure", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.HeadResult, error) {
		if !sameConfig(st.row.Config, c.previous) {
			return nil, errConfigChanged
		}
		next := st.change(persistence.Commit{Config: &c.current})
		next.TellOf(protocol.Event{Type: protocol.EventSessionConfigured, Config: &c.current, Issues: c.issues})
		result := &protocol.HeadResult{Head: st.row.Head, Seq: next.Seq()}
		result.Head.Revision++
		next.Receipt = rc.With(result)
		st.turns.running().pin(next)
		next.Then(func() { st.row.Config, c.stored = c.current, true })
		return result, st.commit(ctx, next)
	})
}

// sameConfig reports whether two configurations encode to the same JSON.
func sameConfig(a, b protocol.Config) bool { return bytes.Equal(encode(a), encode(b)) }

// announce notifies the plugins of changed settings. A failure becomes an issue event; the change
// stays.
func (c *configChange) announce(ctx context.Context) {
	if !c.plugins.Listens() || sameConfig(c.previous, c.current) {
		return
	}
	telling, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookTime)
	defer cancel()
	c.issues = nil
	for _, f := range c.plugins.Emit(telling, &plugin.LifecycleEvent{
		Kind: plugin.SessionConfigChanged, Previous: &c.previous, Current: &c.current, Host: c.eng.capabilities(c.id, c.trace),
	}) {
		c.addIssue("lifecycle_hook_failed", f)
	}
	if len(c.issues) == 0 {
		return
	}
	_, err := do(context.WithoutCancel(ctx), c.eng, c.id, func(ctx context.Context, st *state) (struct{}, error) {
		return struct{}{}, st.commitEvents(ctx, issueEvent("", c.issues...))
	})
	if err != nil {
		c.eng.Log.Error("could not publish issues of plugins", "session", c.id, "error", err)
	}
}
