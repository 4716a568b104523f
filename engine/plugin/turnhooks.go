package plugin

import (
	"context"
	"fmt"
	"lashd/engine/param"
	"strconv"
)

// The hooks of a seam run one after the other, and their directives are collected. The engine applies them in order, after
// checking each with CheckSeam, and only if every hook succeeded.

// turnHooks are the hooks at the seams of a turn.
type turnHooks struct {
	plugins    *roster
	beforeTurn []contribution[TurnHook]
	checkpoint []contribution[CheckpointHook]
	afterTurn  []contribution[AfterTurnHook]
}

// BeforeTurn runs the hooks before a turn and returns their directives in order.
func (t *turnHooks) BeforeTurn(ctx context.Context, tc *TurnContext) ([]Owned, error) {
	return collect(ctx, t.plugins, HookBeforeTurn, t.beforeTurn, func(h TurnHook) ([]Directive, error) {
		mine := *tc
		mine.Input, mine.Inputs, mine.Host = own(tc.Input), own(tc.Inputs), tc.Host.limit(HookBeforeTurn)
		return h(ctx, &mine)
	})
}

// Checkpoint runs the checkpoint hooks and returns their directives in order.
func (t *turnHooks) Checkpoint(ctx context.Context, cc *CheckpointContext) ([]Owned, error) {
	return collect(ctx, t.plugins, HookCheckpoint, t.checkpoint, func(h CheckpointHook) ([]Directive, error) {
		mine := *cc
		mine.Host = cc.Host.limit(HookCheckpoint)
		return h(ctx, &mine)
	})
}

// AfterTurn runs the hooks after a turn and returns their directives in order.
func (t *turnHooks) AfterTurn(ctx context.Context, sum *TurnSummary) ([]Owned, error) {
	return collect(ctx, t.plugins, HookAfterTurn, t.afterTurn, func(h AfterTurnHook) ([]Directive, error) {
		mine := *sum
		mine.Report, mine.Host = own(sum.Report), sum.Host.limit(HookAfterTurn)
		return h(ctx, &mine)
	})
}

// HasBeforeTurn reports whether any plugin has a hook before turns.
func (t *turnHooks) HasBeforeTurn() bool { return len(t.beforeTurn) > 0 }

// HasCheckpoint reports whether any plugin has a checkpoint hook.
func (t *turnHooks) HasCheckpoint() bool { return len(t.checkpoint) > 0 }

// HasAfterTurn reports whether any plugin has a hook after turns.
func (t *turnHooks) HasAfterTurn() bool { return len(t.afterTurn) > 0 }

// collect calls the hooks in order and returns copies of their directives. The first error drops all of them.
func collect[H any](ctx context.Context, r *roster, kind Hook, hooks []contribution[H], call func(H) ([]Directive, error)) ([]Owned, error) {
	var all []Owned
	for _, h := range hooks {
		directives, err := probed(ctx, r, kind, h, call)
		if err != nil {
			return nil, err
		}
		for _, d := range own(directives) {
			all = append(all, Owned{h.plugin, d})
		}
	}
	return all, nil
}

// probed invokes a hook and reports its start and end to the probe.
func probed[H, T any](ctx context.Context, r *roster, kind Hook, h contribution[H], call func(H) (T, error)) (T, error) {
	defer r.mark(kind, h.plugin)()
	return invoke(ctx, r, kind, h.plugin, func() (T, error) { return call(h.do) })
}

// SeamError means that a directive is not allowed at its seam, or is incomplete.
type SeamError struct {
	Plugin string
	Seam   Hook
	Kind   DirectiveKind
	Reason string
}

func (e *SeamError) Error() string {
	return fmt.Sprintf("plugin %s: %s: %s %s", e.Plugin, e.Seam, e.Kind, e.Reason)
}

// CheckSeam returns a SeamError unless the directive is complete and allowed at the seam. A turn that has ended cannot
// be aborted.
func CheckSeam(seam Hook, o Owned) error {
	reason := o.flaw()
	switch {
	case seam == HookAfterTurn && o.Kind == AbortTurn:
		reason = fmt.Sprintf("is too late, because the turn has ended: %s: %s", o.Code, o.Message)
	case !allowedAt(seam, o.Kind):
		reason = "is not allowed here"
	case reason == "":
		return nil
	}
	return &SeamError{o.Plugin, seam, o.Kind, reason}
}

// allowedAt reports whether a kind of directive is allowed at a seam.
func allowedAt(seam Hook, kind DirectiveKind) bool {
	switch kind {
	case AbortTurn:
		return seam != HookAfterTurn
	case CreateSession, EmitEvents, EmitTrace:
		return true
	case CompactHistory:
		return seam == HookAfterTurn
	case EnqueueMessages:
		return seam != HookBeforeTool
	case ReplaceToolArgs, RequireApproval:
		return seam == HookBeforeTool
	case ShortCircuitTool:
		return seam == HookBeforeTool || seam == HookAfterTool
	}
	return false
}

// flaw returns what a directive is missing, or "".
func (d Directive) flaw() string {
	switch {
	case d.Kind == CreateSession && d.Session == nil:
		return "has no session"
	case d.Kind == EmitTrace && d.Trace == nil:
		return "has no record"
	case d.Kind == ReplaceToolArgs && len(d.Args) == 0:
		return "has no arguments"
	case d.Kind == RequireApproval && d.Approval == nil:
		return "has no approval"
	case d.Kind == ShortCircuitTool && (d.Output == nil || d.Output.Status == ""):
		return "has no result"
	}
	if err := d.checkOrigins(); err != nil {
		return "has an invalid origin: " + err.Error()
	}
	return ""
}

// checkOrigins rejects messages with an origin that only lashd assigns.
func (d Directive) checkOrigins() error {
	for i, m := range d.Messages {
		if err := param.CheckOrigin("/messages/"+strconv.Itoa(i)+"/origin", m.Origin); err != nil {
			return err
		}
	}
	return nil
}
