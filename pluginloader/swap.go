package pluginloader

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

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
		units = append(units, some(e.unit)...)
		e.assess()
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

// assess says how the entry is, by what was found and by what came of it.
func (e *entry) assess() {
	e.info = e.found
	if e.blamed != nil {
		e.info.Status, e.info.Problems = protocol.PluginFailed, append(problemsOf(e.blamed), e.found.Problems...)
	}
	if e.unit == nil {
		return
	}
	switch e.info.Status {
	case protocol.PluginFailed:
		e.info.Status = protocol.PluginDegraded
	case protocol.PluginUntrusted:
		e.info.Status = protocol.PluginModified
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
	s.units, s.host, s.number, l.hosts[host] = units, host, l.generation, units
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
		l.mu.Lock()
		delete(l.hosts, host)
		l.mu.Unlock()
		l.let(units...)
	})
}

// having are the hosts with what is from a directory.
func (l *Loader) having(dir string) (all []*plugin.Host) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for host, units := range l.hosts {
		if slices.ContainsFunc(units, func(u *unit) bool { return u.dir == dir }) {
			all = append(all, host)
		}
	}
	return all
}

// revoke has all sessions let go of hosts that are not the newest any more, as soon as nobody works with them.
func (l *Loader) revoke(life context.Context, hosts []*plugin.Host) {
	for _, h := range hosts {
		h.Revoke()
	}
	l.building.Go(func() {
		for _, h := range hosts {
			for unused := h.Retire(); !closed(unused); {
				l.config.Revoked(life)
				select {
				case <-unused:
				case <-time.After(revokeDelay):
				case <-l.over:
					return
				}
			}
		}
	})
}

// revokeDelay is after what time sessions are asked again that were at work.
const revokeDelay = time.Second

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

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
	var factories []plugin.Factory
	var replaced []string
	names := append(l.Drivers(), l.config.Base.IDs()...)
	for _, u := range units {
		switch {
		case u.replaces(l.config.Replace) && !slices.Contains(replaced, u.name()):
			replaced = append(replaced, u.name())
		case u.own && slices.Contains(l.config.Base.IDs(), u.name()) && !slices.Contains(replaced, u.name()):
			return nil, fmt.Errorf("%q ships with lashd; give this plugin another name, or have it take its place: replace = [%q] in config.toml", u.name(), u.name())
		case slices.Contains(names, u.name()):
			return nil, fmt.Errorf("there is a plugin of the name %q already; give this one another in plugin.json", u.name())
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
		if !there || was.Digest != now.Digest || was.Signature != now.Signature || !reflect.DeepEqual(was.Known, now.Known) {
			news = append(news, fact(factGood, e.dir, now))
		}
	}
	if err := l.facts.store(ctx, news...); err != nil {
		l.config.Log.Error("which plugins run is not stored", "error", err)
	}
}

// forget lets go of a directory that is gone.
func (l *Loader) forget(ctx context.Context, e *entry) {
	e.drop()
	if _, there := l.facts.ranLast(e.dir); there {
		if err := l.facts.store(ctx, fact(factGood, e.dir, nil)); err != nil {
			l.config.Log.Error("that a plugin is gone is not stored", "dir", e.dir, "error", err)
		}
	}
	info := protocol.PluginInfo{Name: e.info.Name, Scope: e.info.Scope, Dir: e.dir}
	l.config.News(protocol.ServerEvent{Type: protocol.ServerPluginChanged, Plugin: &info})
}
