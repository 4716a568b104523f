package engine

import (
	"context"
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// authorityFor checks what a new session is to be granted. One that works for another, starts where another is, or is asked for
// by a plugin of another, never gets more than that one has.
func (e *Engine) authorityFor(ctx context.Context, p *protocol.SessionNewParams, from *origin, by protocol.SessionID) (protocol.Authority, protocol.Relation, error) {
	got, r, err := e.authorityAmong(ctx, p, from)
	if err != nil || by == "" {
		return got, r, err
	}
	asker, err := e.store.Session(ctx, by)
	if err != nil {
		return got, r, err
	}
	if got, err = narrowed(asker.Authority, got); err == nil && r.Parent != by {
		got.Subagent, err = within(asker.Authority.Subagent, got.Subagent, r)
	}
	return got, r, err
}

// authorityAmong is what a session is granted beside its parent and the session where it starts.
func (e *Engine) authorityAmong(ctx context.Context, p *protocol.SessionNewParams, from *origin) (protocol.Authority, protocol.Relation, error) {
	got := p.Authority
	if got.NoTools && len(got.Tools) > 0 {
		return got, p.Relation, bad("/authority/noTools", "must not be set beside tools")
	}
	for pointer, names := range map[string][]string{"/authority/tools": got.Tools, "/authority/hiddenTools": got.Hidden} {
		if i := slices.Index(names, ""); i >= 0 {
			return got, p.Relation, bad(pointer+"/"+itoa(i), "must not be empty")
		}
	}
	var err error
	if from != nil {
		if got, err = narrowed(from.row.Authority, got); err != nil {
			return got, p.Relation, err
		}
	}
	if p.Relation.Kind != protocol.RelationChild {
		if from != nil && got.Subagent == nil {
			got.Subagent = from.row.Authority.Subagent
		}
		return got, p.Relation, nil
	}
	parent, err := e.store.Session(ctx, p.Relation.Parent)
	if err != nil {
		return got, p.Relation, err
	}
	if got, err = narrowed(parent.Authority, got); err != nil {
		return got, p.Relation, err
	}
	got.Subagent, err = below(parent.Session, got)
	return got, p.Relation, err
}

// narrowed is what was asked for, and never more tools than another session has.
func narrowed(other, asked protocol.Authority) (protocol.Authority, error) {
	got := asked
	got.Hidden = slices.Compact(slices.Sorted(slices.Values(slices.Concat(other.Hidden, asked.Hidden))))
	switch {
	case asked.NoTools:
	case other.NoTools && len(asked.Tools) > 0:
		return got, bad("/authority/tools", "must be empty: the other session has no tools")
	case other.NoTools:
		got.NoTools = true
	case len(other.Tools) == 0:
	case len(asked.Tools) == 0:
		got.Tools = other.Tools
	default:
		got.Tools = slices.DeleteFunc(slices.Clone(asked.Tools), func(name string) bool { return !slices.Contains(other.Tools, name) })
		if len(got.Tools) == 0 {
			return got, bad("/authority/tools", "has none of the tools that the other session has: %s", strings.Join(other.Tools, ", "))
		}
	}
	return got, nil
}

// below is a session that works for parent. One that says nothing of its depth is as deep as it is; without tools, it may also
// be where nothing may be deeper.
func below(parent protocol.Session, got protocol.Authority) (*protocol.Subagent, error) {
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

// within is how deep a session is that a plugin of another one asks for, and that does not work for that one: sessions below
// it are no deeper than they could be there.
func within(by, got *protocol.Subagent, r protocol.Relation) (*protocol.Subagent, error) {
	if by == nil {
		return got, nil
	}
	limit := *by
	if r.Kind == protocol.RelationChild {
		limit.Parent, limit.Depth = r.Parent, by.Depth+1
	}
	switch {
	case limit.Depth > limit.MaxDepth:
		return got, bad("/relation/kind", "must be root: the session that asks for it may have no deeper ones")
	case got == nil:
		return &limit, nil
	case got.MaxDepth-got.Depth > limit.MaxDepth-limit.Depth:
		limit.Parent, limit.Capability = got.Parent, got.Capability
		return &limit, nil
	}
	return got, nil
}

func checkDepth(parent, child *protocol.Subagent) error {
	want := protocol.Subagent{Depth: 1, MaxDepth: child.MaxDepth}
	if parent != nil {
		want.Depth, want.MaxDepth = parent.Depth+1, parent.MaxDepth
	}
	switch {
	case child.Depth != want.Depth:
		return bad("/authority/subagent/depth", "must be %d, one below the parent", want.Depth)
	case child.MaxDepth > want.MaxDepth:
		return bad("/authority/subagent/maxDepth", "must be at most %d, as of the parent", want.MaxDepth)
	case child.Depth > child.MaxDepth:
		return bad("/authority/subagent/depth", "must be at most %d", child.MaxDepth)
	}
	return nil
}
