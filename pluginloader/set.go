package pluginloader

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// set is the plugins of the user or of one workspace, and the host for sessions with them. At most
// one scan of a set runs at a time; requests during a scan lead to one more. Fields without a note
// belong to the loader's goroutine.
type set struct {
	loader *Loader
	scope  protocol.PluginScope
	cwd    string        // the workspace; empty: the user's set
	roots  []string      // directories whose subdirectories are plugins
	layout string        // directory with a layout of other agents, which is one more plugin; empty: none
	stop   func()        // stops watching; nil: Run does that
	ready  chan struct{} // closed after the first scan

	refused    error     // why the roots are not read; nil: they are
	resting    time.Time // time until which unapproved plugins are not scanned, except on request
	incomplete bool      // the last scan skipped some of them

	looking context.CancelFunc // cancels the scan in progress; nil: none
	again   bool               // scan again after the one in progress
	then    []func()           // called after the next scan that has not started yet

	entries      []*entry // in the order in which they register
	listed       []*entry // entries for other goroutines; under Loader.mu
	shownRefusal error    // refused for other goroutines; under Loader.mu
	units        []*unit  // the host's units
	host         *plugin.Host
	number       int64 // generation of the host
}

// has reports whether one of the roots belongs to the set.
func (s *set) has(roots []string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return slices.Contains(s.roots, r) || s.inLayout(r) })
}

// at returns the entry of a directory; nil: none.
func (s *set) at(dir string) *entry {
	for _, e := range s.entries {
		if e.dir == dir {
			return e
		}
	}
	return nil
}

// look scans the directories of a set in the background and applies the changes. If a scan is in
// progress, another one follows. Each then function is called on the loader's goroutine after a
// scan that started after this call.
func (l *Loader) look(life context.Context, s *set, then ...func()) {
	s.then = append(s.then, then...)
	if s.looking != nil {
		s.again = true
		return
	}
	ctx, end := context.WithCancel(life)
	entries, gone := s.arrange(s.list())
	looks := s.looks(entries)
	then = s.then
	s.looking, s.again, s.then = end, false, nil
	l.inBackground("look at plugins", func() {
		defer end()
		findings, took := findAll(ctx, looks, cmp.Or(l.config.Scan, maxUnapprovedTime))
		l.post(func(life context.Context) {
			s.looking = nil
			s.rest(took)
			if err := l.contained("put plugins in their place", func() { s.found(life, entries, gone, findings) }); err != nil {
				s.fail(entries, findings, err)
			}
			for _, f := range then {
				f()
			}
			if s.again {
				l.look(life, s)
			}
		}, func() { discard(l, findings) })
	})
}

// looks returns the scans for entries. It skips unapproved plugins that rest, and remembers that in
// incomplete.
func (s *set) looks(entries []*entry) []look {
	s.incomplete = false
	looks := make([]look, len(entries))
	for i, e := range entries {
		looks[i] = e.look()
		if e.bounded() && e.answered == e.asked && time.Now().Before(s.resting) {
			looks[i].later, s.incomplete = true, true
		}
	}
	return looks
}

// discard releases units that were built for findings which are not used.
func discard(l *Loader, findings []*finding) {
	for _, f := range findings {
		if f != nil && f.fresh {
			l.let(f.unit)
		}
	}
}

// found applies the findings of a scan, removes entries whose directories are gone, and publishes a
// change.
func (s *set) found(ctx context.Context, entries, gone []*entry, findings []*finding) {
	changed := len(gone) > 0
	for i, f := range findings {
		if f != nil {
			changed = true
			entries[i].note(f)
		}
	}
	s.entries = entries
	for _, e := range gone {
		s.loader.forget(ctx, e)
	}
	if changed {
		s.loader.changed(ctx, s)
	}
}

// note applies one finding to its entry. If the user has made a decision during the scan, the
// finding is dropped and the directory is scanned again. New problems go to the plugin's log.
func (e *entry) note(f *finding) {
	if e.asked != f.asked || f.unit != nil && !e.holds(f.unit) && !(f.fresh && e.mayRun(f.unit.copy.Digest)) {
		discard(e.set.loader, []*finding{f})
		e.sign, e.set.again = "", true
		return
	}
	e.sign, e.answered, e.rules = f.sign, f.asked, f.rules
	e.found = protocol.PluginInfo{
		Name: cmp.Or(f.name, e.found.Name), Scope: e.set.scope, Dir: e.dir, Status: f.status, Found: f.found, Problems: f.problems,
	}
	switch {
	case f.unit != nil:
		e.want(f.unit)
	case f.fatal:
		e.drop()
	}
	for _, p := range f.problems {
		if !p.Warning && !strings.HasPrefix(p.Message, lastWordsAre) { // the last output is in the log already
			e.log.Note(slog.LevelError, "lashd: "+p.String())
		}
	}
}

// due returns when the set has to be scanned without a change of files; zero: never. That is when a
// missing directory counts as removed, or when the pause of unapproved plugins ends.
func (s *set) due() (at time.Time) {
	for _, e := range s.entries {
		if gone := e.missing.Add(leaving); !e.missing.IsZero() && (at.IsZero() || gone.Before(at)) {
			at = gone
		}
	}
	if s.incomplete && (at.IsZero() || s.resting.Before(at)) {
		at = s.resting
	}
	return at
}
