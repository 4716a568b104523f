package pluginloader

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"lashd/pluginloader/child"
	"lashd/pluginloader/content"
	"lashd/pluginloader/manifest"
	"lashd/pluginloader/mcp"
	"lashd/pluginloader/process"
	"lashd/pluginloader/watch"
	"lashd/rpc/protocol"
)

// entry is a directory that holds a plugin. It belongs to the loader's goroutine.
type entry struct {
	set  *set
	dir  string // absolute; links in it are not resolved
	sign string // of what was looked at last; empty: it has to be looked at
	unit *unit  // that is in use; nil: none
	next *unit  // that is to be; the same, if nothing changes
	info protocol.PluginInfo
	told protocol.PluginInfo
	log  *child.Log // of all that ran from it

	// What follows others see, too: it is changed under the loader's mu, with the host.
	seen  protocol.PluginInfo
	shown *unit // that is in use
}

func (s *set) entry(dir string) *entry {
	e := &entry{set: s, dir: dir, log: child.NewLog(s.loader.config.Log.With("dir", dir))}
	e.info = protocol.PluginInfo{Name: filepath.Base(dir), Scope: s.scope, Dir: dir}
	return e
}

// finding is what a look at a directory came to.
type finding struct {
	sign     string
	unit     *unit // that should be in use, which may be the one that is; nil: none
	status   protocol.PluginStatus
	found    protocol.Digest
	problems []protocol.PluginProblem
	name     string
	fatal    bool // nothing else of the directory may run, either
}

// examine looks what a directory holds by now. It returns nothing if that is what was looked at before.
func (e *entry) examine(ctx context.Context) *finding {
	sign, err := watch.Signature(e.dir)
	var f *finding
	switch {
	case err != nil:
		f = e.wrong("", err)
	case sign == e.sign:
		return nil
	case e.set.scope == protocol.ScopeUser:
		f = e.take(ctx, "")
	default:
		f = e.takeTrusted(ctx)
	}
	f.sign = sign
	e.forbid(f)
	return f
}

// forbid ends what runs if a person wants that, whatever the directory holds.
func (e *entry) forbid(f *finding) {
	if e.set.loader.facts.disabled(e.dir) {
		f.status, f.fatal = protocol.PluginDisabled, true
	} else if f.unit == nil && e.unit != nil && e.withdrawn(e.unit.copy.Digest) {
		f.fatal = true
	}
}

// takeTrusted takes what is in a directory of a workspace, if a person has approved it.
func (e *entry) takeTrusted(ctx context.Context) *finding {
	p, digest, problems := inspect(ctx, e.dir)
	name := ""
	if p != nil {
		name = p.Name
	}
	switch {
	case digest == "":
		return &finding{status: protocol.PluginFailed, problems: problems, name: name}
	case !e.allowed(digest):
		return &finding{status: protocol.PluginUntrusted, found: digest, problems: problems, name: name}
	}
	return e.take(ctx, digest)
}

// inspect reads what a directory holds, without taking anything of it. There is no digest of what cannot be loaded.
func inspect(ctx context.Context, dir string) (p *manifest.Plugin, digest protocol.Digest, problems []protocol.PluginProblem) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, "", problemsOf(err)
	}
	defer root.Close()
	if p, err = manifest.Load(root); err != nil {
		return nil, "", problemsOf(err)
	}
	reach, err := p.Beyond(ctx, exec.LookPath)
	if err == nil {
		digest, err = manifest.Digest(ctx, root, reach)
	}
	if err != nil {
		return p, "", problemsOf(err)
	}
	return p, digest, shown(p.Warnings)
}

// place is where a directory is, after all links: what a person has approved there is approved nowhere else.
func (e *entry) place() string {
	if real, err := filepath.EvalSymlinks(e.dir); err == nil {
		return real
	}
	return e.dir
}

// take makes a unit of what a directory holds. If it is wanted of one content only, another one is not taken.
func (e *entry) take(ctx context.Context, wanted protocol.Digest) *finding {
	l := e.set.loader
	c, err := l.copies.Put(ctx, e.dir)
	if err != nil {
		return e.wrong("", err)
	}
	switch {
	case wanted != "" && c.Digest != wanted:
		c.Close()
		return &finding{status: protocol.PluginUntrusted, found: c.Digest, name: c.Plugin.Name}
	case l.facts.disabled(e.dir):
		defer c.Close()
		return &finding{found: c.Digest, name: c.Plugin.Name}
	case e.unit != nil && e.unit.copy.Digest == c.Digest:
		c.Close()
		return &finding{unit: e.unit, status: protocol.PluginLoaded, name: e.unit.name(), problems: shown(e.unit.manifest.Warnings)}
	}
	last, _ := l.facts.ranLast(e.dir)
	u, err := e.bring(ctx, c, last)
	if err != nil {
		return e.wrong(c.Plugin.Name, err)
	}
	return &finding{unit: u, status: protocol.PluginLoaded, name: u.name(), problems: shown(u.manifest.Warnings)}
}

// bring makes a unit of a copy, and has it show that it can run. One that has run before, and is not needed at once, need not
// show that again.
func (e *entry) bring(ctx context.Context, c content.Copy, last good) (*unit, error) {
	known, l := map[string]mcp.List{}, e.set.loader
	if last.Digest == c.Digest {
		known = last.Known
	}
	u, err := l.assemble(c, e, known)
	if err != nil {
		c.Close()
		return nil, err
	}
	if err := u.show(ctx, last.Digest == c.Digest); err != nil {
		l.let(u)
		return nil, err
	}
	return u, nil
}

// show has what the plugin consists of start, as far as that has to be seen.
func (u *unit) show(ctx context.Context, known bool) error {
	if u.servers != nil {
		u.servers.Start(ctx)
	}
	switch {
	case u.process == nil:
		return nil
	case u.manifest.Process.Startup == manifest.StartEager:
		return u.process.Start(ctx)
	case known:
		return nil
	}
	return u.process.Try(ctx)
}

// wrong is a finding of what cannot be loaded.
func (e *entry) wrong(name string, err error) *finding {
	return &finding{status: protocol.PluginFailed, problems: problemsOf(err), name: name}
}

func problemsOf(err error) []protocol.PluginProblem {
	if all, ok := errors.AsType[manifest.Problems](err); ok {
		return shown(all)
	}
	if e, ok := errors.AsType[*process.Error](err); ok {
		return []protocol.PluginProblem{{Message: e.Error()}}
	}
	return []protocol.PluginProblem{{Message: err.Error()}}
}

func shown(problems manifest.Problems) (all []protocol.PluginProblem) {
	for _, p := range problems {
		all = append(all, protocol.PluginProblem{File: p.File, Line: p.Line, Column: p.Column, Message: p.Message, Warning: p.Warning})
	}
	return all
}
