package pluginloader

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"lashd/engine/plugin"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// swap replaces the plugins in use by the wanted ones, as one generation. Plugins that conflict
// with others keep their last version. If nothing changed, the generation stays. swap stores which
// contents run and notifies clients. It runs on the loader's goroutine.
func (s *set) swap(ctx context.Context) {
	fixed := s.fixed()
	host := s.settle(ctx, fixed)
	units := slices.Clone(fixed)
	for _, e := range s.entries {
		e.assess(units)
		units = append(units, unitList(e.unit)...)
	}
	if s.host == nil || !slices.Equal(units, s.units) {
		s.publish(units, host)
	}
	s.show()
	s.loader.remember(ctx, s)
	for _, e := range s.entries {
		s.loader.notify(e)
	}
}

// assess computes the entry's info from the last scan and from what settle decided. before are the
// units that register before it. If an older version runs, failed becomes degraded and untrusted
// becomes modified.
func (e *entry) assess(before []*unit) {
	e.info = e.found
	if e.blamed != nil {
		e.info.Status, e.info.Problems = protocol.PluginFailed, append(problemsOf(e.blamed), e.found.Problems...)
	}
	if e.unit == nil {
		return
	}
	e.info.Problems = append(slices.Clip(e.info.Problems), e.unit.sharedServers(before)...)
	switch e.info.Status {
	case protocol.PluginFailed:
		e.info.Status = protocol.PluginDegraded
	case protocol.PluginUntrusted:
		e.info.Status = protocol.PluginModified
	}
}

// sharedServers returns a warning for each MCP server whose name a unit before also uses.
func (u *unit) sharedServers(before []*unit) (all []protocol.PluginProblem) {
	for _, name := range u.servers.Names() {
		for _, first := range before {
			if first.servers.Has(name) {
				all = append(all, protocol.PluginProblem{Warning: true, Message: fmt.Sprintf(
					"the plugin %s has an MCP server of the name %q, too, and comes first: sessions use the prompts and resources of that one, and of two tools with the same name its tool. Rename one of the servers.", first.name(), name)})
				break
			}
		}
	}
	return all
}

// show makes the current entries visible to other goroutines, together and under the lock, so that
// a client never sees half of a change.
func (s *set) show() {
	s.loader.mu.Lock()
	defer s.loader.mu.Unlock()
	s.listed, s.shownRefusal = s.entries, s.refused
	for _, e := range s.entries {
		e.seen, e.shown, e.ruled = e.info, e.unit, e.rules
	}
}

// fixed returns the units before those of the set. A workspace's plugins come after the user's,
// which therefore win conflicts.
func (s *set) fixed() []*unit {
	if s.scope == protocol.ScopeUser {
		return nil
	}
	return s.loader.user.units
}

// publish makes new sessions, and other sessions from their next turn, use the units. A running
// turn keeps its plugins. The previous units are released once no session uses them.
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

// retire releases units once no session uses their host. If none does, it releases them before it
// returns.
func (l *Loader) retire(host *plugin.Host, units []*unit) {
	unused := host.Retire()
	if closed(unused) { // at once, so that clients see the final state
		l.mu.Lock()
		delete(l.hosts, host)
		l.mu.Unlock()
		l.let(units...)
		return
	}
	l.inBackground("retire plugins", func() {
		<-unused
		l.mu.Lock()
		delete(l.hosts, host)
		l.mu.Unlock()
		l.let(units...)
		l.post(func(context.Context) { l.notifyAll() }, func() {}) // the sandbox of the remaining versions may differ
	})
}

// hostsUsing returns the hosts, current or older, with a unit of a directory.
func (l *Loader) hostsUsing(dir string) (all []*plugin.Host) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for host, units := range l.hosts {
		if slices.ContainsFunc(units, func(u *unit) bool { return u.dir == dir }) {
			all = append(all, host)
		}
	}
	return all
}

// revoke makes all sessions drop hosts that contain a plugin which the user disabled or no longer
// trusts: idle sessions at once, others after their turn. It repeats until no session uses the
// hosts.
func (l *Loader) revoke(life context.Context, hosts []*plugin.Host) {
	for _, h := range hosts {
		h.Revoke()
	}
	l.inBackground("revoke plugins", func() {
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

// revokeDelay is the interval at which sessions with a running turn are tried again.
const revokeDelay = time.Second

// remember stores which contents run. After a restart the same contents run first, whatever the
// directories contain then. A failed write is logged: then an older version may run until the next
// scan.
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
		l.config.Log.Error("storing which plugins run failed", "error", err)
	}
}

// forget removes a directory that is gone: its unit, the stored fact and clients' knowledge of it.
func (l *Loader) forget(ctx context.Context, e *entry) {
	e.drop()
	if _, there := l.facts.ranLast(e.dir); there {
		if err := l.facts.store(ctx, fact(factGood, e.dir, nil)); err != nil {
			l.config.Log.Error("storing the removal of a plugin failed", "dir", e.dir, "error", err)
		}
	}
	info := protocol.PluginInfo{Name: e.info.Name, Scope: e.info.Scope, Dir: e.dir}
	l.config.News(protocol.ServerEvent{Type: protocol.ServerPluginChanged, Plugin: &info})
}

// closed reports whether a channel is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
