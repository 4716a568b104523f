package plugin

import (
	"context"
	"fmt"
	"lashd/engine/param"
	"strconv"
)

// The hooks of a seam run one after the other, and what they want is collected: nothing of it is applied unless all of
// them have answered. The engine then applies it in order, and asks CheckSeam of each.

// turnHooks act at the seams of a turn.
type turnHooks struct {
	plugins    *roster
	beforeTurn []contribution[TurnHook]
	checkpoint []contribution[CheckpointHook]
	afterTurn  []contribution[AfterTurnHook]
}

// BeforeTurn collects what the hooks before a turn want.
func (t *turnHooks) BeforeTurn(ctx context.Context, tc *TurnContext) ([]Owned, error) {
	return collect(ctx, t.plugins, HookBeforeTurn, t.beforeTurn, func(h TurnHook) ([]Directive, error) {
		mine := *tc
		mine.Input, mine.Inputs, mine.Host = own(tc.Input), own(tc.Inputs), tc.Host.limit(HookBeforeTurn)
		return h(ctx, &mine)
	})
}

// Checkpoint collects what the checkpoint hooks want.
func (t *turnHooks) Checkpoint(ctx context.Context, cc *CheckpointContext) ([]Owned, error) {
	return collect(ctx, t.plugins, HookCheckpoint, t.checkpoint, func(h CheckpointHook) ([]Directive, error) {
		mine := *cc
		mine.Host = cc.Host.limit(HookCheckpoint)
		return h(ctx, &mine)
	})
}

// AfterTurn collects what the hooks after a turn want.
func (t *turnHooks) AfterTurn(ctx context.Context, sum *TurnSummary) ([]Owned, error) {
	return collect(ctx, t.plugins, HookAfterTurn, t.afterTurn, func(h AfterTurnHook) ([]Directive, error) {
		mine := *sum
		mine.Report, mine.Host = own(sum.Report), sum.Host.limit(HookAfterTurn)
		return h(ctx, &mine)
	})
}

// HasBeforeTurn tells whether there are hooks before turns.
func (t *turnHooks) HasBeforeTurn() bool { return len(t.beforeTurn) > 0 }

// HasCheckpoint tells whether there are checkpoint hooks.
func (t *turnHooks) HasCheckpoint() bool { return len(t.checkpoint) > 0 }

// HasAfterTurn tells whether there are hooks after turns.
func (t *turnHooks) HasAfterTurn() bool { return len(t.afterTurn) > 0 }

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

func probed[H, T any](ctx context.Context, r *roster, kind Hook, h contribution[H], call func(H) (T, error)) (T, error) {
	defer r.mark(kind, h.plugin)()
	return invoke(ctx, r, kind, h.plugin, func() (T, error) { return call(h.do) })
}

// SeamError is a directive that has no place where it was given.
type SeamError struct {
	Plugin string
	Seam   Hook
	Kind   DirectiveKind
	Reason string
}

func (e *SeamError) Error() string {
	return fmt.Sprintf("plugin %s: %s: %s %s", e.Plugin, e.Seam, e.Kind, e.Reason)
}

// CheckSeam tells whether a directive may be given at a seam, and is whole. A turn that is over cannot be aborted.
func CheckSeam(seam Hook, o Owned) error {
	reason := o.flaw()
	switch {
	case seam == HookAfterTurn && o.Kind == AbortTurn:
		reason = fmt.Sprintf("is too late: %s: %s", o.Code, o.Message)
	case !legal(seam, o.Kind):
		reason = "is not allowed here"
	case reason == "":
		return nil
	}
	return &SeamError{o.Plugin, seam, o.Kind, reason}
}

func legal(seam Hook, kind DirectiveKind) bool {
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

// flaw is what a directive lacks, or "".
func (d Directive) flaw() string {
	switch {
	case d.Kind == CreateSession && d.Session == nil:
		return "names no session"
	case d.Kind == EmitTrace && d.Trace == nil:
		return "has no record"
	case d.Kind == ReplaceToolArgs && len(d.Args) == 0:
		return "has no arguments"
	case d.Kind == RequireApproval && d.Approval == nil:
		return "asks nothing"
	case d.Kind == ShortCircuitTool && (d.Output == nil || d.Output.Status == ""):
		return "has no result"
	}
	if err := d.checkOrigins(); err != nil {
		return "claims an origin: " + err.Error()
	}
	return ""
}

// checkOrigins refuses messages that claim an origin which only lashd gives.
func (d Directive) checkOrigins() error {
	for i, m := range d.Messages {
		if err := param.CheckOrigin("/messages/"+strconv.Itoa(i)+"/origin", m.Origin); err != nil {
			return err
		}
	}
	return nil
}
