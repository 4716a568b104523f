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

// look is what one who looks at a directory has to know of the entry.
type look struct {
	*entry // of which only what never changes is used
	sign   string
	asked  int
	there  bool
	later  bool // it is not looked at now
	holds  []*unit
	left   *allowance // nil: the place was approved once, or is the user's
}

func (e *entry) look() look {
	return look{entry: e, sign: e.sign, asked: e.asked, there: e.missing.IsZero(), holds: append(some(e.unit), some(e.next)...)}
}

// finding is what a look at a directory came to.
type finding struct {
	sign     string
	asked    int
	unit     *unit // that should be in use, which may be the one that is; nil: none
	fresh    bool  // it was made for this
	status   protocol.PluginStatus
	found    protocol.Digest
	problems []protocol.PluginProblem
	name     string
	fatal    bool // nothing else of the directory may run, either
}

// examine looks what a directory holds by now. It returns nothing if that is what was looked at before.
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
	f.sign, f.asked = sign, g.asked
	f.fatal = f.fatal || slices.ContainsFunc(g.holds, func(u *unit) bool { return g.withdrawn(u.copy.Digest) })
	return f
}

// signature stands for what is in the directory.
func (g look) signature(ctx context.Context) (string, error) {
	if err := cmp.Or(context.Cause(ctx), g.set.contained(g.dir)); err != nil {
		return "", err
	}
	return g.left.measure(g.dir)
}

// unread is a finding of a plugin that nobody has approved, and of which too much would have to be read to tell its digest.
func (g look) unread(name string, err error) *finding {
	return &finding{status: protocol.PluginUntrusted, name: name, problems: []protocol.PluginProblem{{Message: err.Error(), Warning: true}}}
}

// off is a finding of a plugin that a person has switched off.
func (g look) off(ctx context.Context) *finding {
	p, digest, problems, _ := g.inspect(ctx)
	return &finding{status: protocol.PluginDisabled, found: digest, name: nameOf(p), problems: problems, fatal: true}
}

// takeTrusted takes what is in a directory of a workspace, if a person has approved it.
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

// take makes a unit of what a directory holds. If it is wanted of one content only, another one is not taken.
func (g look) take(ctx context.Context, wanted protocol.Digest) *finding {
	l := g.set.loader
	c, err := l.copies.PutFrom(ctx, g.set.cwd, g.dir)
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

// inspect reads what a directory holds, without taking anything of it. There is no digest of what cannot be loaded.
func (g look) inspect(ctx context.Context) (p *manifest.Plugin, digest protocol.Digest, problems []protocol.PluginProblem, err error) {
	root, err := os.OpenRoot(g.dir)
	if err != nil {
		return nil, "", problemsOf(err), err
	}
	defer root.Close()
	if p, err = manifest.Load(root); err != nil {
		return nil, "", problemsOf(err), err
	}
	reach, err := p.Beyond(ctx, g.left.within(g.set.finder()))
	if err == nil {
		digest, err = manifest.Digest(ctx, root, reach)
	}
	if err != nil {
		return p, "", problemsOf(err), err
	}
	return p, digest, shown(p.Warnings), nil
}
