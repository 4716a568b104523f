package pluginloader

import (
	"context"

	"lashd/rpc/protocol"
)

// recall has the plugins run that ran last, from their copies, whatever their directories hold by now. What else there is, the
// next look finds.
func (s *set) recall(ctx context.Context) {
	s.entries, _ = s.arrange(s.list())
	for _, e := range s.entries {
		e.recall(ctx)
	}
}

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
		l.config.Log.Warn("what ran last of a plugin is not there any more", "plugin", last.Name, "error", err)
		return
	}
	u, err := l.assemble(c, e, last.Known)
	if err != nil {
		c.Close()
		l.config.Log.Warn("what ran last of a plugin cannot run any more", "plugin", last.Name, "error", err)
		return
	}
	e.next, e.sign = u, last.Signature
	e.found.Status, e.found.Problems = protocol.PluginLoaded, shown(u.manifest.Warnings)
	l.wake(ctx, u)
}

// wake starts what of a plugin is to run before anybody needs it.
func (l *Loader) wake(ctx context.Context, u *unit) {
	l.beside("start a plugin", func() {
		if err := u.show(ctx, true); err != nil {
			l.config.Log.Warn("a plugin does not start", "plugin", u.name(), "error", err)
		}
	})
}
