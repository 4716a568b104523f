// Package authority is the order of what sessions, plugins and their requests may do. The engine asks it whenever a session, a
// plugin or a task causes something to be created or called. It is pure: no I/O, no state.
package authority

import (
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// MaxPolicies is how many policies a ceiling may hold: one for each asker in a chain that differs from those before it.
const MaxPolicies = 32

// ErrTooMany means that a chain of askers is too long.
var ErrTooMany = errors.New("the chain of sessions and plugins behind this request has too many different approval settings; make the request from a session closer to the user's")

// Held is what limits a session for good, whatever its configuration comes to say.
func Held(s *protocol.Session) protocol.Ceiling {
	return Meet(protocol.Ceiling{Tools: s.Authority.Tools, NoTools: s.Authority.NoTools, Hidden: s.Authority.Hidden}, deref(s.Authority.Ceiling))
}

// Of is what a session may cause others to do: no more than it may do itself.
func Of(s *protocol.Session) protocol.Ceiling {
	own := protocol.Ceiling{Policies: []protocol.Policy{{Approval: s.Config.Approval, Cwd: s.Cwd, Driver: s.Config.Driver}}}
	if s.Cwd != "" {
		own.Roots = []string{s.Cwd}
	}
	own.ReadOnly = plans(s.Config)
	return Meet(Held(s), own)
}

func deref(c *protocol.Ceiling) protocol.Ceiling {
	if c == nil {
		return protocol.Ceiling{}
	}
	return *c
}

// Meet is what both of two ceilings allow. The zero Ceiling allows everything.
func Meet(a, b protocol.Ceiling) protocol.Ceiling {
	m := protocol.Ceiling{
		Policies:  union(a.Policies, b.Policies),
		Roots:     union(a.Roots, b.Roots),
		Hidden:    union(a.Hidden, b.Hidden),
		ReadOnly:  a.ReadOnly || b.ReadOnly,
		Sandboxed: a.Sandboxed || b.Sandboxed,
		NoTools:   a.NoTools || b.NoTools,
	}
	switch {
	case m.NoTools:
	case len(a.Tools) == 0:
		m.Tools = b.Tools
	case len(b.Tools) == 0:
		m.Tools = a.Tools
	default:
		m.Tools = slices.DeleteFunc(slices.Clone(a.Tools), func(name string) bool { return !slices.Contains(b.Tools, name) })
		m.NoTools = len(m.Tools) == 0
	}
	return m
}

// MeetAll is what all of the ceilings allow; nil ones allow everything. It is nil if nothing is limited.
func MeetAll(all ...*protocol.Ceiling) *protocol.Ceiling {
	var m protocol.Ceiling
	for _, c := range all {
		m = Meet(m, deref(c))
	}
	return Trim(m)
}

// Trim is a ceiling as it is stored: nil if it limits nothing.
func Trim(c protocol.Ceiling) *protocol.Ceiling {
	if reflect.DeepEqual(c, protocol.Ceiling{}) {
		return nil
	}
	return &c
}

// union is a with what is only in b, in order.
func union[T any](a, b []T) []T {
	all := slices.Clip(a)
	for _, x := range b {
		if !slices.ContainsFunc(all, func(y T) bool { return reflect.DeepEqual(x, y) }) {
			all = append(all, x)
		}
	}
	return all
}

// Beyond is what a ceiling limits that another one does not limit already; nil if that is nothing.
func Beyond(c, covered protocol.Ceiling) *protocol.Ceiling {
	if Within(covered, c) {
		return nil
	}
	c.Policies = slices.DeleteFunc(slices.Clone(c.Policies), func(p protocol.Policy) bool { return implied(p, covered.Policies) })
	return &c
}

// Within tells whether a ceiling allows no more than another. It may be false although that is so, never the reverse.
func Within(a, b protocol.Ceiling) bool {
	for _, p := range b.Policies {
		if !implied(p, a.Policies) {
			return false
		}
	}
	for _, root := range b.Roots {
		if !slices.ContainsFunc(a.Roots, func(r string) bool { return Inside(r, root) }) {
			return false
		}
	}
	return (a.Sandboxed || !b.Sandboxed) && (a.ReadOnly || !b.ReadOnly) && toolsWithin(a, b)
}

func toolsWithin(a, b protocol.Ceiling) bool {
	if a.NoTools {
		return true
	}
	for _, name := range b.Hidden {
		if !slices.Contains(a.Hidden, name) {
			return false
		}
	}
	only := slices.DeleteFunc(slices.Clone(a.Tools), func(name string) bool { return slices.Contains(b.Tools, name) })
	return !b.NoTools && (len(b.Tools) == 0 || len(a.Tools) > 0 && len(only) == 0)
}

// implied tells whether one of the policies is at least as strict as p.
func implied(p protocol.Policy, by []protocol.Policy) bool {
	return slices.ContainsFunc(by, func(q protocol.Policy) bool {
		return q.Cwd == p.Cwd && q.Driver == p.Driver && Stricter(q.Approval, p.Approval) == nil
	})
}

// Inside tells whether a clean absolute path is a directory or below it.
func Inside(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator)))
	return ok && (rest == "" || rest[0] == filepath.Separator)
}

// Calls tells whether a ceiling lets a tool of this name be called at all.
func Calls(c protocol.Ceiling, name string) bool {
	return !c.NoTools && !slices.Contains(c.Hidden, name) && (len(c.Tools) == 0 || slices.Contains(c.Tools, name))
}
