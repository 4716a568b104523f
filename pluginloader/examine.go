package pluginloader

import (
	"cmp"
	"context"
	"errors"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
	"os"
	"slices"
	"time"
)

// look is one scan of a directory. Scans run on goroutines of their own, beside the loader's. The
// fields of the entry may change during a scan, so a look has copies of them, and note compares
// asked afterwards.
type look struct {
	*entry            // of which only what never changes is used
	sign   string     // entry.sign at the start
	asked  int        // entry.asked at the start
	there  bool       // the directory exists
	later  bool       // skip the directory in this scan
	holds  []*unit    // units that the entry uses or wants
	left   *allowance // limits for unapproved plugins; nil: the plugin was approved once or is the user's
}

// look returns a scan of the entry as it is now.
func (e *entry) look() look {
	return look{entry: e, sign: e.sign, asked: e.asked, there: e.missing.IsZero(), holds: append(unitList(e.unit), unitList(e.next)...)}
}

// finding is the result of a scan. set.found applies it on the loader's goroutine, unless the user
// has made a decision about the plugin in between.
type finding struct {
	sign     string
	asked    int
	unit     *unit // to be used; may be the one in use; nil: none
	fresh    bool  // unit was built for this finding
	status   protocol.PluginStatus
	found    protocol.Digest // digest of the contents in the directory
	problems []protocol.PluginProblem
	name     string
	rules    []protocol.ApprovalRule // permissions of a layout of the user that cannot be loaded
	fatal    bool                    // nothing of the directory may run, not even the unit in use
}

// examine scans the directory. It returns nil if nothing has changed since the last scan. It
// decides by the user's decisions first: a disabled plugin is only read, and an unapproved one is
// not copied.
func (g look) examine(ctx context.Context) *finding {
	if !g.there || g.later {
		return nil
	}
	sign, err := g.signature(ctx)
	if err == nil && sign == g.sign {
		return nil
	}
	var f *finding
	switch {
	case g.set.loader.facts.disabled(g.dir):
		f = g.off(ctx)
	case errors.Is(err, errAllowance):
		f = g.unread("", err)
	case err != nil:
		f = g.wrong("", err)
	case g.set.scope == protocol.ScopeUser:
		f = g.take(ctx, "")
	default:
		f = g.takeTrusted(ctx)
	}
	f.sign, f.asked, f.rules = sign, g.asked, g.permissions(f.status)
	f.fatal = f.fatal || slices.ContainsFunc(g.holds, func(u *unit) bool { return g.withdrawn(u.copy.Digest) })
	return f
}

// signature returns the directory's signature within the limits.
func (g look) signature(ctx context.Context) (string, error) {
	if err := cmp.Or(context.Cause(ctx), g.set.contained(g.dir)); err != nil {
		return "", err
	}
	return g.left.measure(g.dir, g.only)
}

// unread returns the finding for an unapproved plugin that exceeds the limits.
func (g look) unread(name string, err error) *finding {
	return &finding{status: protocol.PluginUntrusted, name: name, problems: []protocol.PluginProblem{{Message: err.Error(), Warning: true}}}
}

// off returns the finding for a disabled plugin.
func (g look) off(ctx context.Context) *finding {
	p, digest, problems, _ := g.inspect(ctx)
	return &finding{status: protocol.PluginDisabled, found: digest, name: nameOf(p), problems: problems, fatal: true}
}

// takeTrusted loads a plugin of a workspace if its current contents are approved. take checks the
// digest of the copy again, because the files may change between the two.
func (g look) takeTrusted(ctx context.Context) *finding {
	p, digest, problems, err := g.inspect(ctx)
	switch {
	case errors.Is(err, errAllowance):
		return g.unread(nameOf(p), err)
	case digest == "":
		return &finding{status: protocol.PluginFailed, problems: problems, name: nameOf(p)}
	case !g.allowed(digest):
		return &finding{status: protocol.PluginUntrusted, found: digest, problems: problems, name: nameOf(p)}
	}
	return g.take(ctx, digest)
}

// take copies the directory, verifies the copy and builds a unit, or reuses one with the same
// digest. If wanted is not empty and the copy has another digest, the directory changed after the
// check, and nothing is loaded.
func (g look) take(ctx context.Context, wanted protocol.Digest) *finding {
	l := g.set.loader
	c, err := l.copies.PutFrom(ctx, g.source())
	if err != nil {
		return g.wrong("", err)
	}
	if wanted != "" && c.Digest != wanted {
		c.Close()
		return &finding{status: protocol.PluginUntrusted, found: c.Digest, name: c.Plugin.Name}
	}
	for _, u := range g.holds {
		if u.copy.Digest == c.Digest {
			c.Close()
			return loaded(u)
		}
	}
	last, _ := l.facts.ranLast(g.dir)
	begin := time.Now()
	u, err := g.bring(ctx, c, last)
	if err != nil {
		f := g.wrong(c.Plugin.Name, err)
		f.problems = append(f.problems, g.lastWords(begin)...)
		return f
	}
	f := loaded(u)
	f.fresh = true
	return f
}

// inspect reads the directory without copying it. digest is empty if the contents cannot be loaded.
// err is the reason in its original form, so that callers can recognize errAllowance.
func (g look) inspect(ctx context.Context) (p *manifest.Plugin, digest protocol.Digest, problems []protocol.PluginProblem, err error) {
	root, err := os.OpenRoot(g.dir)
	if err != nil {
		return nil, "", problemsOf(err), err
	}
	defer root.Close()
	if p, err = g.load(root); err != nil {
		return nil, "", problemsOf(err), err
	}
	reach, err := p.Beyond(ctx, g.left.within(g.set.finder()))
	if err == nil {
		digest, err = manifest.DigestOnly(ctx, root, reach, g.only)
	}
	if err != nil {
		return p, "", problemsOf(err), err
	}
	return p, digest, shown(p.Warnings), nil
}
