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

// set is the plugins of the user, or of a workspace, and the host of the sessions that have them.
type set struct {
	loader *Loader
	scope  protocol.PluginScope
	cwd    string        // of a workspace
	roots  []string      // the directories whose directories are plugins
	stop   func()        // of watching them; nil: Run does that
	ready  chan struct{} // closed once its directories were looked at

	refused error     // why its roots are not read
	resting time.Time // until then nobody looks at unapproved plugins, unless asked to
	owes    bool      // a look left some of them out

	looking context.CancelFunc // of the look that is going on; nil: nobody looks
	again   bool               // another look is needed after it
	then    []func()           // to be called when a look is over that has not begun yet

	entries      []*entry // in the order in which they register; the loader's goroutine's
	listed       []*entry // likewise, as others see them: under the loader's mu
	shownRefusal error    // likewise
	units        []*unit  // that the host is made of
	host         *plugin.Host
	number       int64 // of the generation
}

// has tells whether one of the roots is the set's.
func (s *set) has(roots []string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return slices.Contains(s.roots, r) })
}

// at is the entry of a directory; nil: there is none.
func (s *set) at(dir string) *entry {
	for _, e := range s.entries {
		if e.dir == dir {
			return e
		}
	}
	return nil
}

// look has the directories of a set looked at, beside everything else, and puts what has changed in its place. Then is called
// when a look is over that began no earlier than now.
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
	l.beside("look at plugins", func() {
		defer end()
		findings, took := findAll(ctx, looks)
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

// looks are the looks at entries. Unapproved plugins rest between two of them.
func (s *set) looks(entries []*entry) []look {
	s.owes = false
	looks := make([]look, len(entries))
	for i, e := range entries {
		looks[i] = e.look()
		if e.bounded() && e.answered == e.asked && time.Now().Before(s.resting) {
			looks[i].later, s.owes = true, true
		}
	}
	return looks
}

// discard lets go of what nobody wants any more.
func discard(l *Loader, findings []*finding) {
	for _, f := range findings {
		if f != nil && f.fresh {
			l.let(f.unit)
		}
	}
}

// found takes down what a look came to.
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

// note takes down what a look at a directory came to. It counts for nothing if a person has decided otherwise meanwhile.
func (e *entry) note(f *finding) {
	if e.asked != f.asked || f.unit != nil && !e.holds(f.unit) && !(f.fresh && e.mayRun(f.unit.copy.Digest)) {
		discard(e.set.loader, []*finding{f})
		e.sign, e.set.again = "", true
		return
	}
	e.sign, e.answered = f.sign, f.asked
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
		if !p.Warning && !strings.HasPrefix(p.Message, lastWordsAre) { // the log has the last words already
			e.log.Note(slog.LevelError, "lashd: "+p.String())
		}
	}
}

// due is when somebody has to look again at what is missing; the zero time: nothing is.
func (s *set) due() (at time.Time) {
	for _, e := range s.entries {
		if gone := e.missing.Add(leaving); !e.missing.IsZero() && (at.IsZero() || gone.Before(at)) {
			at = gone
		}
	}
	if s.owes && (at.IsZero() || s.resting.Before(at)) {
		at = s.resting
	}
	return at
}
