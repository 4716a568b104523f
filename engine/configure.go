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

// Configure changes a session's settings. A running turn keeps those it began with. Plugins see the change before it is
// stored, and may change it themselves; if it came to something, they are told after it. They do so beside the actor, so
// that the session can be used meanwhile; if it was configured by somebody else then, they are asked again.
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

// errConfigChanged means that the settings are not those any more that a change was made of.
var errConfigChanged = errors.New("the session's settings changed in the meantime")

// configChange is a change of a session's settings on its way.
type configChange struct {
	eng               *Engine
	id                protocol.SessionID
	plugins           *plugin.Session // nil: they could not be built
	lease             *lease          // of them
	previous, current protocol.Config
	issues            []protocol.Issue
	stored            bool
}

// propose is the change that a request wants, with options that plugins take. Whoever asks settles it.
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
	} else { // it may be these settings that are wrong
		ss.eng.Log.Warn("changing settings without asking the session's plugins, because they cannot be opened", "session", row.ID, "error", err)
	}
	if err := c.buildOnce(ctx, buildContextOf(ss.eng, &row)); err != nil {
		c.lease.release()
		return nil, err
	}
	return c, nil
}

// buildOnce builds the plugins with options that are others now, where nobody else knows of them: a session whose plugins cannot be
// built fails all its turns.
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

// apply has the plugins change the change, stores it, and tells them.
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

// mutate is the change as the plugins leave it. What fails is left out: so is all they did, if it comes to settings that
// cannot be.
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

func (c *configChange) check(cfg protocol.Config) error {
	if _, err := json.Marshal(cfg); err != nil {
		return err
	}
	if cfg.Driver != c.current.Driver {
		return errDriverFixed
	}
	return param.CheckConfig(cfg)
}

func (c *configChange) addIssue(code string, f plugin.Failure) {
	c.eng.Log.Warn("plugin failed during a change of settings", "session", c.id, "plugin", f.Plugin, "error", f.Err)
	c.issues = append(c.issues, protocol.Issue{Kind: "plugin", Code: code, Message: f.Plugin + ": " + f.Err.Error()})
}

func (c *configChange) trace(kind trace.Kind, body any) {
	c.eng.Trace.Add(kind, trace.Record{SessionID: c.id}, body)
}

// store commits the change, unless the settings are others by now.
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

func sameConfig(a, b protocol.Config) bool { return bytes.Equal(encode(a), encode(b)) }

// announce tells the plugins of settings that are others now. What fails is an issue in the log; the change stays.
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
