package engine

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"lashd/engine/plugin"
	"lashd/engine/trace"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// pluginApproval is an approval that a plugin asks for.
type pluginApproval struct {
	plugin.Approval
	by string
}

// hooks asks plugins about tool calls, of a turn or of a client, and does what they want.
type hooks struct {
	*session
	caller  caller
	plugins *plugin.Session
	judge   *judge
	trace   turnTrace
}

// beforeCalls lets plugins look at the calls of a batch, one after the other, and then validates them. Calls that an earlier
// run of the daemon has started were looked at then.
func (h *hooks) beforeCalls(ctx context.Context, calls []*toolCall) error {
	for _, s := range calls {
		if s.reply == nil && !s.resultLost {
			if err := h.beforeCall(ctx, s); err != nil {
				return err
			}
		}
		if s.reply == nil && s.clientOutput == nil {
			s.validate()
		}
	}
	return nil
}

func (h *hooks) beforeCall(ctx context.Context, s *toolCall) error {
	if !h.plugins.HasBeforeToolCall() {
		return nil
	}
	verdict, err := h.plugins.BeforeToolCall(ctx, h.callHook(s))
	if err != nil {
		return err
	}
	h.eng.group.LogPanic(verdict.Err)
	h.reportConflicts(ctx, verdict.Conflicts)
	if verdict.Args != nil {
		s.Args = verdict.Args
		s.sandboxed = s.sandboxed || slices.ContainsFunc(verdict.ArgsBy, h.plugins.Sandboxed)
	}
	if err := h.apply(ctx, plugin.HookBeforeTool, string(s.CallID), verdict.Effects); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.fail(protocol.FailInternal, "before_tool_call_failed", err.Error(), protocol.FromPlugin)
		return nil
	}
	switch {
	case verdict.Output != nil:
		s.answer(tidy(*verdict.Output))
		h.setShown(ctx, s, s.reply)
	case verdict.Approval != nil:
		s.approval = &pluginApproval{*verdict.Approval, verdict.Plugin}
	}
	return nil
}

func (h *hooks) callHook(s *toolCall) *plugin.ToolCallContext {
	terms := s.entry.Terms()
	return &plugin.ToolCallContext{
		TurnID: h.caller.journalID(), CallID: s.CallID, Parent: s.Parent, Tool: s.Name, Kind: h.judge.kindOf(s.entry), Replay: terms.Replay, Serial: terms.Serial,
		Args: s.Args, Host: h.capabilities(),
	}
}

func (h *hooks) resultHook(s *toolCall, reply *turn.ToolReply) *plugin.ToolResultContext {
	return &plugin.ToolResultContext{ToolCallContext: *h.callHook(s), Attempt: s.attempt, Output: reply.Output, DurationMs: reply.DurationMs}
}

// afterCall lets plugins look at the result of a call. What they say of a call whose turn is cancelled meanwhile is lost.
func (h *hooks) afterCall(ctx context.Context, s *toolCall, reply *turn.ToolReply) {
	if !h.plugins.HasAfterToolCall() {
		return
	}
	verdict, err := h.plugins.AfterToolCall(ctx, h.resultHook(s, reply))
	if err != nil {
		return // the context is done, and whoever waits for the call sees to that
	}
	h.eng.group.LogPanic(verdict.Err)
	h.reportConflicts(ctx, verdict.Conflicts)
	if err := h.apply(ctx, plugin.HookAfterTool, string(s.CallID), verdict.Effects); err != nil && ctx.Err() == nil {
		out := protocol.Fail(protocol.FailInternal, "after_tool_call_failed", err.Error(), protocol.FromPlugin)
		verdict.Output = &out
	}
	if verdict.Output != nil {
		reply.Output = tidy(*verdict.Output)
	}
	for _, o := range verdict.Messages {
		s.messages = append(s.messages, messagesOfPlugin(o)...)
	}
}

// setShown gives a reply the output that enters the conversation, where that is not the output itself.
func (h *hooks) setShown(ctx context.Context, s *toolCall, reply *turn.ToolReply) {
	out := tidy(h.plugins.ProjectResult(ctx, h.resultHook(s, reply)))
	if !reflect.DeepEqual(out, reply.Output) {
		reply.Shown = &out
	}
}

// reportConflicts tells of directives that had to give way to those of another plugin.
func (h *hooks) reportConflicts(ctx context.Context, all []plugin.Conflict) {
	for _, c := range all {
		h.trace.add(trace.Kind(fmt.Sprintf("plugin.%s.%s.directive_conflict", c.Later, c.Hook)), c)
		h.feed.Show(protocol.Event{
			Type: protocol.EventPluginStatus, TurnID: h.caller.journalID(), Plugin: c.Later, Name: "directive_conflict",
			Text: fmt.Sprintf("%s of %s gives way to %s of %s", c.LoserKind, c.Loser, c.WinnerKind, c.Winner),
		})
	}
}
