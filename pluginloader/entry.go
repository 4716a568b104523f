package pluginloader

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
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

// nameOf is what a plugin is called; empty: nobody knows.
func nameOf(p *manifest.Plugin) string {
	if p == nil {
		return ""
	}
	return p.Name
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
