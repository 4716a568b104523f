package pluginloader

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"

	"lashd/engine/plugin"
)

// settle decides which units the entries have, and makes the host of them, after those that are fixed. All that is wanted is
// tried at once, then all but one change, then as much of it as goes together, one after the other. What does not is tried again
// each time: what is in its way may be gone by then.
func (s *set) settle(ctx context.Context, fixed []*unit) *plugin.Host {
	host, err := s.loader.compose(ctx, s.wanted(fixed, nil))
	if err == nil {
		s.adoptAll(nil)
		return host
	}
	for _, e := range slices.Backward(s.entries) {
		if e.next == e.unit {
			continue
		}
		if host, without := s.loader.compose(ctx, s.wanted(fixed, e)); without == nil {
			s.adoptAll(e)
			e.blame(err)
			return host
		}
	}
	return s.settleEach(ctx, fixed)
}

// wanted is what is to be in use, but for one entry what is.
func (s *set) wanted(fixed []*unit, but *entry) []*unit {
	units := slices.Clone(fixed)
	for _, e := range s.entries {
		if e == but {
			units = append(units, some(e.unit)...)
		} else {
			units = append(units, some(e.next)...)
		}
	}
	return units
}

func (s *set) adoptAll(but *entry) {
	for _, e := range s.entries {
		if e != but {
			e.adopt(e.next)
		}
	}
}

// settleEach tries what is wanted one after the other.
func (s *set) settleEach(ctx context.Context, fixed []*unit) *plugin.Host {
	host, err := s.loader.compose(ctx, s.instead(fixed, nil))
	if err != nil {
		host = s.reduce(ctx, fixed)
	}
	for _, e := range s.entries {
		if e.next == e.unit {
			e.adopt(e.next)
			continue
		}
		if with, err := s.loader.compose(ctx, s.instead(fixed, e)); err != nil {
			e.blame(err)
		} else {
			host = with
			e.adopt(e.next)
		}
	}
	return host
}

// reduce takes out what does not go together with what comes before it.
func (s *set) reduce(ctx context.Context, fixed []*unit) *plugin.Host {
	units := slices.Clone(fixed)
	host, err := s.loader.compose(ctx, units)
	if err != nil {
		s.loader.config.Log.Error("plugins that went together do not any more", "error", err)
		host = cmp.Or(s.loader.user.host, s.loader.config.Base)
	}
	for _, e := range s.entries {
		with, err := s.loader.compose(ctx, append(slices.Clone(units), some(e.unit)...))
		if err != nil {
			e.standBack()
			continue
		}
		host, units = with, append(units, some(e.unit)...)
	}
	return host
}

// instead is what is in use, with what an entry is to be.
func (s *set) instead(fixed []*unit, changed *entry) []*unit {
	units := slices.Clone(fixed)
	for _, e := range s.entries {
		if e == changed {
			units = append(units, some(e.next)...)
		} else {
			units = append(units, some(e.unit)...)
		}
	}
	return units
}

func some(u *unit) []*unit {
	if u == nil {
		return nil
	}
	return []*unit{u}
}

// adopt has the entry use a unit that it wants, or none.
func (e *entry) adopt(u *unit) {
	if e.unit != nil && e.unit != u {
		e.set.loader.let(e.unit)
	}
	e.unit, e.blamed = u, nil
}

// drop has the entry use nothing, and want nothing.
func (e *entry) drop() {
	e.want(nil)
	e.adopt(nil)
}

// standBack takes what is in use out of it, until it goes together with the others again or something else is wanted.
func (e *entry) standBack() {
	if e.unit != e.next {
		e.set.loader.let(e.unit)
	}
	e.unit = nil
}

// blame takes down why what is wanted is not in use.
func (e *entry) blame(err error) {
	if e.blamed == nil || e.blamed.Error() != err.Error() {
		e.log.Note(slog.LevelError, "lashd: "+err.Error())
	}
	e.blamed = err
}

// replaces tells whether a plugin may take the place of one that ships with lashd: if it is the user's, and the user says so.
func (u *unit) replaces(names []string) bool { return u.own && slices.Contains(names, u.name()) }

// compose makes the host of plugins, if a session can be opened with them.
func (l *Loader) compose(ctx context.Context, units []*unit) (*plugin.Host, error) {
	return contain(l.config.Log, "open a session with the plugins", func() (*plugin.Host, error) { return l.tryOut(ctx, units) })
}

func (l *Loader) tryOut(ctx context.Context, units []*unit) (*plugin.Host, error) {
	var factories []plugin.Factory
	var replaced []string
	names := append(l.Drivers(), l.config.Base.IDs()...)
	for _, u := range units {
		switch {
		case u.replaces(l.config.Replace) && !slices.Contains(replaced, u.name()):
			replaced = append(replaced, u.name())
		case u.own && slices.Contains(l.config.Base.IDs(), u.name()) && !slices.Contains(replaced, u.name()):
			return nil, fmt.Errorf("%q is the name of a built-in plugin; rename this plugin, or replace the built-in one with replace = [%q] in config.toml", u.name(), u.name())
		case slices.Contains(names, u.name()):
			return nil, fmt.Errorf("another plugin has the name %q; change the name in plugin.json", u.name())
		}
		names, factories = append(names, u.name()), append(factories, u.factory)
	}
	host, err := l.config.Base.With(factories, replaced...)
	if err != nil {
		return nil, err
	}
	try, err := host.Isolated().Open(ctx, l.config.Driver, nil, plugin.BuildContext{Cwd: l.config.Home, StateDir: l.config.Home})
	if err != nil {
		return nil, err
	}
	return host, try.Close()
}
