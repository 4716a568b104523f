package approval

import (
	"path"
	"slices"

	"lashd/engine/authority"
	"lashd/rpc/protocol"
)

// judging evaluates one policy, with the standing answers that apply to it.
type judging struct {
	policy  protocol.Policy
	answers []Answer
}

// of decides over a call of a tool: by the strictest matching rule, or by the mode if none matches. Without a mode, a call that
// the sandbox makes harmless needs no question. A standing answer turns ask into allow, but never overrides a denial.
func (q judging) of(about *Subjects, kind protocol.ToolKind, harmless bool) protocol.ApprovalMode {
	verdict, sure := protocol.ApprovalMode(""), false
	about = about.ruledFrom(q.policy.Cwd)
	for _, r := range q.policy.Approval.Rules {
		action := about.action(r)
		sure = sure || action == r.Action
		verdict = authority.Strictest(verdict, action)
	}
	if !sure { // a rule that may match must not make the result laxer
		verdict = authority.Strictest(verdict, q.otherwise(kind, harmless))
	}
	if verdict == protocol.ApproveAsk && slices.Contains(q.answers, about.answer()) {
		return protocol.ApproveAllow
	}
	return verdict
}

// otherwise returns what the policy demands for a call that no rule decides.
func (q judging) otherwise(kind protocol.ToolKind, harmless bool) protocol.ApprovalMode {
	if q.policy.Approval.Mode == "" && harmless {
		return protocol.ApproveAllow
	}
	return defaultMode(q.policy.Approval.Mode, kind)
}

// leaving returns what the policy demands for a call that goes beyond its sandbox mode: a rule or a standing answer has to allow it.
func (q judging) leaving(about *Subjects) protocol.ApprovalMode {
	covers := func(r protocol.ApprovalRule) bool {
		return r.Action == protocol.ApproveAllow && about.ruledFrom(q.policy.Cwd).action(r) == protocol.ApproveAllow
	}
	if slices.Contains(q.answers, about.answer()) || slices.ContainsFunc(q.policy.Approval.Rules, covers) {
		return protocol.ApproveAllow
	}
	return protocol.ApproveAsk
}

// unclear returns ask if the replaced tool has a rule with a prefix that might match, but neither tool names any
// subject to compare.
func (q judging) unclear(e, there *Subjects) protocol.ApprovalMode {
	stops := func(r protocol.ApprovalRule) bool {
		return r.Prefix != "" && r.Action != protocol.ApproveAllow && ruleNames(r, there.entry.Manifest)
	}
	if slices.ContainsFunc(q.policy.Approval.Rules, stops) && len(e.all)+len(there.all) == 0 {
		return protocol.ApproveAsk
	}
	return protocol.ApproveAllow
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
	named, _ := path.Match(r.Tool, m.Name) // invalid patterns were rejected before
	like, _ := path.Match(r.Tool, m.Like)
	return named || like && r.Action != protocol.ApproveAllow
}
