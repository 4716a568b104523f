package process

import (
	"context"
	"fmt"

	"lashd/engine/plugin"
	"lashd/pluginloader/child"
	"lashd/rpc/protocol"
)

// hook is a hook of the plugin in one session. Its methods are the functions that register.go
// registers.
type hook struct {
	*Hook
	*instance
}

// hookCall holds the parameters of a hook/NAME call.
type hookCall struct {
	of
	until
	Hook       HookName           `json:"hook"`
	TurnID     protocol.TurnID    `json:"turnId,omitempty"`
	Generation int64              `json:"generation,omitempty"`
	Context    any                `json:"context"`
	Messages   []protocol.Message `json:"messages,omitempty"` // the conversation, if the hook wants it
}

// moment is the step of a turn at which a hook runs, and what the hook gets there. Unused fields
// are zero.
type moment struct {
	turn    protocol.TurnID
	view    *plugin.View
	host    plugin.Capabilities
	context any
}

// called runs a hook and returns its answer. Callers apply OnError to the error.
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

// forgives reports whether a failure of the hook is ignored. After the end of ctx it never is.
func (h *hook) forgives(ctx context.Context, err error) bool {
	if h.OnError != Allow || ctx.Err() != nil {
		return false
	}
	h.factory.config.Log.Warn("a hook failed and was skipped", "hook", h.Name, "session", h.build.SessionID, "error", err)
	return true
}

// directed is the answer of hooks that return directives.
type directed struct {
	Directives []plugin.Directive `json:"directives,omitempty"`
}

// maxDirectives is the maximum number of directives in one answer.
const maxDirectives = 100

// directiveKinds lists the directives that a process may return.
var directiveKinds = map[plugin.DirectiveKind]bool{
	plugin.AbortTurn: true, plugin.EnqueueMessages: true, plugin.CreateSession: true, plugin.ReplaceToolArgs: true,
	plugin.ShortCircuitTool: true, plugin.RequireApproval: true, plugin.EmitEvents: true, plugin.EmitTrace: true,
	plugin.CompactHistory: true,
}

// check returns an error if the answer is too long or contains an invalid directive.
func (d *directed) check() error {
	if len(d.Directives) > maxDirectives {
		return fmt.Errorf("more than %d directives", maxDirectives)
	}
	for _, x := range d.Directives {
		if !directiveKinds[x.Kind] {
			return fmt.Errorf("unknown directive %.80q", x.Kind)
		}
		if x.Output != nil {
			if err := checkOutput(x.Output, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// direct runs a hook that returns directives. With OnError deny, a failure becomes the directive
// that denied returns: the end of the turn, or a denied call.
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

// denial denies a tool call.
func denial(code, message string) plugin.Directive {
	return plugin.ShortCircuit(protocol.Fail(protocol.FailPermission, code, message, protocol.FromPlugin))
}

// beforeTurn runs before a turn starts. A denial ends the turn.
func (h *hook) beforeTurn(ctx context.Context, tc *plugin.TurnContext) ([]plugin.Directive, error) {
	return h.direct(ctx, moment{tc.TurnID, tc.View, tc.Host, tc}, plugin.Abort)
}

// checkpoint runs after each batch of calls and after a final answer.
func (h *hook) checkpoint(ctx context.Context, cc *plugin.CheckpointContext) ([]plugin.Directive, error) {
	return h.direct(ctx, moment{cc.TurnID, cc.View, cc.Host, cc}, plugin.Abort)
}

// afterTurn runs at the end of a turn, before its commit, also if the turn was cancelled.
func (h *hook) afterTurn(ctx context.Context, sum *plugin.TurnSummary) ([]plugin.Directive, error) {
	return h.direct(ctx, moment{sum.TurnID, nil, sum.Host, sum}, plugin.Abort)
}

// beforeToolCall runs before a tool call. A failing hook denies the call by default.
func (h *hook) beforeToolCall(ctx context.Context, tc *plugin.ToolCallContext) ([]plugin.Directive, error) {
	return h.direct(ctx, moment{tc.TurnID, nil, tc.Host, tc}, denial)
}

// afterToolCall runs after each attempt of a call that ran.
func (h *hook) afterToolCall(ctx context.Context, tc *plugin.ToolResultContext) ([]plugin.Directive, error) {
	return h.direct(ctx, moment{tc.TurnID, nil, tc.Host, tc}, denial)
}
