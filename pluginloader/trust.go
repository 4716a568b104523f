package pluginloader

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lashd/pluginloader/content"
	"lashd/rpc/protocol"
)

// ErrTrusted means that a plugin needs no approval, because it is in a directory of the user.
var ErrTrusted = errors.New("this is not a workspace plugin and needs no trust; to stop it, disable or remove it")

// ContentError means that a directory does not contain what the user wants to approve.
type ContentError struct {
	Wanted, Found protocol.Digest          // Found is empty if the directory cannot be read
	Problems      []protocol.PluginProblem // why it cannot be read
}

// Error says what to do: read the plugin again, or repair its files.
func (e *ContentError) Error() string {
	if e.Found == "" && len(e.Problems) > 0 {
		return fmt.Sprintf("the plugin cannot be trusted because its files cannot be loaded: %s", e.Problems[0])
	}
	return fmt.Sprintf("the plugin's files changed since you read them (digest %s, expected %s); read the plugin again, then trust it", e.Found, e.Wanted)
}

// Trust implements plugin/trust. It approves the contents with the given digest, if the directory
// still has them, and loads the plugin. If the contents changed after the client read them, the
// error is a *ContentError.
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

// Untrust implements plugin/untrust. It removes every approval of a plugin. Turns that start later
// do not use it.
func (l *Loader) Untrust(ctx context.Context, p *protocol.PluginUntrustParams) (*protocol.PluginResult, error) {
	e, err := l.findTrustable(ctx, p.Name, p.Cwd)
	if err != nil {
		return nil, err
	}
	return l.decide(ctx, e, protocol.PluginUntrusted, func(ctx context.Context) error { return l.trust.Revoke(ctx, e.dir) })
}

// findTrustable returns a plugin that needs approval, or ErrTrusted for one of the user.
func (l *Loader) findTrustable(ctx context.Context, name, cwd string) (*entry, error) {
	e, err := l.find(ctx, name, cwd)
	if err == nil && e.set.scope != protocol.ScopeWorkspace {
		err = ErrTrusted
	}
	return e, err
}

// SetEnabled implements plugin/enable and plugin/disable. The decision is by directory and outlives
// restarts and changes of the plugin's files.
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

// decide stores a decision of the user and applies it. store is the write. It runs on the loader's
// goroutine, so decisions and scans never overlap.
//
// If stop is set, the plugin stops with that status at once, without a scan: a broken or huge
// directory cannot delay that. Otherwise decide waits for a scan of the directory.
func (l *Loader) decide(
	ctx context.Context, e *entry, stop protocol.PluginStatus, store func(context.Context) error,
) (*protocol.PluginResult, error) {
	looked := make(chan struct{})
	e, err := do(ctx, l, func(ctx context.Context) (*entry, error) {
		e := e.set.at(e.dir)
		if e == nil {
			return nil, ErrNoPlugin
		}
		if err := store(ctx); err != nil {
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

// end stops a plugin. Only turns in progress keep using it; when they end, its programs end too.
func (e *entry) end(ctx context.Context, status protocol.PluginStatus) {
	if e.unit != nil {
		e.found.Found = e.unit.copy.Digest
	}
	if e.found.Status != protocol.PluginDisabled {
		e.found.Status = status
	}
	e.found.Problems = nil
	l := e.set.loader
	with := l.hostsUsing(e.dir)
	e.drop()
	l.changed(ctx, e.set)
	l.revoke(ctx, with)
}

// allowed reports whether contents of the directory may be loaded.
func (e *entry) allowed(d protocol.Digest) bool {
	return e.set.scope == protocol.ScopeUser || e.set.loader.trust.Trusted(e.dir, d)
}

// withdrawn reports whether contents that were approved may no longer run from their copy. It does
// not read the directory's files, which may be broken or gone. The user's own plugins are never
// withdrawn.
func (e *entry) withdrawn(d protocol.Digest) bool {
	if e.set.scope == protocol.ScopeUser {
		return false
	}
	place := e.place()
	return !slices.ContainsFunc(e.set.loader.trust.All(), func(a content.Approval) bool { return a.At == e.dir && a.Dir == place && a.Digest == d })
}
