package engine

import (
	"context"
	"slices"

	"lashd/engine/change"
	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/rpc/protocol"
)

// create commits a new session, and answers with what was created.
func (ss *Sessions) create(ctx context.Context, c *change.Change, rc receipt.Request) (*protocol.SessionNewResult, error) {
	result := &protocol.SessionNewResult{SessionID: c.Session, Session: protocol.Session{
		ID: c.Session, Title: c.Create.Title, Cwd: c.Create.Cwd, State: protocol.SessionIdle, Config: c.Create.Config,
		Relation: c.Create.Relation, Authority: c.Create.Authority, CreatedAtMs: c.AtMs, UpdatedAtMs: c.AtMs, Seq: c.Seq(),
	}}
	result.Seq = result.Session.Seq
	if c.Receipt = rc.With(result); c.Receipt != nil {
		c.Receipt.ResultAt = func(head protocol.Head) []byte {
			result.Session.Head = head
			return encode(result)
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

// defaults are the settings of a session that begins with nothing and asks for nothing.
func (ss *Sessions) defaults() (protocol.Config, error) {
	cfg := ss.eng.Defaults
	model, err := ss.eng.Models.named("")
	cfg.Model = model.Spec
	return cfg, err
}

// configFor is a session's settings with what a request wants otherwise.
func (ss *Sessions) configFor(cfg protocol.Config, p *protocol.SessionNewParams) (protocol.Config, error) {
	if p.Driver != "" {
		cfg.Driver = p.Driver
	}
	if !slices.Contains(ss.eng.Plugins.Drivers(), cfg.Driver) {
		return cfg, param.NotOneOf("/driver", ss.eng.Plugins.Drivers())
	}
	return ss.changed(cfg, &protocol.SessionConfigureParams{
		Model: p.Model, Prompt: p.Prompt, Budget: p.Budget, Approval: p.Approval, Generation: p.Generation, GenerationMode: p.GenerationMode,
		Options: p.Options, Unknown: p.Unknown, Drain: p.Drain,
	})
}
