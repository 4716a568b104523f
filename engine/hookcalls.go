package engine

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/engine/trace"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// pluginApproval is a plugin's wish that a person approves a call. by is the plugin.
type pluginApproval struct {
	plugin.Approval
	by string
}

// hooks runs the tool call hooks of a session's plugins, for a turn or a direct call, and carries
// out their directives. Its methods run on the goroutine of the call; plugins may take up to their
// time limit.
type hooks struct {
	*session
	// caller is the turn or the direct call that the tool calls belong to.
	caller  caller
	plugins *plugin.Session
	// judge gives the kind that a tool counts as, and the ceilings of sessions that hooks create.
	judge *judge
	// inputs are the plugin inputs that came with the turn's inputs.
	inputs protocol.PluginInputs
	// trace records what plugins report about the calls.
	trace turnTrace
}

// beforeCalls runs the BeforeToolCall hooks for the calls of a batch, one call after the other, and
// then validates the arguments, which hooks may have changed. It skips calls that an earlier run of
// the daemon started, because that run asked the hooks. An error means that ctx is done.
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

// beforeCall runs the hooks for one call. A hook can replace the arguments, answer the call itself,
// or request an approval. If a directive fails, so does the call.
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
	if err := h.apply(ctx, plugin.HookBeforeTool, s.hookPlace(), verdict.Effects); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.fail(protocol.FailInternal, "before_tool_call_failed", err.Error(), protocol.FromPlugin)
		return nil
	}
	switch {
	case verdict.Output != nil:
		s.answer(h.session.files().Output(ctx, tool.Tidy(*verdict.Output)))
		h.setShown(ctx, s, s.reply)
	case verdict.Approval != nil:
		s.approval = &pluginApproval{*verdict.Approval, verdict.Plugin}
	}
	return nil
}

// callHook returns what hooks see of a call.
func (h *hooks) callHook(s *toolCall) *plugin.ToolCallContext {
	terms := s.entry.Terms()
	return &plugin.ToolCallContext{
		TurnID: h.caller.journalID(), CallID: s.CallID, Parent: s.Parent, Tool: s.Name, Kind: h.judge.kindOf(s.entry), Replay: terms.Replay, Serial: terms.Serial, Cell: s.cell,
		Args: s.Args, Inputs: h.inputs, Entry: s.entry, Host: h.capabilities(),
	}
}

// resultHook returns what hooks see of a call and its result.
func (h *hooks) resultHook(s *toolCall, reply *turn.ToolReply) *plugin.ToolResultContext {
	return &plugin.ToolResultContext{ToolCallContext: *h.callHook(s), Attempt: s.attempt, Output: reply.Output, DurationMs: reply.DurationMs}
}

// afterCall runs the AfterToolCall hooks, which can replace the output and add messages. If ctx
// ends during that, the hooks' results are dropped.
func (h *hooks) afterCall(ctx context.Context, s *toolCall, reply *turn.ToolReply) {
	if !h.plugins.HasAfterToolCall() {
		return
	}
	verdict, err := h.plugins.AfterToolCall(ctx, h.resultHook(s, reply))
	if err != nil {
		return // ctx is done, and the caller handles that
	}
	h.eng.group.LogPanic(verdict.Err)
	h.reportConflicts(ctx, verdict.Conflicts)
	if err := h.apply(ctx, plugin.HookAfterTool, string(s.CallID), verdict.Effects); err != nil && ctx.Err() == nil {
		out := protocol.Fail(protocol.FailInternal, "after_tool_call_failed", err.Error(), protocol.FromPlugin)
		verdict.Output = &out
	}
	if verdict.Output != nil {
		refusal := reply.Output.Refusal
		reply.Output = h.session.files().Changed(ctx, &reply.Output, tool.Tidy(*verdict.Output))
		reply.Output.Refusal = refusal
	}
	for _, o := range verdict.Messages {
		s.messages = append(s.messages, h.session.files().Messages(ctx, plugin.MessagesOf(o))...)
	}
}

// setShown sets reply.Shown if plugins show the model another output than the one that is stored.
func (h *hooks) setShown(ctx context.Context, s *toolCall, reply *turn.ToolReply) {
	out := h.session.files().Changed(ctx, &reply.Output, tool.Tidy(h.plugins.ProjectResult(ctx, h.resultHook(s, reply))))
	out.Refusal = reply.Output.Refusal
	if !reflect.DeepEqual(out, reply.Output) {
		reply.Shown = &out
	}
}

// reportConflicts traces and shows directives that lost against those of another plugin.
func (h *hooks) reportConflicts(ctx context.Context, all []plugin.Conflict) {
	for _, c := range all {
		h.trace.add(trace.Kind(fmt.Sprintf("plugin.%s.%s.directive_conflict", c.Later, c.Hook)), c)
		h.feed.Show(protocol.Event{
			Type: protocol.EventPluginStatus, TurnID: h.caller.journalID(), Plugin: c.Later, Name: "directive_conflict",
			Text: fmt.Sprintf("ignored %s from plugin %s, because it conflicts with %s from plugin %s", c.LoserKind, c.Loser, c.WinnerKind, c.Winner),
		})
	}
}
