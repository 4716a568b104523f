package pluginloader

import (
	"context"
	"log/slog"
	"slices"

	"lashd/engine/plugin"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// swap puts the plugins that were found in the place of those that are in use, as one generation. Of those that do not go
// together with the others, what was in use before stays.
func (s *set) swap(ctx context.Context) {
	fixed := s.fixed()
	host := s.settle(ctx, fixed)
	units := slices.Clone(fixed)
	for _, e := range s.entries {
		if e.unit != nil {
			units = append(units, e.unit)
		}
	}
	if s.host == nil || !slices.Equal(units, s.units) {
		s.publish(units, host)
	}
	s.show()
	s.loader.remember(ctx, s)
	for _, e := range s.entries {
		s.loader.tell(e)
	}
}

// show has others see the entries as they are now.
func (s *set) show() {
	s.loader.mu.Lock()
	defer s.loader.mu.Unlock()
	s.listed = s.entries
	for _, e := range s.entries {
		e.seen, e.shown = e.info, e.unit
	}
}

// fixed are the plugins before those of the set.
func (s *set) fixed() []*unit {
	if s.scope == protocol.ScopeUser {
		return nil
	}
	return s.loader.user.units
}

// publish gives sessions other plugins from now on. Those before are let go once no session has them any more.
func (s *set) publish(units []*unit, host *plugin.Host) {
	l := s.loader
	for _, u := range units {
		u.hold()
	}
	l.mu.Lock()
	before, old := s.units, s.host
	l.generation++
	s.units, s.host, s.number = units, host, l.generation
	for _, u := range units {
		if u.number == 0 {
			u.number = l.generation
		}
	}
	l.mu.Unlock()
	if old != nil {
		l.retire(old, before)
	}
}

// retire lets units go once no session has them any more.
func (l *Loader) retire(host *plugin.Host, units []*unit) {
	unused := host.Retire()
	l.building.Go(func() {
		<-unused
		l.let(units...)
	})
}

// settle decides which units the entries have, and makes the host of them, after those that are fixed. All that is new is tried
// at once. If that does not go together, as much of it as does, one after the other.
func (s *set) settle(ctx context.Context, fixed []*unit) *plugin.Host {
	wanted, present := slices.Clone(fixed), slices.Clone(fixed)
	for _, e := range s.entries {
		wanted, present = append(wanted, some(e.next)...), append(present, some(e.unit)...)
	}
	if host, err := s.loader.compose(ctx, wanted); err == nil {
		for _, e := range s.entries {
			e.adopt(e.next)
		}
		return host
	}
	host, err := s.loader.compose(ctx, present)
	if err != nil {
		host = s.reduce(ctx, fixed)
	}
	for _, e := range s.entries {
		if e.next == e.unit {
			continue
		}
		if with, err := s.loader.compose(ctx, s.instead(fixed, e)); err != nil {
			e.reject(err)
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
		host = s.loader.config.Base
	}
	for _, e := range s.entries {
		with, err := s.loader.compose(ctx, append(slices.Clone(units), some(e.unit)...))
		if err != nil {
			was := e.next
			e.next = nil
			e.adopt(nil)
			e.next = was
			e.blame(err)
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

// adopt has the entry use a unit.
func (e *entry) adopt(u *unit) {
	if e.unit != nil && e.unit != u {
		e.set.loader.let(e.unit)
	}
	e.unit = u
}

// reject goes on with what is in use, because what was found does not go together with other plugins.
func (e *entry) reject(err error) {
	if e.next != nil {
		e.set.loader.let(e.next)
	}
	e.next = e.unit
	e.blame(err)
}

// blame shows why the entry is not as it should be.
func (e *entry) blame(err error) {
	e.info.Status, e.info.Problems = protocol.PluginFailed, append(problemsOf(err), e.info.Problems...)
	if e.unit != nil {
		e.info.Status = protocol.PluginDegraded
	}
	e.log.Note(slog.LevelError, "lashd: "+err.Error())
}

// compose makes the host of plugins, if a session can be opened with them.
func (l *Loader) compose(ctx context.Context, units []*unit) (*plugin.Host, error) {
	var factories []plugin.Factory
	for _, u := range units {
		factories = append(factories, u.factory)
	}
	host, err := l.config.Base.With(factories)
	if err != nil {
		return nil, err
	}
	try, err := host.Isolated().Open(ctx, l.config.Driver, nil, plugin.BuildContext{Cwd: l.config.Home, StateDir: l.config.Home})
	if err != nil {
		return nil, err
	}
	return host, try.Close()
}

// remember makes durable which contents run, so that they do again after a restart, whatever their directories hold by then.
func (l *Loader) remember(ctx context.Context, s *set) {
	var news []persistence.PluginFact
	for _, e := range s.entries {
		if e.unit == nil {
			continue
		}
		was, there := l.facts.ranLast(e.dir)
		now := good{Name: e.unit.name(), Digest: e.unit.copy.Digest, Signature: was.Signature}
		if e.info.Status == protocol.PluginLoaded {
			now.Signature = e.sign
		}
		if e.unit.servers != nil {
			now.Known = e.unit.servers.Known()
		}
		if !there || was.Digest != now.Digest || was.Signature != now.Signature || len(was.Known) != len(now.Known) {
			news = append(news, fact(factGood, e.dir, now))
		}
	}
	if err := l.facts.store(ctx, news...); err != nil {
		l.config.Log.Error("which plugins run is not stored", "error", err)
	}
}

// forget lets go of a directory that is gone.
func (l *Loader) forget(ctx context.Context, e *entry) {
	e.adopt(nil)
	if _, there := l.facts.ranLast(e.dir); there {
		if err := l.facts.store(ctx, fact(factGood, e.dir, nil)); err != nil {
			l.config.Log.Error("that a plugin is gone is not stored", "dir", e.dir, "error", err)
		}
	}
	info := protocol.PluginInfo{Name: e.info.Name, Scope: e.info.Scope, Dir: e.dir}
	l.config.News(protocol.ServerEvent{Type: protocol.ServerPluginChanged, Plugin: &info})
}
