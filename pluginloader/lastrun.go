package pluginloader

import (
	"context"

	"lashd/rpc/protocol"
)

// recall loads the plugins that ran last from their copies, whatever their directories contain now.
// That is fast and cannot be prevented by a broken edit. The next scan finds changes.
func (s *set) recall(ctx context.Context) {
	s.entries, _ = s.arrange(s.list())
	for _, e := range s.entries {
		e.recall(ctx)
	}
}

// recall loads the last contents of one directory, unless the user has disabled them or revoked
// trust. A missing or broken copy is logged, and the next scan loads the directory from scratch.
func (e *entry) recall(ctx context.Context) {
	l := e.set.loader
	last, there := l.facts.ranLast(e.dir)
	if !there {
		return
	}
	e.found.Name = last.Name
	if l.facts.disabled(e.dir) || e.withdrawn(last.Digest) {
		return
	}
	c, err := l.copies.Open(ctx, last.Digest)
	if err != nil {
		l.config.Log.Warn("the last version of a plugin is missing", "plugin", last.Name, "error", err)
		return
	}
	u, err := l.assemble(c, e, last.Known)
	if err != nil {
		c.Close()
		l.config.Log.Warn("the last version of a plugin no longer loads", "plugin", last.Name, "error", err)
		return
	}
	e.next, e.sign = u, last.Signature
	e.found.Status, e.found.Problems = protocol.PluginLoaded, shown(u.manifest.Warnings)
	l.wake(ctx, u)
}

// wake starts, in the background, the programs of a plugin that run before their first use.
func (l *Loader) wake(ctx context.Context, u *unit) {
	l.inBackground("start a plugin", func() {
		if err := u.show(ctx, true); err != nil {
			l.config.Log.Warn("starting a plugin failed", "plugin", u.name(), "error", err)
		}
	})
}
