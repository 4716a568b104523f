package approval

import (
	"fmt"

	"lashd/engine/authority"
	"lashd/rpc/protocol"
)

// finding is what a policy demands for a call, and why.
type finding struct {
	mode protocol.ApprovalMode
	rule *rule                   // that decides; nil: none does
	why  protocol.ApprovalReason // without a rule
}

// reason returns why the policy demands it.
func (f finding) reason() protocol.ApprovalReason {
	if f.rule == nil {
		return f.why
	}
	return f.rule.reason(f.mode)
}

// stricter returns the stricter of two findings; the first if they are equal.
func stricter(a, b finding) finding {
	if a.mode == "" || authority.Strictest(a.mode, b.mode) != a.mode {
		return b
	}
	return a
}

// because returns a reason without a rule.
func because(by protocol.DecidedBy, text string) protocol.ApprovalReason {
	return protocol.ApprovalReason{By: by, Text: text}
}

// reason returns why the rule decides. A rule that demands less than it says may match, but it is unknown whether it does.
func (r *rule) reason(action protocol.ApprovalMode) protocol.ApprovalReason {
	text := fmt.Sprintf("The rule `%s` of %s decides.", r.ApprovalRule, r.owner)
	if action != r.Action {
		text = fmt.Sprintf("The rule `%s` of %s may apply, and lashd cannot know whether it does.", r.ApprovalRule, r.owner)
	}
	return protocol.ApprovalReason{By: protocol.DecidedByRule, Rule: &r.ApprovalRule, Level: r.level, Text: text}
}

// byMode returns the reason for a decision by the approval mode.
func (q judging) byMode(kind protocol.ToolKind) protocol.ApprovalReason {
	switch {
	case q.Approval.Mode != "":
		return because(protocol.DecidedByMode, fmt.Sprintf("The approval mode `%s` of %s decides.", q.Approval.Mode, q.Owner()))
	case Reads(kind):
		return because(protocol.DecidedByMode, "The tool only reads, so it needs no question.")
	}
	return because(protocol.DecidedByMode, "No rule allows the call, and the tool can change something.")
}

// Owner names the session whose policy it is, in a sentence.
func (p Policy) Owner() string {
	if p.Own {
		return "the session"
	}
	return "the session that requested this work"
}
