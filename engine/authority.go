package engine

import (
	"context"
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// authorityFor checks what a new session is to be granted. One that works for another, or starts where another is, never gets
// more than that one has.
func (e *Engine) authorityFor(ctx context.Context, p *protocol.SessionNewParams, from *origin) (protocol.Authority, protocol.Relation, error) {
	got := p.Authority
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
	got.Subagent, err = below(parent.Session, got.Subagent)
	return got, p.Relation, err
}

// narrowed is what was asked for, and never more tools than another session has.
func narrowed(other, asked protocol.Authority) (protocol.Authority, error) {
	got := asked
	got.Hidden = slices.Compact(slices.Sorted(slices.Values(slices.Concat(other.Hidden, asked.Hidden))))
	switch {
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

// below is a session that works for parent. One that says nothing of its depth is as deep as it is.
func below(parent protocol.Session, asked *protocol.Subagent) (*protocol.Subagent, error) {
	above := parent.Authority.Subagent
	if asked == nil {
		if above == nil {
			return nil, nil
		}
		asked = &protocol.Subagent{Parent: parent.ID, Depth: above.Depth + 1, MaxDepth: above.MaxDepth}
	}
	return asked, checkDepth(above, asked)
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
