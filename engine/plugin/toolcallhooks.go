package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"lashd/rpc/protocol"
)

// ToolVerdict is the combined result of the hooks at a tool seam. A later hook can only make it stricter. From
// strictest to laxest: abort the turn, deny the call, ask a person, return a successful result.
type ToolVerdict struct {
	// Args are the arguments to run the call with; nil: unchanged. Only before the call.
	Args json.RawMessage
	// ArgsBy lists the plugins that replaced the arguments, in order. Only before the call.
	ArgsBy []string
	// Output replaces the result. Before the call the tool does not run then. Nil: run the tool, or keep its result.
	Output    *protocol.ToolOutput
	Denied    bool       // Output is a rejection
	Approval  *Approval  // ask a person first; only before the call
	Plugin    string     // the plugin that decided Output or Approval
	Messages  []Owned    // after the call: to deliver at the next checkpoint
	Effects   []Owned    // other directives to apply, in order
	Conflicts []Conflict // directives that lost against another plugin's
	Err       error      // why the seam failed; Output then carries it too
}

// Conflict is a directive that was overridden by a directive of another plugin.
type Conflict struct {
	Hook       Hook
	Later      string // which of the two plugins ran later
	Winner     string
	WinnerKind DirectiveKind
	Loser      string
	LoserKind  DirectiveKind
}

// toolCallHooks are the hooks before and after tool calls.
type toolCallHooks struct {
	plugins    *roster
	beforeTool []contribution[ToolCallHook]
	afterTool  []contribution[ToolResultHook]
}

// BeforeToolCall runs the hooks before a call and combines their directives. When a hook replaces the arguments, the
// hooks before it run once more with the new ones; from that second run only rejections and approvals count. A hook
// that fails, or that replaces the arguments in the second run, fails the call. The error is only ever that of ctx.
func (t *toolCallHooks) BeforeToolCall(ctx context.Context, tc *ToolCallContext) (*ToolVerdict, error) {
	f := &fold{plugins: t.plugins, seam: HookBeforeTool, code: "before_tool_call_failed", replace: ReplaceToolArgs, args: tc.Args}
	return f.run(ctx, owners(t.beforeTool), func(i int) question {
		mine := *tc
		mine.Args, mine.Host = bytes.Clone(f.args), tc.Host.limit(HookBeforeTool)
		return func() ([]Directive, error) { return t.beforeTool[i].do(ctx, &mine) }
	})
}

// AfterToolCall runs the hooks after an attempt. When a hook replaces the result for the first time, the hooks before
// it run once more with the new one; from that second run only rejections count. The error is only ever that of ctx.
func (t *toolCallHooks) AfterToolCall(ctx context.Context, tc *ToolResultContext) (*ToolVerdict, error) {
	f := &fold{plugins: t.plugins, seam: HookAfterTool, code: "after_tool_call_failed", replace: ShortCircuitTool, output: tc.Output}
	return f.run(ctx, owners(t.afterTool), func(i int) question {
		mine := tc.own(HookAfterTool, tc.Args, f.output)
		return func() ([]Directive, error) { return t.afterTool[i].do(ctx, mine) }
	})
}

// own returns a copy of tc for one hook.
func (tc *ToolResultContext) own(hook Hook, args json.RawMessage, out protocol.ToolOutput) *ToolResultContext {
	mine := *tc
	mine.Args, mine.Output, mine.Host = bytes.Clone(args), own(out), tc.Host.limit(hook)
	return &mine
}

// owners returns the plugin of each hook.
func owners[H any](hooks []contribution[H]) []string {
	ids := make([]string, len(hooks))
	for i, h := range hooks {
		ids[i] = h.plugin
	}
	return ids
}

// HasBeforeToolCall reports whether any plugin has a hook before calls.
func (t *toolCallHooks) HasBeforeToolCall() bool { return len(t.beforeTool) > 0 }

// HasAfterToolCall reports whether any plugin has a hook after calls.
func (t *toolCallHooks) HasAfterToolCall() bool { return len(t.afterTool) > 0 }

// ReplacementError means that a plugin answered replaced arguments, or a replaced result, with a replacement of its
// own. Two such plugins could go on forever.
type ReplacementError struct{ Plugin, By string }

func (e *ReplacementError) Error() string {
	return fmt.Sprintf("plugin %s replaces a value that plugin %s just replaced", e.Plugin, e.By)
}
