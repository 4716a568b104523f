package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"lashd/rpc/protocol"
)

// ToolVerdict is what the hooks of a tool seam come to. Nobody can undo what somebody before refused: a stop of the turn is
// stronger than a denial, that is stronger than asking a person, and that is stronger than a successful result.
type ToolVerdict struct {
	Args      json.RawMessage      // before: the arguments to run with; nil: as they were
	ArgsBy    []string             // before: the plugins that replaced the arguments, in order
	Output    *protocol.ToolOutput // before: the result, without running; after: instead of the tool's. nil: run it, or keep it
	Denied    bool                 // Output refuses
	Approval  *Approval            // before: a person is asked first
	Plugin    string               // whose Output or Approval it is
	Messages  []Owned              // after: to be delivered at the next checkpoint
	Effects   []Owned              // what is to be applied, in order
	Conflicts []Conflict
	Err       error // why the seam failed, if it did; Output says so, too
}

// Conflict is a directive that another plugin's had to give way to.
type Conflict struct {
	Hook       Hook
	Later      string // of the two, the plugin that spoke later
	Winner     string
	WinnerKind DirectiveKind
	Loser      string
	LoserKind  DirectiveKind
}

// toolCallHooks act before and after calls of tools.
type toolCallHooks struct {
	plugins    *roster
	beforeTool []contribution[ToolCallHook]
	afterTool  []contribution[ToolResultHook]
}

// BeforeToolCall asks the hooks before a call. New arguments are shown to the hooks that have seen the old ones, once; what
// they say then may only refuse. A hook that fails, or that wants the arguments changed back and forth, fails the call. The
// error is that of ctx.
func (t *toolCallHooks) BeforeToolCall(ctx context.Context, tc *ToolCallContext) (*ToolVerdict, error) {
	f := &fold{plugins: t.plugins, seam: HookBeforeTool, code: "before_tool_call_failed", replace: ReplaceToolArgs, args: tc.Args}
	return f.run(ctx, owners(t.beforeTool), func(i int) question {
		mine := *tc
		mine.Args, mine.Host = bytes.Clone(f.args), tc.Host.limit(HookBeforeTool)
		return func() ([]Directive, error) { return t.beforeTool[i].do(ctx, &mine) }
	})
}

// AfterToolCall asks the hooks after an attempt. The first other result is shown to the hooks that have seen the tool's,
// once; what they say then may only refuse. The error is that of ctx.
func (t *toolCallHooks) AfterToolCall(ctx context.Context, tc *ToolResultContext) (*ToolVerdict, error) {
	f := &fold{plugins: t.plugins, seam: HookAfterTool, code: "after_tool_call_failed", replace: ShortCircuitTool, output: tc.Output}
	return f.run(ctx, owners(t.afterTool), func(i int) question {
		mine := tc.own(HookAfterTool, tc.Args, f.output)
		return func() ([]Directive, error) { return t.afterTool[i].do(ctx, mine) }
	})
}

func (tc *ToolResultContext) own(hook Hook, args json.RawMessage, out protocol.ToolOutput) *ToolResultContext {
	mine := *tc
	mine.Args, mine.Output, mine.Host = bytes.Clone(args), own(out), tc.Host.limit(hook)
	return &mine
}

func owners[H any](hooks []contribution[H]) []string {
	ids := make([]string, len(hooks))
	for i, h := range hooks {
		ids[i] = h.plugin
	}
	return ids
}

// HasBeforeToolCall tells whether there are hooks before calls.
func (t *toolCallHooks) HasBeforeToolCall() bool { return len(t.beforeTool) > 0 }

// HasAfterToolCall tells whether there are hooks after calls.
func (t *toolCallHooks) HasAfterToolCall() bool { return len(t.afterTool) > 0 }

// ReplacementError is a plugin that answers new arguments, or a new result, with others.
type ReplacementError struct{ Plugin, By string }

func (e *ReplacementError) Error() string {
	return fmt.Sprintf("the plugin %s replaces what the plugin %s has just replaced", e.Plugin, e.By)
}
