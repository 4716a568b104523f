package approval

import (
	"cmp"
	"path"
	"slices"

	"lashd/engine/hostrule"
	"lashd/rpc/protocol"
)

// judging evaluates one policy, with the standing answers that apply to it.
type judging struct {
	Policy
	answers  []Answer
	standing *Rules // of the answers
	ships    bool   // the tool ships with lashd
	inside   bool   // the programs of the call run in the sandbox
}

// of decides over a call of a tool: by the strictest matching rule, or by the mode if none matches. Without a mode, a call that
// the sandbox makes harmless needs no question. A standing answer turns ask into allow, but overrides neither a denial nor, unless it
// is about exactly this call, a rule.
func (q judging) of(about *Subjects, kind protocol.ToolKind, harmless bool) finding {
	verdict, sure := finding{}, false
	about = about.ruledFrom(q.Cwd)
	for _, rules := range q.rules(about) {
		found, applies := rules.decide(about, q.ships)
		verdict, sure = stricter(verdict, found), sure || applies
	}
	if !sure { // a rule that may match must not make the result laxer
		verdict = stricter(verdict, q.unruled(about, kind, harmless, verdict.mode == ""))
	}
	return q.answered(about, stricter(verdict, q.hosts(about)))
}

// unruled returns what the policy demands for a call that no rule decides. If the result is ask and no rule may apply, a standing rule
// can allow the call.
func (q judging) unruled(about *Subjects, kind protocol.ToolKind, harmless, free bool) finding {
	found := q.otherwise(kind, harmless)
	if found.mode == protocol.ApproveAsk && free {
		if by, _ := q.standing.decide(about, q.ships); by.mode != "" {
			return by
		}
	}
	return found
}

// rules returns the rules that apply to a call.
func (q judging) rules(about *Subjects) []*Rules {
	if q.Rules != nil {
		return q.Rules
	}
	return []*Rules{Compile(cmp.Or(q.Cwd, about.cwd), protocol.LevelSession, q.Owner(), q.Approval.Rules)}
}

// hosts returns what the policy demands for the hosts that the call wants to reach: each needs a rule that allows it, unless its
// programs run outside a sandbox anyway. Denials always count.
func (q judging) hosts(about *Subjects) (verdict finding) {
	for _, h := range about.hosts() {
		found := finding{}
		for _, rules := range q.rules(about) {
			if h == (hostrule.Pattern{}) {
				break // it cannot be parsed
			}
			found = stricter(found, rules.decideHost(about, h, q.ships))
			if r := rules.coversTool(about, q.ships); r != nil {
				found = stricter(found, finding{mode: r.Action, rule: r})
			}
		}
		if (found.mode == "" || h == (hostrule.Pattern{})) && q.Approval.Sandbox.Confines() && q.inside {
			found = finding{mode: protocol.ApproveAsk, why: because(protocol.DecidedByOutside, "No rule allows the command to reach "+cmp.Or(h.String(), "a host of this name")+".")}
			if by := q.standing.decideHost(about, h, q.ships); by.mode != "" && h != (hostrule.Pattern{}) {
				found = by
			}
		}
		verdict = stricter(verdict, found)
	}
	return verdict
}

// answered turns ask into allow if a standing answer covers exactly the call.
func (q judging) answered(about *Subjects, found finding) finding {
	if found.mode == protocol.ApproveAsk && slices.ContainsFunc(q.answers, about.answer().covers) {
		return finding{mode: protocol.ApproveAllow, why: because(protocol.DecidedByAnswer, "A person allowed exactly this call before.")}
	}
	return found
}

// otherwise returns what the policy demands for a call that no rule decides.
func (q judging) otherwise(kind protocol.ToolKind, harmless bool) finding {
	if q.Approval.Mode == "" && harmless {
		text := "The command runs in the sandbox, so it needs no question."
		if kind != protocol.ToolKindExecute {
			text = "The tool changes only files of the workspace, so it needs no question."
		}
		return finding{mode: protocol.ApproveAllow, why: because(protocol.DecidedBySandbox, text)}
	}
	return finding{mode: defaultMode(q.Approval.Mode, kind), why: q.byMode(kind)}
}

// leaving returns what the policy demands for a call that goes beyond its sandbox mode: a rule or a standing answer has to allow it.
func (q judging) leaving(about *Subjects, kind protocol.ToolKind) finding {
	from := about.ruledFrom(q.Cwd)
	for _, rules := range append(slices.Clip(q.rules(from)), q.standing) {
		if r := rules.allowing(from, q.ships); r != nil {
			return finding{mode: protocol.ApproveAllow, rule: r}
		}
	}
	text := "The call would run a program outside the sandbox."
	if kind != protocol.ToolKindExecute {
		text = "The sandbox mode allows no changes without a question."
	}
	return q.answered(about, finding{mode: protocol.ApproveAsk, why: because(protocol.DecidedByOutside, text)})
}

// unclear returns ask if the replaced tool has a limited rule that might match, but neither tool names any
// subject to compare.
func (q judging) unclear(e, there *Subjects) finding {
	if len(e.all)+len(there.all) > 0 {
		return finding{mode: protocol.ApproveAllow}
	}
	for _, rules := range q.rules(e) {
		if r := rules.stopping(there.entry.Manifest); r != nil {
			return finding{mode: protocol.ApproveAsk, rule: r}
		}
	}
	return finding{mode: protocol.ApproveAllow}
}

// defaultMode returns the mode of a policy. Without one, tools that only read are allowed, and all others are asked
// about.
func defaultMode(mode protocol.ApprovalMode, kind protocol.ToolKind) protocol.ApprovalMode {
	if mode != "" {
		return mode
	}
	if Reads(kind) {
		return protocol.ApproveAllow
	}
	return protocol.ApproveAsk
}

// ruleNames reports whether a rule applies to a tool. A rule that asks or denies also applies to tools that declare
// themselves like the named one. A rule that allows applies only by name.
func ruleNames(r protocol.ApprovalRule, m protocol.ToolManifest) bool {
	if r.Tool == "" { // every tool with the subject that the rule names
		return true
	}
	named, _ := path.Match(r.Tool, m.Name) // invalid patterns were rejected before
	like, _ := path.Match(r.Tool, m.Like)
	return named || like && r.Action != protocol.ApproveAllow
}
