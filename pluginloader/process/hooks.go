package process

import (
	"context"
	"fmt"

	"lashd/engine/plugin"
	"lashd/pluginloader/child"
	"lashd/rpc/protocol"
)

// hook is a hook of the plugin in one session.
type hook struct {
	*Hook
	*instance
}

// hookCall is what a plugin is told that is asked at a hook.
type hookCall struct {
	of
	until
	Hook       HookName           `json:"hook"`
	TurnID     protocol.TurnID    `json:"turnId,omitempty"`
	Generation int64              `json:"generation,omitempty"`
	Context    any                `json:"context"`
	Messages   []protocol.Message `json:"messages,omitempty"` // of the conversation, if the hook wants them
}

// moment is when a hook is asked.
type moment struct {
	turn    protocol.TurnID
	view    *plugin.View
	host    plugin.Capabilities
	context any
}

// called is the answer of a hook, or what its errors mean.
func called[R any](ctx context.Context, h *hook, m moment) (*R, error) {
	call := hookCall{Hook: h.Name, TurnID: m.turn, Generation: h.factory.config.Generation, Context: m.context}
	if h.Messages && m.view != nil {
		call.Messages = m.view.Messages()
	}
	return ask[R](ctx, h.instance, "hook/"+string(h.Name), h.Timeout, &grant{host: m.host}, func(s *seat, u until) any {
		call.of, call.until = h.of(s), u
		return call
	})
}

// forgives tells whether the error of a hook counts for nothing. One of a turn that has ended always counts.
func (h *hook) forgives(ctx context.Context, err error) bool {
	if h.OnError != Allow || ctx.Err() != nil {
		return false
	}
	h.factory.config.Log.Warn("a hook has failed and is left out", "hook", h.Name, "session", h.build.SessionID, "error", err)
	return true
}

// directed is the answer of the hooks at the seams of a turn and of a call.
type directed struct {
	Directives []plugin.Directive `json:"directives,omitempty"`
}

const maxDirectives = 100

var directiveKinds = map[plugin.DirectiveKind]bool{
	plugin.AbortTurn: true, plugin.EnqueueMessages: true, plugin.CreateSession: true, plugin.ReplaceToolArgs: true,
	plugin.ShortCircuitTool: true, plugin.RequireApproval: true, plugin.EmitEvents: true, plugin.EmitTrace: true,
	plugin.CompactHistory: true,
}

func (d *directed) check() error {
	if len(d.Directives) > maxDirectives {
		return fmt.Errorf("more than %d directives", maxDirectives)
	}
	for _, x := range d.Directives {
		if !directiveKinds[x.Kind] {
			return fmt.Errorf("there is no directive %.80q", x.Kind)
		}
		if x.Output != nil {
			if err := checkOutput(x.Output, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// direct asks a hook that answers with directives. denied is what an error comes to that has to deny.
func (h *hook) direct(ctx context.Context, m moment, denied func(code, message string) plugin.Directive) ([]plugin.Directive, error) {
	answer, err := called[directed](ctx, h, m)
	if err == nil {
		if err = answer.check(); err == nil {
			return answer.Directives, nil
		}
		err = &Error{Plugin: h.factory.ID(), Code: Protocol, Err: fmt.Errorf("hook/%s: %w", h.Name, err)}
	}
	switch {
	case h.forgives(ctx, err):
		return nil, nil
	case h.OnError == Deny && ctx.Err() == nil:
		return []plugin.Directive{denied(string(child.CodeOf(err)), err.Error())}, nil
	}
	return nil, err
}

// denial denies a call.
func denial(code, message string) plugin.Directive {
	return plugin.ShortCircuit(protocol.Fail(protocol.FailPermission, code, message, protocol.FromPlugin))
}

func (h *hook) beforeTurn(ctx context.Context, tc *plugin.TurnContext) ([]plugin.Directive, error) {
	return h.direct(ctx, moment{tc.TurnID, tc.View, tc.Host, tc}, plugin.Abort)
}

func (h *hook) checkpoint(ctx context.Context, cc *plugin.CheckpointContext) ([]plugin.Directive, error) {
	return h.direct(ctx, moment{cc.TurnID, cc.View, cc.Host, cc}, plugin.Abort)
}

func (h *hook) afterTurn(ctx context.Context, sum *plugin.TurnSummary) ([]plugin.Directive, error) {
	return h.direct(ctx, moment{sum.TurnID, nil, sum.Host, sum}, plugin.Abort)
}

func (h *hook) beforeToolCall(ctx context.Context, tc *plugin.ToolCallContext) ([]plugin.Directive, error) {
	return h.direct(ctx, moment{tc.TurnID, nil, tc.Host, tc}, denial)
}

func (h *hook) afterToolCall(ctx context.Context, tc *plugin.ToolResultContext) ([]plugin.Directive, error) {
	return h.direct(ctx, moment{tc.TurnID, nil, tc.Host, tc}, denial)
}
