package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// question returns the question about a tool call, with the call in all formats.
func (s *session) question(ctx context.Context, event string, tc *plugin.ToolCallContext) question {
	in := s.common(event, tc.TurnID, look(ctx, tc.Host))
	in.ToolUseID = tc.CallID
	about := &subjects{call: tc, cwd: s.build.Cwd, dir: cmp.Or(s.part.config.Project, s.build.Cwd)}
	return question{input: in, about: about, formats: call{tc.Tool, tc.Args, s.build.Cwd}.formats()}
}

// beforeToolCall implements the hook before a tool call. If hooks change the arguments, the other
// hooks see the new ones in a second round, in which they can only reject or ask. The directives
// deny the call, require approval, replace its arguments, or do nothing. A halt denies the call and
// ends the turn at its next checkpoint.
func (s *session) beforeToolCall(ctx context.Context, tc *plugin.ToolCallContext) ([]plugin.Directive, error) {
	v, err := s.ask(ctx, s.question(ctx, "PreToolUse", tc))
	if err != nil {
		return nil, err
	}
	all := s.announce("PreToolUse", v)
	if v.args != nil && v.strength < deny {
		second, err := s.again(ctx, tc, v)
		if err != nil {
			return nil, err
		}
		all = append(all, s.announce("PreToolUse", second)...)
		if second.strength > max(v.strength, allow) {
			v.strength, v.reason, v.failing = second.strength, second.reason, second.failing
		}
		if v.strength < deny {
			all = append(all, plugin.ReplaceArgs(v.args))
		}
	}
	halted := ""
	switch v.strength {
	case halt:
		halted = v.reason
		all = append(all, refused(v.code(""), v.reason))
	case deny:
		all = append(all, refused(v.code("hook_denied"), v.reason))
	case ask:
		all = append(all, plugin.AskFirst(v.reason))
	}
	s.note(tc.TurnID, v.contexts, halted)
	return all, nil
}

// again runs the hooks that did not change the arguments a second time, with the new arguments. If
// one of them changes the arguments again, the call is denied: two hooks that undo each other's
// changes must not loop.
func (s *session) again(ctx context.Context, tc *plugin.ToolCallContext, first *verdict) (*verdict, error) {
	next := *tc
	next.Args = first.args
	q := s.question(ctx, "PreToolUse", &next)
	q.spare = first.changed
	second, err := s.ask(ctx, q)
	if err != nil || second.args == nil || second.strength >= deny {
		return second, err
	}
	second.decide(deny, fmt.Sprintf("the hook %s changes arguments that the hook %s has just changed", second.changed[0], first.changed[0]), second.changed[0])
	return second, nil
}

// refused denies a call with an error result. The model reads the reason and can try something
// else.
func refused(code, reason string) plugin.Directive {
	return plugin.ShortCircuit(protocol.Fail(protocol.FailPermission, code, reason, protocol.FromPlugin))
}

// code returns the error code of a denied call or turn. It distinguishes a decision of a hook from
// the end of the turn and from a hook's failure that counts as a denial. Clients and scripts rely
// on these codes.
func (v *verdict) code(refusal string) string {
	switch {
	case v.failing:
		return "hook_failed"
	case v.strength == halt:
		return "hook_halted"
	}
	return refusal
}

// afterToolCall reports a result to hooks: PostToolUse after a success, PostToolUseFailure after a
// failure or a cancelled call. A denial cannot undo the call, so its reason becomes a message for
// the model, delivered at the next checkpoint. A hook may replace the result.
func (s *session) afterToolCall(ctx context.Context, tc *plugin.ToolResultContext) ([]plugin.Directive, error) {
	event := "PostToolUse"
	if cmp.Or(tc.Output.Status, protocol.OutputSuccess) != protocol.OutputSuccess {
		event = "PostToolUseFailure"
	}
	q := s.question(ctx, event, &tc.ToolCallContext)
	q.input.DurationMs = new(tc.DurationMs)
	q.respond = func(said json.RawMessage) response { return responseOf(tc.Tool, said, tc.Output) }
	if event == "PostToolUseFailure" {
		q.input.Error, q.input.IsInterrupt = tc.Output.Text, new(tc.Output.Status == protocol.OutputCancelled)
		if f := tc.Output.Failure; f != nil {
			q.input.Error = f.Message
		}
	}
	v, err := s.ask(ctx, q)
	if err != nil {
		return nil, err
	}
	all := s.announce(event, v)
	texts := v.contexts
	switch v.strength {
	case halt:
		s.note(tc.TurnID, nil, v.reason)
	case deny:
		texts = append([]string{"About the call " + string(tc.CallID) + " of " + tc.Tool + ": " + v.reason}, texts...)
	}
	if v.output != nil {
		all = append(all, plugin.ShortCircuit(replacement(v.output)))
	}
	return append(all, s.tell(event, texts)...), nil
}

// replacement returns a successful result from a hook's JSON: a string as text, any other value as
// text and as value.
func replacement(output json.RawMessage) protocol.ToolOutput {
	var text string
	if json.Unmarshal(output, &text) == nil {
		return protocol.Succeed(text)
	}
	out := protocol.Succeed(string(bytes.TrimSpace(output)))
	out.Value = output
	return out
}
