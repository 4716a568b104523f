package engine

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"lashd/engine/plugin"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// wanted is an approval that a plugin asks for.
type wanted struct {
	plugin.Approval
	by string
}

// beforeCalls lets plugins look at the calls of a batch, one after the other, and then validates them. Calls that an earlier
// run of the daemon has started were looked at then.
func (r *run) beforeCalls(ctx context.Context, stages []*stage) error {
	for _, s := range stages {
		if s.reply == nil && !s.began {
			if err := r.beforeCall(ctx, s); err != nil {
				return err
			}
		}
		if s.reply == nil && s.given == nil {
			s.validate()
		}
	}
	return nil
}

func (r *run) beforeCall(ctx context.Context, s *stage) error {
	if !r.plugins.HasBeforeToolCall() {
		return nil
	}
	verdict, err := r.plugins.BeforeToolCall(ctx, r.callHook(s))
	if err != nil {
		return err
	}
	r.eng.blame(verdict.Err)
	r.conflicts(ctx, verdict.Conflicts)
	if verdict.Args != nil {
		s.call.Args = verdict.Args
		s.sandboxed = s.sandboxed || slices.ContainsFunc(verdict.ArgsBy, r.plugins.Sandboxed)
	}
	if err := r.apply(ctx, plugin.HookBeforeTool, string(s.call.CallID), verdict.Effects); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.fail(protocol.FailInternal, "before_tool_call_failed", err.Error(), protocol.FromPlugin)
		return nil
	}
	switch {
	case verdict.Output != nil:
		s.answer(tidy(*verdict.Output))
		r.projected(ctx, s, s.reply)
	case verdict.Approval != nil:
		s.approval = &wanted{*verdict.Approval, verdict.Plugin}
	}
	return nil
}

func (r *run) callHook(s *stage) *plugin.ToolCallContext {
	terms := s.entry.Terms()
	return &plugin.ToolCallContext{
		TurnID: r.id, CallID: s.call.CallID, Parent: s.call.Parent, Tool: s.call.Name, Kind: r.kindOf(s.entry), Replay: terms.Replay, Serial: terms.Serial,
		Args: s.call.Args, Host: r.capabilities(),
	}
}

func (r *run) resultHook(s *stage, reply *turn.ToolReply) *plugin.ToolResultContext {
	return &plugin.ToolResultContext{ToolCallContext: *r.callHook(s), Attempt: s.attempt, Output: reply.Output, DurationMs: reply.DurationMs}
}

// afterCall lets plugins look at the result of a call. What they say of a call whose turn is cancelled meanwhile is lost.
func (r *run) afterCall(ctx context.Context, s *stage, reply *turn.ToolReply) {
	if !r.plugins.HasAfterToolCall() {
		return
	}
	verdict, err := r.plugins.AfterToolCall(ctx, r.resultHook(s, reply))
	if err != nil {
		return // the context is done, and whoever waits for the call sees to that
	}
	r.eng.blame(verdict.Err)
	r.conflicts(ctx, verdict.Conflicts)
	if err := r.apply(ctx, plugin.HookAfterTool, string(s.call.CallID), verdict.Effects); err != nil && ctx.Err() == nil {
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

// projected gives a reply the output that enters the conversation, where that is not the output itself.
func (r *run) projected(ctx context.Context, s *stage, reply *turn.ToolReply) {
	out := tidy(r.plugins.ProjectResult(ctx, r.resultHook(s, reply)))
	if !reflect.DeepEqual(out, reply.Output) {
		reply.Shown = &out
	}
}

// conflicts tells of directives that had to give way to those of another plugin.
func (r *run) conflicts(ctx context.Context, all []plugin.Conflict) {
	for _, c := range all {
		r.trace(TraceKind(fmt.Sprintf("plugin.%s.%s.directive_conflict", c.Later, c.Hook)), c)
		r.feed.Show(protocol.Event{
			Type: protocol.EventPluginStatus, TurnID: r.id, Plugin: c.Later, Name: "directive_conflict",
			Text: fmt.Sprintf("%s of %s gives way to %s of %s", c.LoserKind, c.Loser, c.WinnerKind, c.Winner),
		})
	}
}
