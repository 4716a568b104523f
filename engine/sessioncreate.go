package engine

import (
	"context"
	"slices"

	"lashd/engine/change"
	"lashd/engine/plugin"
	"lashd/engine/receipt"
	"lashd/rpc/protocol"
)

// create commits a new session, announces it to clients that watch the daemon, and returns it. The
// caller has filled in the change.
//
// The head is known only inside the commit, so the receipt encodes the result there. It fails with
// receipt.ErrReplayed if the request was stored before, and with persistence.ErrExists if the id is
// taken.
func (ss *Sessions) create(ctx context.Context, c *change.Change, rc receipt.Request) (*protocol.SessionNewResult, error) {
	result := &protocol.SessionNewResult{SessionID: c.Session, Session: protocol.Session{
		ID: c.Session, Title: c.Create.Title, Cwd: c.Create.Cwd, State: protocol.SessionIdle, Config: c.Create.Config,
		Relation: c.Create.Relation, Authority: c.Create.Authority, CreatedAtMs: c.AtMs, UpdatedAtMs: c.AtMs, Seq: c.Seq(), TurnIndex: c.Create.Turns,
	}}
	result.Seq = result.Session.Seq
	if c.Receipt = rc.With(result); c.Receipt != nil {
		c.Receipt.ResultAt = func(head protocol.Head) []byte {
			result.Session.Head = head
			return rc.Encode(result)
		}
	}
	if err := c.Seal(c.Session, change.Base{}, c.AtMs); err != nil {
		return nil, err
	}
	res, err := ss.eng.store.Commit(ctx, &c.Commit)
	if err != nil {
		return nil, err
	}
	if res.Replayed {
		return nil, receipt.ErrReplayed
	}
	result.Session.Head = res.Head
	ss.eng.Events.Session(result.Session)
	return result, nil
}

// defaults returns the settings of a new session that inherits none: those of the daemon's
// configuration, with the default model. Without a configured sandbox mode, that depends on the
// workspace. It fails if no model is configured.
func (ss *Sessions) defaults(cwd string) (protocol.Config, error) {
	cfg := ss.eng.Defaults
	if cfg.Approval.Sandbox == "" {
		cfg.Approval.Sandbox = ss.eng.Sandbox.Default(cwd)
	}
	model, err := ss.eng.Models.Named("")
	cfg.Model = model.Spec
	return cfg, err
}

// configFor returns cfg with the settings that a session/new request overrides. It rejects a driver
// that no plugin provides, an unknown model and settings that are invalid together. The driver can
// be chosen only here: it is fixed for the session's life.
func (ss *Sessions) configFor(cfg protocol.Config, p *protocol.SessionNewParams) (protocol.Config, error) {
	if p.Driver != "" {
		cfg.Driver = p.Driver
	}
	if known := ss.eng.Plugins.Drivers(); !slices.Contains(plugin.DriverNames(known), cfg.Driver) {
		return cfg, plugin.NoDriver(cfg.Driver, known)
	}
	return ss.changed(cfg, &protocol.SessionConfigureParams{
		Model: p.Model, Effort: p.Effort, Prompt: p.Prompt, Budget: p.Budget, Approval: p.Approval, Generation: p.Generation, GenerationMode: p.GenerationMode,
		Options: p.Options, Unknown: p.Unknown, Drain: p.Drain,
	})
}
