package engine

import (
	"bytes"
	"context"
	"slices"

	"lashd/engine/approval"
	"lashd/engine/decision"
	"lashd/engine/param"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// This file handles answers that change a call: a person allows it with other arguments, or only some of its changes to files. The
// arguments are stored with the answer. They are judged when the answer arrives, so that the client learns of a mistake, and again
// before the call runs.

// preview adds to approvals that are new what the calls will change in files. It returns the results of calls that
// would certainly fail.
func (a *asks) preview(ctx context.Context, asked []*question) map[*toolCall]*protocol.ToolOutput {
	failing := map[*toolCall]*protocol.ToolOutput{}
	for _, q := range asked {
		if q.decision.Kind != protocol.DecisionApproval || q.again {
			continue
		}
		var fails *protocol.ToolOutput
		if q.decision.Detail.Files, fails = q.call.entry.Preview(ctx, a.invocation(q.call)); fails != nil {
			failing[q.call] = fails
		}
	}
	return failing
}

// worthAsking previews the calls of questions. Calls that can only fail get their result and are left out.
func (b *batch) worthAsking(ctx context.Context, asked []*question) (rest []*question, _ error) {
	failing := b.asks.preview(ctx, asked)
	for _, q := range asked {
		only, err := b.onlyFails(q.call, failing)
		switch {
		case err != nil:
			return nil, err
		case only:
			q.call.decided.Verdict = approval.CertainFailure()
			q.call.answer(*failing[q.call])
		default:
			rest = append(rest, q)
		}
	}
	return rest, nil
}

// onlyFails reports whether a call that would fail now can be refused without a question: no other call of the batch may
// change its files before, no plugin wants a person to see it, and the model may read the files, which the error is about.
func (b *batch) onlyFails(s *toolCall, failing map[*toolCall]*protocol.ToolOutput) (bool, error) {
	read, ok := b.catalog.Lookup("read")
	if !ok || failing[s] == nil || !b.asks.judge.plugins.Ships(read.Source()) || !s.judged.Ships || s.approval != nil {
		return false, nil
	}
	if slices.ContainsFunc(b.calls, func(o *toolCall) bool {
		return o != s && o.reply == nil && failing[o] == nil && o.judged.MayChange(s.judged)
	}) {
		return false, nil
	}
	v, err := b.asks.verdict(s.judged.ToRead(read))
	return v.Mode == protocol.ApproveAllow, err
}

// invocation returns a call as its tool can preview it.
func (a *asks) invocation(s *toolCall) tool.Invocation {
	return tool.Invocation{SessionID: a.session.id, TurnID: a.turn, CallID: s.CallID, Args: s.Args, Places: s.places(), Shown: s.allowed.shown}
}

// attend lets the decision of a question take answers that change the call. The review uses copies, because it may still run when
// another answer has let the turn go on.
func (a *asks) attend(q *question) {
	if q.decision.Kind != protocol.DecisionApproval {
		return
	}
	j, s := *a.judge, q.call
	call := toolCall{
		ToolCall: s.ToolCall, original: s.original, entry: s.entry, grant: s.grant, approval: s.approval, sandboxed: s.sandboxed,
		allowed: allowance{paths: s.places(), shown: approval.Shown(q.decision.Detail)},
	}
	q.open.Attend(func(ctx context.Context, p *protocol.DecisionRespondParams) (decision.Changed, error) {
		changed := call
		return a.review(ctx, &j, &changed, p)
	})
}

// review implements decision.Review for a copy of a call.
func (a *asks) review(ctx context.Context, j *judge, s *toolCall, p *protocol.DecisionRespondParams) (decision.Changed, error) {
	pointer, args, err := "/args", p.Args, error(nil)
	if p.Hunks != nil {
		pointer = "/hunks"
		if args, err = s.entry.Choose(ctx, a.invocation(s), p.Hunks); err != nil {
			return decision.Changed{}, param.Bad(pointer, "%v", err)
		}
	}
	if bytes.Equal(args, s.Args) {
		return decision.Changed{}, nil
	}
	s.Args = args
	if err := s.entry.Validate(args); err != nil {
		return decision.Changed{}, param.Bad(pointer, "%v", err)
	}
	if v := j.judgeUnasked(s); v.Mode == protocol.ApproveDeny {
		return decision.Changed{}, param.Bad(pointer, "the call is denied with these arguments: %s", v.Why.Text)
	}
	return decision.Changed{Args: args, Places: s.judged.Call.Places()}, nil
}

// changes returns what an answer makes of the call that it allows. It runs before the answer is stored, and not on the actor.
func (ds *Decisions) changes(ctx context.Context, id protocol.SessionID, p *protocol.DecisionRespondParams) (decision.Changed, error) {
	if p.Args == nil && p.Hunks == nil {
		return decision.Changed{}, nil
	}
	open, err := do(ctx, ds.eng, id, func(_ context.Context, st *state) (*decision.Open, error) {
		open := st.decisions.Find(p.DecisionID)
		if open == nil {
			return nil, nil // answered before: the first answer counts
		}
		return open, param.CheckAnswer(&open.Decision, p)
	})
	if err != nil || open == nil {
		return decision.Changed{}, err
	}
	return open.Change(ctx, p)
}

// applyDecision applies an answered decision to its call. If a person changed the arguments, checkChanged comes next.
func (s *toolCall) applyDecision(d *protocol.Decision) {
	s.applyAnswer(d.Answer)
	if d.Kind != protocol.DecisionApproval || s.reply != nil {
		return
	}
	s.allowed.shown = approval.Shown(d.Detail)
	if s.allowed.change = approval.ChangeOf(d.Answer); s.allowed.change != nil {
		s.Args, s.allowed.paths = d.Answer.Args, d.Answer.Places
	}
}

// checkChanged asks hooks and rules about the calls that a person changed, as if the model had requested them so. The answer of the
// person counts, unless the call is denied now, or its paths lead to other places.
func (b *batch) checkChanged(ctx context.Context, calls []*toolCall) error {
	for _, s := range calls {
		if s.allowed.change == nil || s.state() != callPlanned {
			continue
		}
		if err := b.checkChange(ctx, s); err != nil {
			return err
		}
		b.store.journal.decide([]*toolCall{s})
	}
	return nil
}

// checkChange checks one changed call. If it must not run, it gets its reply.
func (b *batch) checkChange(ctx context.Context, s *toolCall) error {
	args, places := s.Args, s.allowed.paths
	if err := b.hooks.beforeCall(ctx, s); err != nil || s.reply != nil {
		return err
	}
	if !bytes.Equal(args, s.Args) {
		s.fail(protocol.FailPermission, "changed_by_plugin", "The call was not run: a person changed its arguments, and then a plugin replaced them.", protocol.FromPolicy)
		return nil
	}
	if s.validate(); s.reply != nil {
		return nil
	}
	v := b.hooks.judge.judgeUnasked(s)
	s.decided.Verdict = v
	switch {
	case v.Mode == protocol.ApproveDeny:
		s.deny(v)
	case !slices.Equal(places, s.judged.Call.Places()):
		s.fail(protocol.FailPermission, "leads_elsewhere", "The call was not run: the paths in the arguments that a person gave it lead to other places now. Check the paths and call again.", protocol.FromPolicy)
	}
	return nil
}

// noteChange tells the model in the output of a call that a person changed it.
func (s *toolCall) noteChange(out *protocol.ToolOutput) {
	if s.allowed.change != nil {
		out.Text = s.allowed.change.Note(s.Args) + out.Text
	}
}

// hookPlace identifies a call for the directives of hooks, which see a changed call twice.
func (s *toolCall) hookPlace() string {
	if s.allowed.change != nil {
		return string(s.CallID) + ":changed"
	}
	return string(s.CallID)
}
