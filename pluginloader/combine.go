package pluginloader

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"

	"lashd/engine/plugin"
	"lashd/pluginloader/mcp"
	"lashd/pluginloader/skills"
	"lashd/rpc/protocol"
)

// settle decides which units the entries use and returns the host with them, after the units in
// fixed.
//
// It tries three things, from the best to the most careful. First all wanted units at once. Then
// all except one change, the last one first, which finds a single faulty edit. Then one change
// after the other. An entry whose change does not work keeps its unit and remembers the error. Each
// call tries again, because the plugin that was in conflict may be gone.
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

// wanted returns the units to use: fixed, then the next unit of each entry, except that the entry
// but keeps its current one.
func (s *set) wanted(fixed []*unit, but *entry) []*unit {
	units := slices.Clone(fixed)
	for _, e := range s.entries {
		if e == but {
			units = append(units, unitList(e.unit)...)
		} else {
			units = append(units, unitList(e.next)...)
		}
	}
	return units
}

// adoptAll makes all entries except one use the unit they want.
func (s *set) adoptAll(but *entry) {
	for _, e := range s.entries {
		if e != but {
			e.adopt(e.next)
		}
	}
}

// settleEach applies the changes one after the other, each if it works together with the ones
// before. It costs a trial session for each change and runs only after a conflict.
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

// reduce suspends the units that no longer work together with the ones before them. That happens
// when a plugin of the user conflicts with one of a workspace.
func (s *set) reduce(ctx context.Context, fixed []*unit) *plugin.Host {
	units := slices.Clone(fixed)
	host, err := s.loader.compose(ctx, units)
	if err != nil {
		s.loader.config.Log.Error("loaded plugins no longer work together", "error", err)
		host = cmp.Or(s.loader.user.host, s.loader.config.Base)
	}
	for _, e := range s.entries {
		with, err := s.loader.compose(ctx, append(slices.Clone(units), unitList(e.unit)...))
		if err != nil {
			e.suspend()
			continue
		}
		host, units = with, append(units, unitList(e.unit)...)
	}
	return host
}

// instead returns the units in use, with the change of one entry.
func (s *set) instead(fixed []*unit, changed *entry) []*unit {
	units := slices.Clone(fixed)
	for _, e := range s.entries {
		if e == changed {
			units = append(units, unitList(e.next)...)
		} else {
			units = append(units, unitList(e.unit)...)
		}
	}
	return units
}

// unitList returns a list of u, or no units if u is nil.
func unitList(u *unit) []*unit {
	if u == nil {
		return nil
	}
	return []*unit{u}
}

// adopt makes the entry use a unit, or none, and releases the previous one. Sessions keep that
// until they move to the next host.
func (e *entry) adopt(u *unit) {
	if e.unit != nil && e.unit != u {
		e.set.loader.let(e.unit)
	}
	e.unit, e.blamed = u, nil
}

// drop makes the entry use nothing and want nothing.
func (e *entry) drop() {
	e.want(nil)
	e.adopt(nil)
}

// suspend suspends the entry's unit until it works together with the others again, or another one
// is wanted.
func (e *entry) suspend() {
	if e.unit != e.next {
		e.set.loader.let(e.unit)
	}
	e.unit = nil
}

// blame records why the wanted unit is not in use, and adds a new reason to the plugin's log.
// Clients see the reason as the plugin's problem.
func (e *entry) blame(err error) {
	if e.blamed == nil || e.blamed.Error() != err.Error() {
		e.log.Note(slog.LevelError, "lashd: "+err.Error())
	}
	e.blamed = err
}

// replaces reports whether the plugin may replace the built-in plugin of the same name: only a
// plugin of the user, and only if the configuration lists it.
func (u *unit) replaces(names []string) bool { return u.own && slices.Contains(names, u.name()) }

// compose returns a host with the units, after opening a trial session with it.
func (l *Loader) compose(ctx context.Context, units []*unit) (*plugin.Host, error) {
	return contain(l.config.Log, "open a session with the plugins", func() (*plugin.Host, error) { return l.tryOut(ctx, units) })
}

// tryOut is compose without the protection against panics. It rejects plugins with the same name,
// and the name of a built-in plugin unless the configuration allows it. The trial session is
// isolated: it shares nothing with real ones and is closed at once.
func (l *Loader) tryOut(ctx context.Context, units []*unit) (*plugin.Host, error) {
	var factories []plugin.Factory
	var replaced []string
	names := append(plugin.DriverNames(l.Drivers()), append(l.config.Base.IDs(), protocol.CommandsID, protocol.ServersID)...)
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
	factories = append(factories, skills.New(sources(units)), mcp.NewInputs(serversOf(units)))
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

// sources returns what units offer as skills, commands and agents.
func sources(units []*unit) (all []skills.Source) {
	for _, u := range units {
		m := u.manifest
		if len(m.Skills)+len(m.Commands)+len(m.Agents) > 0 {
			all = append(all, skills.Source{Plugin: m.Name, Root: u.copy.Root, Bare: m.Layout, Skills: m.Skills, Texts: m.Commands, Agents: m.Agents})
		}
	}
	return all
}

// serversOf returns the MCP servers of units.
func serversOf(units []*unit) (all []mcp.Source) {
	for _, u := range units {
		if u.servers != nil {
			all = append(all, mcp.Source{Plugin: u.name(), Servers: u.servers})
		}
	}
	return all
}
