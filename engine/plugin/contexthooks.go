package plugin

import (
	"context"
	"slices"

	"lashd/rpc/protocol"
)

// contextHooks change the part of the history that the model sees. Both lists are sorted by descending priority when
// the session opens.
type contextHooks struct {
	plugins    *roster
	transforms []contribution[ContextTransform]
	compactors []contribution[Compactor]
}

// Transforms reports whether any plugin registered a context transform. If not, the engine skips building a
// ContextView.
func (c *contextHooks) Transforms() bool { return len(c.transforms) > 0 }

// Transform passes pc through all transforms, highest priority first. Each one receives a deep copy of the previous
// result. The first error stops the chain and fails the turn.
func (c *contextHooks) Transform(ctx context.Context, view *ContextView, pc PreparedContext) (PreparedContext, error) {
	mine := *view
	mine.Host = view.Host.limit(HookTransform)
	for _, h := range c.transforms {
		next, err := probed(ctx, c.plugins, HookTransform, h, func(t ContextTransform) (PreparedContext, error) {
			view := mine
			return t(ctx, &view, pc.own())
		})
		if err != nil {
			return PreparedContext{}, err
		}
		pc = next
	}
	return pc, nil
}

// own returns a copy of pc that a transform may modify. Tool sources are shared; only their list is copied.
func (pc PreparedContext) own() PreparedContext {
	pc.Messages, pc.Prompts, pc.Tools = own(pc.Messages), own(pc.Prompts), slices.Clone(pc.Tools)
	return pc
}

// Compact asks the compactors, highest priority first, for a summary of the history. The first non-empty result wins,
// and by is the plugin that returned it. Without any, nodes is empty. An error stops the search, and by names the
// plugin that failed.
func (c *contextHooks) Compact(ctx context.Context, req *CompactRequest) (nodes []protocol.NodeBody, by string, err error) {
	for _, h := range c.compactors {
		mine := *req
		mine.Host = req.Host.limit(HookCompactor)
		nodes, err := invoke(ctx, c.plugins, HookCompactor, h.plugin, func() ([]protocol.NodeBody, error) { return h.do(ctx, &mine) })
		if err != nil {
			return nil, h.plugin, err
		}
		if len(nodes) > 0 {
			return nodes, h.plugin, nil
		}
	}
	return nil, "", nil
}
