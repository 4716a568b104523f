package pluginloader

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lashd/internal/pathresolve"
	"lashd/pluginloader/child"
	"lashd/pluginloader/content"
	"lashd/pluginloader/manifest"
	"lashd/pluginloader/mcp"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
)

// entry is a directory that holds a plugin. It belongs to the loader's goroutine.
type entry struct {
	set      *set
	dir      string    // absolute; links in it are not resolved
	missing  time.Time // since when it is not there; zero: it is
	sign     string    // of what was looked at last; empty: it has to be looked at
	asked    int       // how often somebody has asked for another look
	answered int       // up to which of these it was looked at; -1: never
	unit     *unit     // that is in use; nil: none
	next     *unit     // that is to be in use, as soon as it goes together with the others
	found    protocol.PluginInfo
	blamed   error // why next is not in use; nil: it is
	info     protocol.PluginInfo
	told     protocol.PluginInfo
	log      *child.Log // of all that ran from it

	// What follows others see, too: it is changed under the loader's mu, with the host.
	seen  protocol.PluginInfo
	shown *unit // that is in use
}

func (s *set) entry(dir string) *entry {
	e := &entry{set: s, dir: dir, answered: -1, log: child.NewLog(s.loader.config.Log.With("dir", dir))}
	e.found = protocol.PluginInfo{Name: filepath.Base(dir), Scope: s.scope, Dir: dir}
	e.info = e.found
	return e
}

// want has the entry use a unit as soon as that goes together with the others.
func (e *entry) want(u *unit) {
	if e.next != nil && e.next != e.unit && e.next != u {
		e.set.loader.let(e.next)
	}
	e.next = u
}

// holds tells whether a unit is the entry's.
func (e *entry) holds(u *unit) bool { return u == e.unit || u == e.next }

// mayRun tells whether a content of the directory may run, as persons have decided by now.
func (e *entry) mayRun(d protocol.Digest) bool {
	return !e.set.loader.facts.disabled(e.dir) && e.allowed(d)
}

// ask has the directory looked at anew, whatever a look comes to that is going on.
func (e *entry) ask() {
	e.sign = ""
	e.asked++
}

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

// nameOf is what a plugin is called; empty: nobody knows.
func nameOf(p *manifest.Plugin) string {
	if p == nil {
		return ""
	}
	return p.Name
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

// finder finds what plugins of the set name outside their directories.
func (s *set) finder() manifest.Finder {
	return s.loader.copies.Finder(s.cwd, s.loader.programs.Finder(exec.LookPath))
}

// inspect reads what the directory of the entry holds, as a person has asked for it.
func (e *entry) inspect(ctx context.Context) (*manifest.Plugin, protocol.Digest, []protocol.PluginProblem) {
	if err := e.set.contained(e.dir); err != nil {
		return nil, "", problemsOf(err)
	}
	p, digest, problems, _ := look{entry: e}.inspect(ctx)
	return p, digest, problems
}

// place is where a directory is, after all links.
func (e *entry) place() string {
	if real, err := pathresolve.Existing(e.dir); err == nil {
		return real
	}
	return e.dir
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

// lastWordsAre begins the problem that shows what a program has said last.
const lastWordsAre = "its last lines were:"

// lastLines is how many lines of a program that did not start are shown with the reason.
const lastLines = 8

// lastWords are what a program has said last, as a problem: usually why it did not start.
func (e *entry) lastWords(since time.Time) []protocol.PluginProblem {
	var said []string
	for _, line := range e.log.Newest() {
		if !line.At.Before(since) && !strings.HasPrefix(line.Text, "lashd: ") {
			said = append(said, line.Text)
		}
	}
	if len(said) == 0 {
		return nil
	}
	text := lastWordsAre + "\n" + strings.Join(said[max(0, len(said)-lastLines):], "\n")
	return []protocol.PluginProblem{{Message: text}}
}

// loaded is a finding of a unit that can run.
func loaded(u *unit) *finding {
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
	f := &finding{status: protocol.PluginFailed, problems: problemsOf(err), name: name}
	for i := range f.problems {
		f.problems[i].Message = e.log.Redact(f.problems[i].Message)
	}
	return f
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
