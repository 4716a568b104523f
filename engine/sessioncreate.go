package engine

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"lashd/engine/change"
	"lashd/rpc/protocol"
)

// create commits a new session, and answers with what was created.
func (e *Engine) create(ctx context.Context, c *change.Change, rc receipt) (*protocol.SessionNewResult, error) {
	result := &protocol.SessionNewResult{SessionID: c.Session, Session: protocol.Session{
		ID: c.Session, Title: c.Create.Title, Cwd: c.Create.Cwd, State: protocol.SessionIdle, Config: c.Create.Config,
		Relation: c.Create.Relation, Authority: c.Create.Authority, CreatedAtMs: c.AtMs, UpdatedAtMs: c.AtMs, Seq: c.Seq(),
	}}
	result.Seq = result.Session.Seq
	if c.Receipt = rc.with(result); c.Receipt != nil {
		c.Receipt.ResultAt = func(head protocol.Head) []byte {
			result.Session.Head = head
			return encode(result)
		}
	}
	if err := c.Seal(c.Session, change.Base{}, c.AtMs); err != nil {
		return nil, err
	}
	res, err := e.store.Commit(ctx, &c.Commit)
	if err != nil {
		return nil, err
	}
	if res.Replayed {
		return nil, errReplayed
	}
	result.Session.Head = res.Head
	e.postSession(result.Session)
	return result, nil
}

// defaults are the settings of a session that begins with nothing and asks for nothing.
func (e *Engine) defaults() (protocol.Config, error) {
	cfg := e.Defaults
	model, err := e.model("")
	cfg.Model = model.Spec
	return cfg, err
}

// configFor is a session's settings with what a request wants otherwise.
func (e *Engine) configFor(cfg protocol.Config, p *protocol.SessionNewParams) (protocol.Config, error) {
	if p.Driver != "" {
		cfg.Driver = p.Driver
	}
	if !slices.Contains(e.Plugins.Drivers(), cfg.Driver) {
		return cfg, notOneOf("/driver", e.Plugins.Drivers())
	}
	return e.changed(cfg, &protocol.SessionConfigureParams{
		Model: p.Model, Prompt: p.Prompt, Budget: p.Budget, Approval: p.Approval, Generation: p.Generation, GenerationMode: p.GenerationMode,
		Options: p.Options, Unknown: p.Unknown, Drain: p.Drain,
	})
}

func checkConfig(cfg protocol.Config) error {
	if cfg.Budget.Iterations == 0 || cfg.Budget.Iterations < -1 {
		return bad("/budget/iterations", "must be a positive number, or -1 for no bound")
	}
	if cfg.Budget.NoProgress < 0 {
		return bad("/budget/noProgress", "must not be negative")
	}
	if err := checkApproval(cfg.Approval); err != nil {
		return err
	}
	if d := cfg.Unknown.DeadlineMs; d != nil {
		if err := checkWait("/unknownOutcome/deadlineMs", *d); err != nil {
			return err
		}
	}
	if how := []protocol.DrainPolicy{"", protocol.DrainOne, protocol.DrainMerge}; !slices.Contains(how, cfg.Drain) {
		return notOneOf("/drain", how)
	}
	return checkGeneration(cfg.Generation)
}

func checkApproval(a protocol.ApprovalConfig) error {
	modes := []protocol.ApprovalMode{protocol.ApproveAllow, protocol.ApproveAsk, protocol.ApproveDeny}
	if a.Mode != "" && !slices.Contains(modes, a.Mode) {
		return notOneOf("/approval/mode", modes)
	}
	if d := a.Default; d != "" && d != protocol.ApproveAllow && d != protocol.ApproveDeny {
		return bad("/approval/default", "must be allow or deny")
	}
	if err := checkWait("/approval/deadlineMs", a.DeadlineMs); err != nil {
		return err
	}
	for i, r := range a.Rules {
		if _, err := filepath.Match(r.Tool, ""); err != nil || r.Tool == "" {
			return bad("/approval/rules/"+itoa(i)+"/tool", "must be a tool's name, or a pattern with *")
		}
		if !slices.Contains(modes, r.Action) {
			return notOneOf("/approval/rules/"+itoa(i)+"/action", modes)
		}
	}
	return nil
}

func checkCwd(cwd string) (string, error) {
	if !filepath.IsAbs(cwd) {
		return "", bad("/cwd", "must be an absolute path, not %.200q", cwd)
	}
	info, err := os.Stat(cwd)
	if err != nil || !info.IsDir() {
		return "", bad("/cwd", "%.200q is not a directory", cwd)
	}
	return filepath.Clean(cwd), nil
}
