package approval

import (
	"path"
	"slices"

	"lashd/engine/authority"
	"lashd/rpc/protocol"
)

// judging is a call as one policy sees it.
type judging struct {
	policy  protocol.Policy
	answers []Answer
}

// of decides about a call of a tool: by the strictest rule that matches, else by the mode. A person's standing answers turn
// asking into allowing, never a denial.
func (q judging) of(about *Subjects, kind protocol.ToolKind) protocol.ApprovalMode {
	verdict, sure := protocol.ApprovalMode(""), false
	about = about.ruledFrom(q.policy.Cwd)
	for _, r := range q.policy.Approval.Rules {
		action := about.action(r)
		sure = sure || action == r.Action
		verdict = authority.Strictest(verdict, action)
	}
	if !sure { // a rule that may deny makes nothing laxer than it is without one
		verdict = authority.Strictest(verdict, defaultMode(q.policy.Approval.Mode, kind))
	}
	if verdict == protocol.ApproveAsk && slices.Contains(q.answers, about.answer()) {
		return protocol.ApproveAllow
	}
	return verdict
}

// unclear asks about a call of a tool in the place of another one if a rule about that one's commands or paths could be about it, and
// nobody can tell.
func (q judging) unclear(e, there *Subjects) protocol.ApprovalMode {
	stops := func(r protocol.ApprovalRule) bool {
		return r.Prefix != "" && r.Action != protocol.ApproveAllow && ruleNames(r, there.entry.Manifest)
	}
	if slices.ContainsFunc(q.policy.Approval.Rules, stops) && len(e.all)+len(there.all) == 0 {
		return protocol.ApproveAsk
	}
	return protocol.ApproveAllow
}

// defaultMode asks about tools that change things or of which nobody knows what they do.
func defaultMode(mode protocol.ApprovalMode, kind protocol.ToolKind) protocol.ApprovalMode {
	if mode != "" {
		return mode
	}
	if Reads(kind) {
		return protocol.ApproveAllow
	}
	return protocol.ApproveAsk
}

// ruleNames tells whether a rule is about a tool. What is not allowed with one tool is not allowed with another that does the
// same; what is allowed with one is not allowed with others.
func ruleNames(r protocol.ApprovalRule, m protocol.ToolManifest) bool {
	named, _ := path.Match(r.Tool, m.Name) // what is no pattern is refused before
	like, _ := path.Match(r.Tool, m.Like)
	return named || like && r.Action != protocol.ApproveAllow
}
