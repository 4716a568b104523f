package pluginloader

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lashd/pluginloader/content"
	"lashd/rpc/protocol"
)

// ErrTrusted means that a plugin is the user's own: it is trusted for being where it is, and needs no approval.
var ErrTrusted = errors.New("this is not a workspace plugin and needs no trust; to stop it, disable or remove it")

// ContentError means that a directory does not hold what was approved.
type ContentError struct {
	Wanted, Found protocol.Digest          // nothing is found where it cannot be read
	Problems      []protocol.PluginProblem // why not
}

func (e *ContentError) Error() string {
	if e.Found == "" && len(e.Problems) > 0 {
		return fmt.Sprintf("the plugin cannot be trusted because its files cannot be loaded: %s", e.Problems[0])
	}
	return fmt.Sprintf("the plugin's files changed since you read them (digest %s, expected %s); read the plugin again, then trust it", e.Found, e.Wanted)
}

// Trust approves what is in a directory of a workspace, and loads it.
func (l *Loader) Trust(ctx context.Context, p *protocol.PluginTrustParams) (*protocol.PluginResult, error) {
	e, err := l.findTrustable(ctx, p.Name, p.Cwd)
	if err != nil {
		return nil, err
	}
	if _, found, problems := e.inspect(ctx); found == "" || found != p.Digest {
		return nil, &ContentError{p.Digest, found, problems}
	}
	return l.decide(ctx, e, "", func(ctx context.Context) error { return l.trust.Approve(ctx, e.dir, p.Digest) })
}

// Untrust takes back every approval of a plugin. What runs of it is not used by any turn that begins later.
func (l *Loader) Untrust(ctx context.Context, p *protocol.PluginUntrustParams) (*protocol.PluginResult, error) {
	e, err := l.findTrustable(ctx, p.Name, p.Cwd)
	if err != nil {
		return nil, err
	}
	return l.decide(ctx, e, protocol.PluginUntrusted, func(ctx context.Context) error { return l.trust.Revoke(ctx, e.dir) })
}

// findTrustable finds a plugin that a person has to approve.
func (l *Loader) findTrustable(ctx context.Context, name, cwd string) (*entry, error) {
	e, err := l.find(ctx, name, cwd)
	if err == nil && e.set.scope != protocol.ScopeWorkspace {
		err = ErrTrusted
	}
	return e, err
}

// SetEnabled switches a plugin on or off.
func (l *Loader) SetEnabled(ctx context.Context, p *protocol.PluginEnableParams) (*protocol.PluginResult, error) {
	e, err := l.find(ctx, p.Name, p.Cwd)
	switch {
	case err != nil:
		return nil, err
	case p.Enabled:
		return l.decide(ctx, e, "", func(ctx context.Context) error { return l.facts.store(ctx, fact(factOff, e.dir, nil)) })
	}
	return l.decide(ctx, e, protocol.PluginDisabled, func(ctx context.Context) error { return l.facts.store(ctx, fact(factOff, e.dir, true)) })
}

// decide makes durable what a person has decided of a plugin, and does it. What is not to run any more, which is what a status
// says, does not wait for anything that is in its directory, or in others.
func (l *Loader) decide(
	ctx context.Context, e *entry, stop protocol.PluginStatus, what func(context.Context) error,
) (*protocol.PluginResult, error) {
	looked := make(chan struct{})
	e, err := do(ctx, l, func(ctx context.Context) (*entry, error) {
		e := e.set.at(e.dir)
		if e == nil {
			return nil, ErrNoPlugin
		}
		if err := what(ctx); err != nil {
			return nil, err
		}
		if e.ask(); stop != "" {
			e.end(ctx, stop)
			close(looked)
			l.look(ctx, e.set)
		} else {
			l.look(ctx, e.set, func() { close(looked) })
		}
		return e, nil
	})
	if err == nil {
		err = l.wait(ctx, looked)
	}
	if err != nil {
		return nil, err
	}
	return &protocol.PluginResult{Plugin: e.public()}, nil
}

// end has nothing of a plugin run any more, but for what is at work with it.
func (e *entry) end(ctx context.Context, status protocol.PluginStatus) {
	if e.unit != nil {
		e.found.Found = e.unit.copy.Digest
	}
	if e.found.Status != protocol.PluginDisabled {
		e.found.Status = status
	}
	e.found.Problems = nil
	l := e.set.loader
	with := l.having(e.dir)
	e.drop()
	l.changed(ctx, e.set)
	l.revoke(ctx, with)
}

// allowed tells whether a content of the directory may be loaded.
func (e *entry) allowed(d protocol.Digest) bool {
	return e.set.scope == protocol.ScopeUser || e.set.loader.trust.Trusted(e.dir, d)
}

// withdrawn tells whether a content that was allowed may not run any more, from its copy.
func (e *entry) withdrawn(d protocol.Digest) bool {
	if e.set.scope == protocol.ScopeUser {
		return false
	}
	place := e.place()
	return !slices.ContainsFunc(e.set.loader.trust.All(), func(a content.Approval) bool { return a.At == e.dir && a.Dir == place && a.Digest == d })
}
