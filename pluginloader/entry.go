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
	"lashd/pluginloader/layout"
	"lashd/pluginloader/manifest"
	"lashd/pluginloader/mcp"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
)

// entry is a directory with a plugin. It compares two units: unit is in use, next is wanted. They
// differ while next conflicts with other plugins.
//
// Only the loader's goroutine uses an entry, except for seen and shown, which Loader.mu protects.
type entry struct {
	set           *set
	dir           string                  // absolute; links are not resolved
	only          layout.Selection        // the part of dir that belongs to the plugin; nil: all
	missing       time.Time               // since when the directory is missing; zero: it exists
	sign          string                  // signature at the last scan; empty: scan it
	asked         int                     // number of requests to scan it again
	answered      int                     // value of asked at the last finished scan; -1: none
	unit          *unit                   // in use; nil: none
	next          *unit                   // to be used as soon as it works together with the others
	found         protocol.PluginInfo     // result of the last scan
	rules         []protocol.ApprovalRule // permissions that hold although the last scan found mistakes
	blamed        error                   // why next is not in use; nil: it is
	info          protocol.PluginInfo     // found, with what became of it
	lastAnnounced protocol.PluginInfo     // the last info that clients got
	log           *child.Log              // of everything that ran from the directory

	// Loader.mu protects these copies for other goroutines. They change together with the host.
	seen  protocol.PluginInfo
	shown *unit                   // unit
	ruled []protocol.ApprovalRule // rules
}

// entry returns a new entry for a directory.
func (s *set) entry(dir string) *entry {
	e := &entry{set: s, dir: dir, answered: -1, log: child.NewLog(s.loader.config.Log.With("dir", dir))}
	name := filepath.Base(dir)
	if dir == s.layout {
		name, e.only = s.layoutParts()
	}
	e.found = protocol.PluginInfo{Name: name, Scope: s.scope, Dir: dir}
	e.info = e.found
	return e
}

// want makes the entry use u as soon as it works together with the others.
func (e *entry) want(u *unit) {
	if e.next != nil && e.next != e.unit && e.next != u {
		e.set.loader.let(e.next)
	}
	e.next = u
}

// holds reports whether the entry uses or wants a unit.
func (e *entry) holds(u *unit) bool { return u == e.unit || u == e.next }

// mayRun reports whether contents of the directory may run according to the user's decisions up to
// now.
func (e *entry) mayRun(d protocol.Digest) bool {
	return !e.set.loader.facts.disabled(e.dir) && e.allowed(d)
}

// ask requests a scan of the directory and makes the result of a scan in progress obsolete.
func (e *entry) ask() {
	e.sign = ""
	e.asked++
}

// nameOf returns the plugin's name; empty: unknown.
func nameOf(p *manifest.Plugin) string {
	if p == nil {
		return ""
	}
	return p.Name
}

// finder returns a finder for files that the set's plugins name outside their directories.
func (s *set) finder() manifest.Finder {
	return s.loader.copies.Finder(s.cwd, s.loader.programs.Finder(exec.LookPath))
}

// inspect reads the directory for a request of the user, without the limits for unapproved plugins.
func (e *entry) inspect(ctx context.Context) (*manifest.Plugin, protocol.Digest, []protocol.PluginProblem) {
	if err := e.set.contained(e.dir); err != nil {
		return nil, "", problemsOf(err)
	}
	p, digest, problems, _ := look{entry: e}.inspect(ctx)
	return p, digest, problems
}

// place returns the directory with links resolved.
func (e *entry) place() string {
	if real, err := pathresolve.Existing(e.dir); err == nil {
		return real
	}
	return e.dir
}

// lastWordsAre starts the problem that contains a program's last output. note recognizes it by
// that.
const lastWordsAre = "its last lines were:"

// lastLines is how many lines of a program that did not start are shown with the reason.
const lastLines = 8

// lastWords returns what a program wrote since a time, as a problem, without lashd's own notes.
// That usually explains why it did not start.
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

// loaded returns the finding for a unit that can run.
func loaded(u *unit) *finding {
	return &finding{unit: u, status: protocol.PluginLoaded, name: u.name(), problems: shown(u.manifest.Warnings)}
}

// bring builds a unit from a copy and starts what has to prove that it works. Contents that ran
// before, and are not needed at once, need no proof, so a restart of lashd does not start every
// plugin. bring takes over the copy, also after an error.
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

// show starts the plugin's programs, as far as they have to prove that they work. known means that
// the same contents ran before.
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

// wrong returns the finding for contents that cannot be loaded. Messages may quote output of the
// program, so the secrets in them are replaced.
func (e *entry) wrong(name string, err error) *finding {
	f := &finding{status: protocol.PluginFailed, problems: problemsOf(err), name: name}
	for i := range f.problems {
		f.problems[i].Message = e.log.Redact(f.problems[i].Message)
	}
	return f
}

// problemsOf converts an error to problems for clients.
func problemsOf(err error) []protocol.PluginProblem {
	if all, ok := errors.AsType[manifest.Problems](err); ok {
		return shown(all)
	}
	if e, ok := errors.AsType[*process.Error](err); ok {
		return []protocol.PluginProblem{{Message: e.Error()}}
	}
	return []protocol.PluginProblem{{Message: err.Error()}}
}

// shown converts problems of a manifest.
func shown(problems manifest.Problems) (all []protocol.PluginProblem) {
	for _, p := range problems {
		all = append(all, protocol.PluginProblem{File: p.File, Line: p.Line, Column: p.Column, Message: p.Message, Warning: p.Warning})
	}
	return all
}
