package command

import (
	"context"
	"slices"
	"strings"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// beforeTurn implements the hook before a turn. In the first turn since the session was opened, it
// runs the SessionStart or SubagentStart hooks first. Then it runs the UserPromptSubmit hooks,
// which may reject the prompt or add text for the model.
func (s *session) beforeTurn(ctx context.Context, tc *plugin.TurnContext) ([]plugin.Directive, error) {
	if tc.View != nil {
		s.remember(tc.TurnID, slices.Concat(tc.View.Messages(), tc.Input))
	}
	var all []plugin.Directive
	if !s.hasBegun() {
		begun, stop, err := s.beginning(ctx, tc)
		if err != nil || stop {
			return begun, err
		}
		all = begun
	}
	in := s.common("UserPromptSubmit", tc.TurnID, view(ctx, tc.View, tc.Host))
	in.Prompt = new(textOf(protocol.RoleUser, tc.Input))
	v, err := s.ask(ctx, question{input: in})
	if err != nil {
		return nil, err
	}
	all = append(all, s.announce(in.Event, v)...)
	if v.strength >= deny {
		return append(all, plugin.Abort(v.code("prompt_refused"), v.reason)), nil
	}
	return append(all, s.tell(in.Event, v.contexts)...), nil
}

// beginning runs the hooks for the start of the session. A hook that says "deny" cannot reject the
// prompt here, so that becomes a remark for people. "halt", or a failure with OnErrorDeny, ends the
// turn; then stop is true, and the hooks run again before the next turn.
func (s *session) beginning(ctx context.Context, tc *plugin.TurnContext) (all []plugin.Directive, stop bool, err error) {
	in := s.common("SessionStart", tc.TurnID, view(ctx, tc.View, tc.Host))
	q := question{subject: "startup"}
	if tc.View != nil && len(tc.View.Messages()) > 0 {
		q.subject = "resume"
	}
	if s.build.Root() {
		in.Source = q.subject
	} else {
		in.Event, q.subject = "SubagentStart", in.AgentType
	}
	q.input = in
	v, err := s.ask(ctx, q)
	if err != nil {
		return nil, false, err
	}
	all = s.announce(in.Event, v)
	switch {
	case v.strength == halt, v.strength == deny && v.failing:
		return append(all, plugin.Abort(v.code("hook_halted"), v.reason)), true, nil
	case v.strength == deny:
		all = s.remark(in.Event, v, v.reason)
	}
	s.begin()
	return append(all, s.tell(in.Event, v.contexts)...), false, nil
}

// maxStops is how often in a row hooks may keep a turn from ending.
const maxStops = 8

// stopText starts the message that keeps a turn from ending. stops counts these messages.
const stopText = "[A hook asks you to continue, from the plugin "

// checkpoint implements the hook at a checkpoint. It delivers the notes of the turn to the model,
// or ends the turn if a hook halted it. If the turn is about to end, it runs the Stop hooks, which
// may keep it going.
func (s *session) checkpoint(ctx context.Context, cc *plugin.CheckpointContext) ([]plugin.Directive, error) {
	if cc.View != nil {
		s.remember(cc.TurnID, cc.View.Messages())
	}
	texts, halted := s.noted(cc.TurnID)
	if halted != "" {
		return []plugin.Directive{plugin.Abort("hook_halted", halted)}, nil
	}
	all := s.tell("PreToolUse", texts)
	if cc.Kind != protocol.BoundaryBeforeCompletion || !s.has("Stop", "SubagentStop") {
		return all, nil
	}
	more, err := s.stopping(ctx, cc)
	return append(all, more...), err
}

// stopping runs the Stop hooks before a turn ends. A denial keeps the turn going: its reason
// becomes a message for the model. After maxStops denials in a row the turn ends anyway, so a hook
// cannot keep it going for ever.
func (s *session) stopping(ctx context.Context, cc *plugin.CheckpointContext) ([]plugin.Directive, error) {
	v := view(ctx, cc.View, cc.Host)
	in := s.common("Stop", cc.TurnID, v)
	var messages []protocol.Message
	if v != nil {
		messages = v.Messages()
	}
	q := question{}
	if !s.build.Root() {
		in.Event, q.subject = "SubagentStop", in.AgentType
	}
	stops := s.stops(messages)
	in.Active, in.Last = new(stops > 0), new(lastAnswer(messages))
	q.input = in
	said, err := s.ask(ctx, q)
	switch {
	case err != nil:
		return nil, err
	case said.strength != deny:
		return s.announce(in.Event, said), nil
	case stops >= maxStops:
		return s.remark(in.Event, said, "the turn ends although a hook asks to continue, because hooks have continued it too often"), nil
	}
	content := stopText + s.part.config.ID + "]\n" + strings.Join(append([]string{said.reason}, said.contexts...), "\n\n")
	return append(s.announce(in.Event, said), plugin.Enqueue(plugin.Message{Role: protocol.RoleUser, Content: content})), nil
}

// stops returns how often the plugin's hooks have continued the turn since its last input. It
// counts messages of the conversation that start with stopText, so the count survives a restart of
// lashd.
func (s *session) stops(messages []protocol.Message) (n int) {
	for i := len(messages) - 1; i >= 0; i-- {
		o := messages[i].Origin
		switch {
		case o == nil:
		case o.Kind == protocol.OriginTurnInput:
			return n
		case o.Plugin == s.part.config.ID && strings.HasPrefix(textOf(protocol.RoleUser, messages[i:i+1]), stopText):
			n++
		}
	}
	return n
}

// afterTurn reports a cancelled or failed turn to hooks, with the last issue of the turn as
// details. Finished turns were reported by the Stop hooks.
func (s *session) afterTurn(ctx context.Context, sum *plugin.TurnSummary) ([]plugin.Directive, error) {
	if sum.Report == nil || sum.Report.Outcome == nil || sum.Report.Outcome.Finished() {
		return nil, nil
	}
	in := s.common("StopFailure", sum.TurnID, look(ctx, sum.Host))
	if outcome := sum.Report.Outcome; outcome.Kind == protocol.OutcomeCancelled {
		in.Event = "Interrupt"
	} else {
		in.Error = string(outcome.Kind)
	}
	for _, issue := range sum.Report.Issues {
		in.ErrorDetails = issue.Message
	}
	v, err := s.ask(ctx, question{input: in})
	if err != nil {
		return nil, err
	}
	return append(s.announce(in.Event, v), s.tell(in.Event, v.contexts)...), nil
}
