package authority

import (
	"fmt"
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// Refusal means that a request asks for more than its asker may have. Pointer is the JSON pointer of the parameter at
// fault.
type Refusal struct{ Pointer, Reason string }

// Error returns the pointer and the reason. Clients get both as an error of that parameter.
func (r *Refusal) Error() string { return r.Pointer + " " + r.Reason }

// refuse returns a Refusal with a formatted reason.
func refuse(pointer, reason string, args ...any) error {
	return &Refusal{pointer, fmt.Sprintf(reason, args...)}
}

// Narrow returns the requested authority, limited by another one: the result has no tool that other lacks, hides what
// either hides, and carries both ceilings. It is a Refusal if the request names tools and none would be left. The depth
// of subagents is not compared, see Below and Deep.
// A list of tools that is empty means all tools, unless NoTools is set.
func Narrow(other, asked protocol.Authority) (protocol.Authority, error) {
	got := asked
	got.Hidden = slices.Compact(slices.Sorted(slices.Values(slices.Concat(other.Hidden, asked.Hidden))))
	got.Ceiling = MeetAll(other.Ceiling, asked.Ceiling)
	switch {
	case asked.NoTools:
	case other.NoTools && len(asked.Tools) > 0:
		return got, refuse("/authority/tools", "must be empty: the other session has no tools")
	case other.NoTools:
		got.NoTools = true
	case len(other.Tools) == 0:
	case len(asked.Tools) == 0:
		got.Tools = other.Tools
	default:
		got.Tools = slices.DeleteFunc(slices.Clone(asked.Tools), func(name string) bool { return !slices.Contains(other.Tools, name) })
		if len(got.Tools) == 0 {
			return got, refuse("/authority/tools", "has no tool in common with the other session, which has: %s", strings.Join(other.Tools, ", "))
		}
	}
	return got, nil
}

// NarrowTo returns the requested authority, limited by a ceiling from then on. Tools and hidden names of the ceiling
// move into the authority itself; the rest is stored as its Ceiling. It fails with ErrTooMany if the result has more
// than MaxPolicies policies.
func NarrowTo(c protocol.Ceiling, asked protocol.Authority) (protocol.Authority, error) {
	got, err := Narrow(protocol.Authority{Tools: c.Tools, NoTools: c.NoTools, Hidden: c.Hidden}, asked)
	if err != nil {
		return got, err
	}
	c.Tools, c.NoTools, c.Hidden = nil, false, nil // the session's own authority has these
	if got.Ceiling = MeetAll(got.Ceiling, &c); got.Ceiling != nil && len(got.Ceiling.Policies) > MaxPolicies {
		return got, ErrTooMany
	}
	return got, nil
}

// Below returns the subagent depth of a child of parent. A requested depth must be exactly one more than the parent's,
// and its maximum no larger. Without a request the child is one level deeper than a parent that has a depth. A child
// without tools may exist at the maximum depth, because it cannot create subagents.
func Below(parent *protocol.Session, got protocol.Authority) (*protocol.Subagent, error) {
	above, asked := parent.Authority.Subagent, got.Subagent
	switch {
	case asked != nil:
		return asked, checkDepth(above, asked)
	case above == nil:
		return nil, nil
	}
	asked = &protocol.Subagent{Parent: parent.ID, Depth: above.Depth + 1, MaxDepth: above.MaxDepth}
	if got.NoTools {
		asked.Depth = min(asked.Depth, asked.MaxDepth)
		return asked, nil
	}
	return asked, checkDepth(above, asked)
}

// Deep returns the subagent depth of a session that a plugin of the session by asks for, and that is not its child. The
// result never allows more levels below the new session than by has below itself. It is a Refusal if a child would
// exceed the maximum depth.
func Deep(by, got *protocol.Subagent, r protocol.Relation) (*protocol.Subagent, error) {
	if by == nil {
		return got, nil
	}
	limit := *by
	if r.Kind == protocol.RelationChild {
		limit.Parent, limit.Depth = r.Parent, by.Depth+1
	}
	switch {
	case limit.Depth > limit.MaxDepth:
		return got, refuse("/relation/kind", "must be root: the requesting session is at its maximum subagent depth")
	case got == nil:
		return &limit, nil
	case got.MaxDepth-got.Depth > limit.MaxDepth-limit.Depth:
		limit.Parent, limit.Capability = got.Parent, got.Capability
		return &limit, nil
	}
	return got, nil
}

// checkDepth returns a Refusal unless the child's depth is one more than its parent's and within the maximum.
func checkDepth(parent, child *protocol.Subagent) error {
	want := protocol.Subagent{Depth: 1, MaxDepth: child.MaxDepth}
	if parent != nil {
		want.Depth, want.MaxDepth = parent.Depth+1, parent.MaxDepth
	}
	switch {
	case child.Depth != want.Depth:
		return refuse("/authority/subagent/depth", "must be %d, one more than the depth of the parent", want.Depth)
	case child.MaxDepth > want.MaxDepth:
		return refuse("/authority/subagent/maxDepth", "must be at most %d, the maximum of the parent", want.MaxDepth)
	case child.Depth > child.MaxDepth:
		return refuse("/authority/subagent/depth", "must be at most %d", child.MaxDepth)
	}
	return nil
}
