package engine

import (
	"context"
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// authorityFor checks what a new session is to be granted. One that works for another never gets more than that one has.
func (e *Engine) authorityFor(ctx context.Context, asked protocol.Authority) (protocol.Authority, protocol.Relation, error) {
	root := protocol.Relation{Kind: protocol.RelationRoot}
	for pointer, names := range map[string][]string{"/authority/tools": asked.Tools, "/authority/hiddenTools": asked.Hidden} {
		if i := slices.Index(names, ""); i >= 0 {
			return asked, root, bad(pointer+"/"+itoa(i), "must not be empty")
		}
	}
	if asked.Subagent == nil {
		return asked, root, nil
	}
	parent, err := e.store.Session(ctx, asked.Subagent.Parent)
	if err != nil {
		return asked, root, err
	}
	got, err := narrowed(parent.Authority, asked)
	return got, protocol.Relation{Kind: protocol.RelationChild, Parent: parent.ID}, err
}

// narrowed is what a session is granted that works for another: what was asked for, and never more than its parent has.
func narrowed(parent, asked protocol.Authority) (protocol.Authority, error) {
	got := asked
	got.Hidden = slices.Compact(slices.Sorted(slices.Values(slices.Concat(parent.Hidden, asked.Hidden))))
	switch {
	case len(parent.Tools) == 0:
	case len(asked.Tools) == 0:
		got.Tools = parent.Tools
	default:
		got.Tools = slices.DeleteFunc(slices.Clone(asked.Tools), func(name string) bool { return !slices.Contains(parent.Tools, name) })
		if len(got.Tools) == 0 {
			return got, bad("/authority/tools", "has none of the tools that the parent has: %s", strings.Join(parent.Tools, ", "))
		}
	}
	return got, checkDepth(parent.Subagent, asked.Subagent)
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
