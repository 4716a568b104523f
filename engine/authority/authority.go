// Package authority defines which of two sessions, plugins or requests may do more. The engine asks it whenever one of them
// causes something to be created or called: the result must never have more rights than the asker. A Ceiling is the central
// value: it limits tools, workspaces and approval, and Meet combines two ceilings. The package is pure: no I/O, no state.
package authority

import (
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// MaxPolicies is the maximum number of policies in a ceiling. Each asker in a chain adds one unless an equal one is
// there.
const MaxPolicies = 32

// ErrTooMany means that a ceiling would need more than MaxPolicies policies.
var ErrTooMany = errors.New("the chain of sessions and plugins behind this request has too many different approval settings; make the request from a session closer to the user's")

// PermanentLimits returns the permanent limits of a session: its tools, its hidden names and the ceiling it was created with. Its
// configuration, which people and plugins can change, cannot lift them.
func PermanentLimits(s *protocol.Session) protocol.Ceiling {
	return Meet(protocol.Ceiling{Tools: s.Authority.Tools, NoTools: s.Authority.NoTools, Hidden: s.Authority.Hidden}, deref(s.Authority.Ceiling))
}

// Of returns the ceiling for everything that a session causes: no more than the session itself may do. It adds to PermanentLimits
// the session's own approval configuration, its workspace as the only root, and read-only access in plan mode.
func Of(s *protocol.Session) protocol.Ceiling {
	own := protocol.Ceiling{Policies: []protocol.Policy{{Approval: s.Config.Approval, Cwd: s.Cwd, Driver: s.Config.Driver}}}
	if s.Cwd != "" {
		own.Roots = []string{s.Cwd}
	}
	own.ReadOnly = inPlanMode(s.Config)
	return Meet(PermanentLimits(s), own)
}

// deref returns the ceiling; nil is the zero Ceiling, which allows everything.
func deref(c *protocol.Ceiling) protocol.Ceiling {
	if c == nil {
		return protocol.Ceiling{}
	}
	return *c
}

// Meet returns the ceiling that allows what both a and b allow. Policies, roots and hidden names of both apply. If both
// list tools, only common ones remain; if there are none, the result allows no tools at all.
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

// MeetAll returns what all ceilings allow; nil ones allow everything. The result is nil if nothing is limited.
func MeetAll(all ...*protocol.Ceiling) *protocol.Ceiling {
	var m protocol.Ceiling
	for _, c := range all {
		m = Meet(m, deref(c))
	}
	return Trim(m)
}

// Trim returns the stored form of a ceiling: nil if it limits nothing.
func Trim(c protocol.Ceiling) *protocol.Ceiling {
	if reflect.DeepEqual(c, protocol.Ceiling{}) {
		return nil
	}
	return &c
}

// union returns a with the elements that are only in b, in order.
func union[T any](a, b []T) []T {
	all := slices.Clip(a)
	for _, x := range b {
		if !slices.ContainsFunc(all, func(y T) bool { return reflect.DeepEqual(x, y) }) {
			all = append(all, x)
		}
	}
	return all
}

// Beyond returns the limits of c that covered does not impose already; nil if there are none. Storing only the
// difference keeps a chain of askers with equal settings short.
func Beyond(c, covered protocol.Ceiling) *protocol.Ceiling {
	if Within(covered, c) {
		return nil
	}
	c.Policies = slices.DeleteFunc(slices.Clone(c.Policies), func(p protocol.Policy) bool { return implied(p, covered.Policies) })
	return &c
}

// Within reports whether a allows no more than b. It compares the written limits and not every possible call, so it may
// report false although a is stricter in effect. It never reports true if a allows more.
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

// toolsWithin compares the tools of two ceilings.
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

// implied reports whether one of the policies is at least as strict as p.
func implied(p protocol.Policy, by []protocol.Policy) bool {
	return slices.ContainsFunc(by, func(q protocol.Policy) bool {
		return q.Cwd == p.Cwd && q.Driver == p.Driver && Stricter(q.Approval, p.Approval) == nil
	})
}

// Inside reports whether a clean absolute path is dir or below it. It does not resolve links.
func Inside(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator)))
	return ok && (rest == "" || rest[0] == filepath.Separator)
}

// Calls reports whether the ceiling allows calls of a tool with this name.
func Calls(c protocol.Ceiling, name string) bool {
	return !c.NoTools && !slices.Contains(c.Hidden, name) && (len(c.Tools) == 0 || slices.Contains(c.Tools, name))
}
