package plugin

import (
	"context"
	"slices"

	"lashd/rpc/protocol"
)

// contextHooks act on what the model sees of history, in the order of descending priority.
type contextHooks struct {
	plugins    *roster
	transforms []contribution[ContextTransform]
	compactors []contribution[Compactor]
}

// Transforms tells whether anything changes what the model sees in a turn.
func (c *contextHooks) Transforms() bool { return len(c.transforms) > 0 }

// Transform is what the model sees in a turn: each transform gets what the one before it made, and the first error ends
// that.
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

func (pc PreparedContext) own() PreparedContext {
	pc.Messages, pc.Prompts, pc.Tools = own(pc.Messages), own(pc.Prompts), slices.Clone(pc.Tools)
	return pc
}

// Compact is the first summary that a compactor gives, and which plugin gave it. None has one: there are no nodes.
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
