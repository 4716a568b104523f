package pluginloader

import (
	"context"
	"errors"
	"fmt"

	"lashd/rpc/protocol"
)

// ErrTrusted means that a plugin is the user's own: it is trusted for being where it is, and needs no approval.
var ErrTrusted = errors.New("the plugin is in a directory of the user's: it needs no approval; switch it off, or remove it")

// ContentError means that a directory does not hold what was approved.
type ContentError struct {
	Wanted, Found protocol.Digest          // nothing is found where it cannot be read
	Problems      []protocol.PluginProblem // why not
}

func (e *ContentError) Error() string {
	if e.Found == "" && len(e.Problems) > 0 {
		return fmt.Sprintf("what the directory holds cannot be loaded, and so not be approved: %s", e.Problems[0])
	}
	return fmt.Sprintf("the directory holds %s by now, not %s; read the plugin again, and approve what it holds", e.Found, e.Wanted)
}

// Trust approves what is in a directory of a workspace, and loads it.
func (l *Loader) Trust(ctx context.Context, p *protocol.PluginTrustParams) (*protocol.PluginResult, error) {
	return l.decide(ctx, p.Name, p.Cwd, func(ctx context.Context, e *entry) error {
		if e.set.scope != protocol.ScopeWorkspace {
			return ErrTrusted
		}
		if _, found, problems := inspect(ctx, e.dir); found == "" || found != p.Digest {
			return &ContentError{p.Digest, found, problems}
		}
		return l.trust.Approve(ctx, e.dir, p.Digest)
	})
}

// Untrust takes back every approval of a plugin. What runs of it is not used by any turn that begins later.
func (l *Loader) Untrust(ctx context.Context, p *protocol.PluginUntrustParams) (*protocol.PluginResult, error) {
	return l.decide(ctx, p.Name, p.Cwd, func(ctx context.Context, e *entry) error {
		if e.set.scope != protocol.ScopeWorkspace {
			return ErrTrusted
		}
		return l.trust.Revoke(ctx, e.dir)
	})
}

// SetEnabled switches a plugin on or off.
func (l *Loader) SetEnabled(ctx context.Context, p *protocol.PluginEnableParams) (*protocol.PluginResult, error) {
	return l.decide(ctx, p.Name, p.Cwd, func(ctx context.Context, e *entry) error {
		if p.Enabled {
			return l.facts.store(ctx, fact(factOff, e.dir, nil))
		}
		return l.facts.store(ctx, fact(factOff, e.dir, true))
	})
}

// decide makes durable what a person has decided of a plugin, and does it.
func (l *Loader) decide(ctx context.Context, name, cwd string, what func(context.Context, *entry) error) (*protocol.PluginResult, error) {
	e, err := l.find(ctx, name, cwd)
	if err != nil {
		return nil, err
	}
	return do(ctx, l, func(ctx context.Context) (*protocol.PluginResult, error) {
		if err := what(ctx, e); err != nil {
			return nil, err
		}
		e.sign = ""
		l.update(ctx, e.set)
		return &protocol.PluginResult{Plugin: e.public()}, nil
	})
}
